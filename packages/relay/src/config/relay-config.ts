import type { RetryStalePolicy } from "@a2a-relay/protocol";
import type { DatabaseChoice } from "./database.ts";

/** How to reach the database. */
export interface ConnectionConfig {
  /** Default: SQLite in the data directory. */
  readonly database: DatabaseChoice | undefined;
  /** The file with the authority of PostgreSQL's certificate. Default: the authorities that Node.js trusts. */
  readonly databaseCa: string | undefined;
  /** Default 30 s; 0 waits without end. */
  readonly databaseStatementTimeoutMs: number;
  /** Default 5 s; 0 waits without end. */
  readonly databaseLockTimeoutMs: number;
}

/** Where the data is. */
export interface StoreConfig extends ConnectionConfig {
  /** The directory of the database and its lock. Default ~/.a2a-relay. */
  readonly dataDirectory: string;
  /** Where anchors of the journal are kept, best on another disk. Default: anchors in the data directory. */
  readonly anchorDirectory: string;
}

/** All settings of a relay. `loadConfig` fills, validates and freezes them once. */
export interface RelayConfig extends StoreConfig {
  /** The address to listen on. Anything but loopback needs an API key. Default 127.0.0.1. */
  readonly host: string;
  /** 0 picks a free port. Default 8080. */
  readonly port: number;
  /** Connections to PostgreSQL, beside the one that listens. Default 10. */
  readonly databasePoolMax: number;
  /** PostgreSQL itself keeps tenants apart. */
  readonly databaseRls: boolean;
  /** Whether pending migrations of PostgreSQL run at the start. Default off. */
  readonly migrate: boolean;
  /** Where retention archives messages and events; relays may share it. Default: archive in the data directory. */
  readonly archiveDirectory: string;
  /** The address the relay tells others, without a slash at the end. Default: where it listens. */
  readonly publicUrl: string | undefined;
  /** The key of the operator. When set, every request needs it, or a key that was made with it. */
  readonly apiKey: string | undefined;
  /** Whether giving and answering tasks needs capability tokens in the default tenant. Default off. */
  readonly capabilities: boolean;
  /** Origins of browser pages that may call the relay, beside its own. */
  readonly allowedOrigins: readonly string[];
  /** CIDRs that the relay may call though they are not public, each with its prefix. */
  readonly egressAllow: readonly string[];
  readonly logLevel: "silent" | "error" | "warn" | "info" | "debug";
  /** How long an unread message is kept when its sender does not say. Default 7 days. */
  readonly messageTtlMs: number;
  /** Open messages one agent may have. Default 100,000. */
  readonly mailboxOpenMax: number;
  /** Leases a message may have before an automatic requeue gives up on it. Default 3. */
  readonly leaseAttemptsMax: number;
  /** How often the relay checks for expired messages, timed-out leases and passed deadlines. Default 1 s. */
  readonly sweepIntervalMs: number;
  /** How long settled messages stay before they are archived. Default 30 days; 0 keeps them for ever. */
  readonly messageRetentionMs: number;
  /** How long events stay before they are archived. Default 90 days; 0 keeps them for ever. */
  readonly journalRetentionMs: number;
  /** How often an anchor is kept of a journal that moved. Default 10 s. */
  readonly anchorIntervalMs: number;
  /** WAL pages after which SQLite checkpoints by itself even under load. Default 2,000. */
  readonly checkpointPages: number;
  /** The opt-in scheduler of `retry-stale`: undefined is off. */
  readonly retryScheduler: RetryScheduler | undefined;
  /** How long a stopping relay waits for requests under way. Default 8 s, so that it ends within 10. */
  readonly drainMs: number;
  /** How often the relay sends a heartbeat on an idle stream. Default 15 s. */
  readonly heartbeatMs: number;
  /** How long a reader of a stream may take to receive data. Default 30 s. */
  readonly streamStallMs: number;
  /** When pushes are attempted, counted from the first attempt. Default 0, 5 s, 30 s and 120 s. */
  readonly pushAttemptsMs: readonly number[];
  /** How long a receiver of a push may take to answer. Default 15 s. */
  readonly pushTimeoutMs: number;
  /** How long a blocking A2A send waits for its task. Default 30 s. */
  readonly a2aBlockMs: number;
  /** Where A2A over gRPC listens; undefined: nowhere. 0 picks a free port. */
  readonly grpcPort: number | undefined;
  /** How A2A cards are written for clients that do not say their version. Default 1.0. */
  readonly cardDialect: "1.0" | "0.3";
}

export interface RetryScheduler {
  /** Default 60 s. */
  readonly intervalMs: number;
  readonly policy: Omit<RetryStalePolicy, "enabled">;
}
