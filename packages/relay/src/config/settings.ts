import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { LIMITS } from "@a2a-relay/protocol";
import { parseCidrs, parseHost, parseOrigins, parsePublicUrl } from "./addresses.ts";
import { DATABASE_SETTINGS } from "./database.ts";
import type { RelayConfig } from "./relay-config.ts";
import { type Complain, integerSetting, type Setting, switchSetting } from "./setting.ts";

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const DAY_MS = 24 * HOUR_MS;
const RETENTION_MS_MAX = 36_500 * DAY_MS;

const LOG_LEVELS = [
  "silent",
  "error",
  "warn",
  "info",
  "debug",
] as const satisfies readonly RelayConfig["logLevel"][];
const CARD_DIALECTS = ["1.0", "0.3"] as const satisfies readonly RelayConfig["cardDialect"][];
const API_KEY_CHARS_MIN = 16;
const API_KEY_CHARS_MAX = 512;

const host: Setting<string> = {
  variables: ["HOST"],
  flag: "host",
  placeholder: "address",
  meaning: "The address to listen on. Anything but loopback needs an API key.",
  fallback: "127.0.0.1",
  parse: parseHost,
};

const port = integerSetting({
  variables: ["PORT"],
  flag: "port",
  meaning: "The port to listen on; 0 picks a free one.",
  fallback: 8080,
  minimum: 0,
  maximum: 65_535,
  remark: "0 picks a free port",
});

const dataDirectory: Setting<string> = {
  variables: ["A2A_RELAY_DATA"],
  flag: "data",
  placeholder: "directory",
  meaning: "The directory of the database and its lock, and of the archive unless another is named.",
  fallback: join(homedir(), ".a2a-relay"),
  parse: parseDirectory,
};

const anchorDirectory: Setting<string | undefined> = {
  variables: ["A2A_RELAY_ANCHOR_DIR"],
  flag: "anchor-dir",
  placeholder: "directory",
  meaning: "Where anchors of the journal are kept. Without it: anchors in the data directory.",
  fallback: undefined,
  parse: parseDirectory,
};

const archiveDirectory: Setting<string | undefined> = {
  variables: ["A2A_RELAY_ARCHIVE_DIR"],
  flag: "archive-dir",
  placeholder: "directory",
  meaning: "Where retention archives messages and events. Without it: archive in the data directory.",
  fallback: undefined,
  parse: parseDirectory,
};

const publicUrl: Setting<string | undefined> = {
  variables: ["A2A_RELAY_PUBLIC_URL"],
  flag: "public-url",
  placeholder: "url",
  meaning: "The address the relay tells others. Without it: where it listens.",
  fallback: undefined,
  parse: parsePublicUrl,
};

const apiKey: Setting<string | undefined> = {
  variables: ["A2A_RELAY_API_KEY", "RELAY_API_KEY"],
  flag: "api-key",
  placeholder: "key",
  meaning:
    "The key of the operator. When set, every request needs it, or a key made with `keys create`, as a bearer token. At least 16 characters.",
  fallback: undefined,
  secret: true,
  parse: (text, complain) =>
    /^[\x21-\x7e]+$/.test(text) && text.length >= API_KEY_CHARS_MIN && text.length <= API_KEY_CHARS_MAX
      ? text
      : complain(
          `${API_KEY_CHARS_MIN} to ${API_KEY_CHARS_MAX} printable ASCII characters without blanks; make one with: openssl rand -hex 24`,
        ),
};

const capabilities = switchSetting({
  variables: ["A2A_RELAY_CAPABILITIES"],
  flag: "capabilities",
  meaning: "Whether giving and answering tasks needs capability tokens in the default tenant.",
  fallback: false,
});

const allowedOrigins: Setting<readonly string[]> = {
  variables: ["A2A_RELAY_ALLOWED_ORIGINS"],
  flag: "allowed-origins",
  placeholder: "origins",
  meaning: "Origins of browser pages that may call the relay beside its own, separated by commas.",
  fallback: [],
  parse: parseOrigins,
};

const egressAllow: Setting<readonly string[]> = {
  variables: ["A2A_RELAY_EGRESS_ALLOW"],
  flag: "egress-allow",
  placeholder: "cidrs",
  meaning: "Addresses that the relay may call though they are not public: CIDRs, separated by commas.",
  fallback: [],
  parse: parseCidrs,
};

const logLevel: Setting<RelayConfig["logLevel"]> = {
  variables: ["A2A_RELAY_LOG_LEVEL"],
  flag: "log-level",
  placeholder: "level",
  meaning: `How much the relay writes to its log: ${LOG_LEVELS.join(", ")}.`,
  fallback: "info",
  parse: (text, complain) =>
    LOG_LEVELS.find((level) => level === text) ?? complain(`one of ${LOG_LEVELS.join(", ")}`),
};

const messageTtlMs = integerSetting({
  variables: ["A2A_RELAY_MESSAGE_TTL_MS"],
  flag: "message-ttl-ms",
  meaning: "How long an unread message is kept when its sender does not say.",
  fallback: LIMITS.messageTtlMsDefault,
  minimum: SECOND_MS,
  maximum: LIMITS.messageTtlMsMax,
});

const mailboxOpenMax = integerSetting({
  variables: ["A2A_RELAY_MAILBOX_OPEN_MAX"],
  flag: "mailbox-open-max",
  meaning: "Open messages one agent may have; the next send is answered mailbox_full.",
  fallback: LIMITS.mailboxOpenMax,
  minimum: 1,
  maximum: 10_000_000,
});

const leaseAttemptsMax = integerSetting({
  variables: ["A2A_RELAY_LEASE_ATTEMPTS_MAX"],
  flag: "lease-attempts-max",
  meaning: "Leases a message may have before an automatic requeue gives up on it.",
  fallback: LIMITS.leaseAttemptsMax,
  minimum: 1,
  maximum: 1_000,
});

const sweepIntervalMs = integerSetting({
  variables: ["A2A_RELAY_SWEEP_INTERVAL_MS"],
  flag: "sweep-interval-ms",
  meaning: "How often the relay checks for expired messages, timed-out leases and passed deadlines.",
  fallback: SECOND_MS,
  minimum: 10,
  maximum: HOUR_MS,
});

const messageRetentionMs = integerSetting({
  variables: ["A2A_RELAY_MAIL_RETENTION_MS"],
  flag: "mail-retention-ms",
  meaning: "How long settled messages stay before they are archived; 0 keeps them for ever.",
  fallback: 30 * DAY_MS,
  minimum: 0,
  maximum: RETENTION_MS_MAX,
  remark: "0 keeps settled messages for ever",
});

const journalRetentionMs = integerSetting({
  variables: ["A2A_RELAY_JOURNAL_RETENTION_MS"],
  flag: "journal-retention-ms",
  meaning: "How long events stay before they are archived; 0 keeps them for ever.",
  fallback: 90 * DAY_MS,
  minimum: 0,
  maximum: RETENTION_MS_MAX,
  remark: "0 keeps events for ever",
});

const anchorIntervalMs = integerSetting({
  variables: ["A2A_RELAY_ANCHOR_INTERVAL_MS"],
  flag: "anchor-interval-ms",
  meaning: "How often the relay writes an anchor of the journal: its last position and hash.",
  fallback: 10 * SECOND_MS,
  minimum: 10,
  maximum: DAY_MS,
});

const checkpointPages = integerSetting({
  variables: ["A2A_RELAY_CHECKPOINT_PAGES"],
  flag: "checkpoint-pages",
  meaning: "WAL pages after which SQLite checkpoints by itself even under load.",
  fallback: 2_000,
  minimum: 1,
  maximum: 10_000_000,
});

const drainMs = integerSetting({
  variables: ["A2A_RELAY_DRAIN_MS"],
  flag: "drain-ms",
  meaning: "How long a stopping relay waits for requests under way.",
  fallback: 8 * SECOND_MS,
  minimum: 0,
  maximum: 600 * SECOND_MS,
});

const heartbeatMs = integerSetting({
  variables: ["A2A_RELAY_HEARTBEAT_MS"],
  flag: "heartbeat-ms",
  meaning: "How often the relay sends a heartbeat on an idle stream.",
  fallback: 15 * SECOND_MS,
  minimum: 10,
  maximum: 600 * SECOND_MS,
});

const streamStallMs = integerSetting({
  variables: ["A2A_RELAY_STREAM_STALL_MS"],
  flag: "stream-stall-ms",
  meaning: "How long a reader of a stream may take to receive data before it is cut off.",
  fallback: 30 * SECOND_MS,
  minimum: 10,
  maximum: 600 * SECOND_MS,
});

const pushAttemptsMs: Setting<readonly number[]> = {
  variables: ["A2A_RELAY_PUSH_ATTEMPTS_MS"],
  flag: "push-attempts-ms",
  placeholder: "times",
  meaning: "When a push is attempted, in milliseconds from the first attempt, separated by commas.",
  fallback: [0, 5 * SECOND_MS, 30 * SECOND_MS, 120 * SECOND_MS],
  parse: parseAttempts,
};

const pushTimeoutMs = integerSetting({
  variables: ["A2A_RELAY_PUSH_TIMEOUT_MS"],
  flag: "push-timeout-ms",
  meaning: "How long a receiver of a push may take to answer.",
  fallback: 15 * SECOND_MS,
  minimum: 10,
  maximum: 600 * SECOND_MS,
});

const a2aBlockMs = integerSetting({
  variables: ["A2A_RELAY_A2A_BLOCK_MS"],
  flag: "a2a-block-ms",
  meaning: "How long a blocking A2A send waits for its task before it is answered with the unfinished task.",
  fallback: 30 * SECOND_MS,
  minimum: 0,
  maximum: 600 * SECOND_MS,
});

const grpcPort: Setting<number | undefined> = {
  variables: ["A2A_RELAY_GRPC_PORT"],
  flag: "grpc-port",
  placeholder: "number",
  meaning: "The port for A2A over gRPC, on the same address; 0 picks a free one. Without it: no gRPC.",
  fallback: undefined,
  parse: (text, complain) => {
    const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    return number <= 65_535 ? number : complain("a whole number from 0 to 65535");
  },
};

const cardDialect: Setting<RelayConfig["cardDialect"]> = {
  variables: ["A2A_RELAY_CARD_DIALECT"],
  flag: "card-dialect",
  placeholder: "version",
  meaning: "The version of A2A in which cards are written for clients that do not say theirs: 1.0 or 0.3.",
  fallback: "1.0",
  parse: (text, complain) =>
    CARD_DIALECTS.find((dialect) => dialect === text) ?? complain(CARD_DIALECTS.join(" or ")),
};

const autoRetryScheduler = switchSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_SCHEDULER"],
  flag: "auto-retry-scheduler",
  meaning: "Whether the relay runs retry-stale by itself. Only work declared idempotent is requeued.",
  fallback: false,
});

const autoRetryIntervalMs = integerSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_INTERVAL_MS"],
  flag: "auto-retry-interval-ms",
  meaning: "How often the retry scheduler scans.",
  fallback: 60 * SECOND_MS,
  minimum: 1,
  maximum: DAY_MS,
  remark: "to scan never, switch A2A_RELAY_AUTO_RETRY_SCHEDULER off",
});

const autoRetryMinLeaseAgeMs = integerSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_MIN_LEASE_AGE_MS"],
  flag: "auto-retry-min-lease-age-ms",
  meaning: "The age from which the retry scheduler takes a lease for stale.",
  fallback: 300 * SECOND_MS,
  minimum: 0,
  maximum: RETENTION_MS_MAX,
});

const autoRetryMaxAttempts = integerSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_MAX_ATTEMPTS"],
  flag: "auto-retry-max-attempts",
  meaning: "Attempts after which the retry scheduler leaves a message to an operator.",
  fallback: 3,
  minimum: 1,
  maximum: 1_000_000,
});

const autoRetryMaxRequeues = integerSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_MAX_REQUEUES"],
  flag: "auto-retry-max-requeues",
  meaning: "Messages one scan may requeue.",
  fallback: 1,
  minimum: 0,
  maximum: 1_000,
});

const autoRetryScanLimit = integerSetting({
  variables: ["A2A_RELAY_AUTO_RETRY_SCAN_LIMIT"],
  flag: "auto-retry-scan-limit",
  meaning: "Leases one scan checks, oldest first.",
  fallback: 100,
  minimum: 1,
  maximum: 1_000,
});

/** For every command that talks to a relay. */
export const RELAY_URL: Setting<string> = {
  variables: ["A2A_RELAY_URL"],
  flag: "relay",
  placeholder: "url",
  meaning: "The relay to talk to.",
  fallback: "http://127.0.0.1:8080",
  parse: parsePublicUrl,
};

/** All settings of the relay. A test compares them with `docs/reference/configuration.md`. */
export const SETTINGS = {
  host,
  port,
  dataDirectory,
  ...DATABASE_SETTINGS,
  anchorDirectory,
  archiveDirectory,
  publicUrl,
  apiKey,
  capabilities,
  allowedOrigins,
  egressAllow,
  logLevel,
  messageTtlMs,
  mailboxOpenMax,
  leaseAttemptsMax,
  sweepIntervalMs,
  messageRetentionMs,
  journalRetentionMs,
  anchorIntervalMs,
  checkpointPages,
  drainMs,
  heartbeatMs,
  streamStallMs,
  pushAttemptsMs,
  pushTimeoutMs,
  a2aBlockMs,
  grpcPort,
  cardDialect,
  autoRetryScheduler,
  autoRetryIntervalMs,
  autoRetryMinLeaseAgeMs,
  autoRetryMaxAttempts,
  autoRetryMaxRequeues,
  autoRetryScanLimit,
} as const;

function parseDirectory(text: string, complain: Complain): string {
  if (text.includes("\0")) return complain("a directory path");
  // Only a shell expands the tilde; a path from .env arrives with it.
  return text === "~" || text.startsWith("~/") ? join(homedir(), text.slice(1)) : resolve(text);
}

function parseAttempts(text: string, complain: Complain): readonly number[] {
  const texts = text.split(",").map((each) => each.trim());
  const times = texts.map((each) => (/^\d{1,16}$/.test(each) ? Number(each) : Number.NaN));
  const isUsable = (atMs: number, index: number): boolean =>
    atMs <= LIMITS.pushAttemptMsMax && (index === 0 || atMs >= (times[index - 1] ?? 0));
  if (times.length <= LIMITS.pushAttemptsMax && times.every(isUsable)) return times;
  return complain(
    `1 to ${LIMITS.pushAttemptsMax} whole numbers from 0 to ${LIMITS.pushAttemptMsMax}, none smaller than the one before it, such as 0,5000,30000,120000`,
  );
}
