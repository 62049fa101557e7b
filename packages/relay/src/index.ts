export { loadConfig } from "./config/load-config.ts";
export type { RelayConfig } from "./config/relay-config.ts";
export type { LeasedTask, Mailbox } from "./core/task-queue/mailbox.ts";
export { type RelayOverrides, type RunningRelay, startRelay } from "./server/start-relay.ts";
export { VERSION } from "./server/version.ts";
