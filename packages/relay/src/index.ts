export type { Cassette } from "./cassettes/cassette.ts";
export { loadCassette, parseCassette } from "./cassettes/cassette-parser.ts";
export {
  type Played,
  playCassette,
  type ScriptedAgent,
  type ScriptedAgentOptions,
} from "./cassettes/scripted-agent.ts";
export { loadConfig } from "./config/load-config.ts";
export type { RelayConfig } from "./config/relay-config.ts";
export type { LeasedTask, Mailbox } from "./core/queue/in-process-queue.ts";
export { type RelayOverrides, type RunningRelay, startRelay } from "./server/start-relay.ts";
export { VERSION } from "./server/version.ts";
