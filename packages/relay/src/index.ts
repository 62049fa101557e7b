export type { Cassette } from "./cassette/cassette.ts";
export { loadCassette, parseCassette } from "./cassette/cassette-parser.ts";
export {
  type Played,
  playCassette,
  type ScriptedAgent,
  type ScriptedAgentOptions,
} from "./cassette/scripted-agent.ts";
export { loadConfig } from "./config/load-config.ts";
export type { RelayConfig } from "./config/relay-config.ts";
export type { LeasedTask, Mailbox } from "./core/task-queue/mailbox.ts";
export { type RelayOverrides, type RunningRelay, startRelay } from "./server/start-relay.ts";
export { VERSION } from "./server/version.ts";
