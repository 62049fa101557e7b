import { join } from "node:path";
import { isLoopbackHost } from "./addresses.ts";
import type { ConnectionConfig, RelayConfig, RetryScheduler, StoreConfig } from "./relay-config.ts";
import { type ConfigSources, type EffectiveSetting, SettingReader } from "./setting-reader.ts";
import { RELAY_URL, SETTINGS } from "./settings.ts";

export interface LoadedConfig {
  readonly config: RelayConfig;
  readonly settings: readonly EffectiveSetting[];
  /** Variables that begin with A2A_RELAY_ and name no setting: most likely misspelt. */
  readonly unknownVariables: readonly string[];
}

/** Fills, validates and freezes the configuration. */
export function loadConfig(sources: Partial<ConfigSources> = {}): RelayConfig {
  return loadConfigWithSources({ flags: {}, env: {}, dotenv: {}, ...sources }).config;
}

export function loadConfigWithSources(sources: ConfigSources): LoadedConfig {
  const reader = new SettingReader(sources);
  const config = fill(reader);
  validateRelations(config, reader);
  return { config, settings: reader.settings, unknownVariables: unknownVariables(sources) };
}

function fill(reader: SettingReader): RelayConfig {
  const host = reader.read(SETTINGS.host);
  const port = reader.read(SETTINGS.port);
  const store = readStore(reader);
  return Object.freeze({
    host,
    port,
    ...store,
    databasePoolMax: reader.read(SETTINGS.databasePoolMax),
    databaseRls: reader.read(SETTINGS.databaseRls),
    migrate: reader.read(SETTINGS.migrate),
    archiveDirectory: reader.read(SETTINGS.archiveDirectory) ?? join(store.dataDirectory, "archive"),
    publicUrl: reader.read(SETTINGS.publicUrl),
    apiKey: reader.read(SETTINGS.apiKey),
    capabilities: reader.read(SETTINGS.capabilities),
    allowedOrigins: Object.freeze([...reader.read(SETTINGS.allowedOrigins)]),
    egressAllow: Object.freeze([...reader.read(SETTINGS.egressAllow)]),
    logLevel: reader.read(SETTINGS.logLevel),
    messageTtlMs: reader.read(SETTINGS.messageTtlMs),
    mailboxOpenMax: reader.read(SETTINGS.mailboxOpenMax),
    leaseAttemptsMax: reader.read(SETTINGS.leaseAttemptsMax),
    sweepIntervalMs: reader.read(SETTINGS.sweepIntervalMs),
    messageRetentionMs: reader.read(SETTINGS.messageRetentionMs),
    journalRetentionMs: reader.read(SETTINGS.journalRetentionMs),
    anchorIntervalMs: reader.read(SETTINGS.anchorIntervalMs),
    checkpointPages: reader.read(SETTINGS.checkpointPages),
    drainMs: reader.read(SETTINGS.drainMs),
    heartbeatMs: reader.read(SETTINGS.heartbeatMs),
    a2aBlockMs: reader.read(SETTINGS.a2aBlockMs),
    grpcPort: reader.read(SETTINGS.grpcPort),
    cardDialect: reader.read(SETTINGS.cardDialect),
    streamStallMs: reader.read(SETTINGS.streamStallMs),
    pushAttemptsMs: Object.freeze([...reader.read(SETTINGS.pushAttemptsMs)]),
    pushTimeoutMs: reader.read(SETTINGS.pushTimeoutMs),
    retryScheduler: readRetryScheduler(reader),
  });
}

function readStore(reader: SettingReader): StoreConfig {
  const dataDirectory = reader.read(SETTINGS.dataDirectory);
  const anchorDirectory = reader.read(SETTINGS.anchorDirectory) ?? join(dataDirectory, "anchors");
  return { dataDirectory, anchorDirectory, ...readConnection(reader) };
}

function readConnection(reader: SettingReader): ConnectionConfig {
  return {
    database: reader.read(SETTINGS.database),
    databaseCa: reader.read(SETTINGS.databaseCa),
    databaseStatementTimeoutMs: reader.read(SETTINGS.databaseStatementTimeoutMs),
    databaseLockTimeoutMs: reader.read(SETTINGS.databaseLockTimeoutMs),
  };
}

function readRetryScheduler(reader: SettingReader): RetryScheduler | undefined {
  const enabled = reader.read(SETTINGS.autoRetryScheduler);
  // Read even when the scheduler is off: a mistake is refused at the start, not on the day it is switched on.
  const intervalMs = reader.read(SETTINGS.autoRetryIntervalMs);
  const policy = Object.freeze({
    min_lease_age_ms: reader.read(SETTINGS.autoRetryMinLeaseAgeMs),
    max_attempts: reader.read(SETTINGS.autoRetryMaxAttempts),
    max_requeues: reader.read(SETTINGS.autoRetryMaxRequeues),
    scan_limit: reader.read(SETTINGS.autoRetryScanLimit),
  });
  if (policy.max_requeues > policy.scan_limit) {
    reader.refuse(
      SETTINGS.autoRetryMaxRequeues,
      `at most A2A_RELAY_AUTO_RETRY_SCAN_LIMIT (${policy.scan_limit}); a scan cannot requeue more than it checks`,
    );
  }
  return enabled ? Object.freeze({ intervalMs, policy }) : undefined;
}

function validateRelations(config: RelayConfig, reader: SettingReader): void {
  if (!isLoopbackHost(config.host) && config.apiKey === undefined) {
    reader.refuse(
      SETTINGS.host,
      "a loopback address, because other machines could reach this one and no API key is set; set A2A_RELAY_API_KEY or bind 127.0.0.1",
    );
  }
  // Receipts are derived from events, so a message must not outlive its events.
  const { messageRetentionMs, journalRetentionMs } = config;
  if (journalRetentionMs !== 0 && (messageRetentionMs === 0 || journalRetentionMs < messageRetentionMs)) {
    reader.refuse(
      SETTINGS.journalRetentionMs,
      `0 (for ever) or at least A2A_RELAY_MAIL_RETENTION_MS (${messageRetentionMs === 0 ? "0, for ever" : messageRetentionMs}), because the receipts of a message are read from its events`,
    );
  }
}

function unknownVariables(sources: ConfigSources): readonly string[] {
  const known = new Set([...Object.values(SETTINGS), RELAY_URL].flatMap((setting) => setting.variables));
  const present = new Set([...Object.keys(sources.env), ...Object.keys(sources.dotenv)]);
  return [...present].filter((name) => name.startsWith("A2A_RELAY_") && !known.has(name)).toSorted();
}

/** What `migrate` needs; nothing else has to be right for it. */
export function loadConnectionConfig(sources: ConfigSources): ConnectionConfig {
  return Object.freeze(readConnection(new SettingReader(sources)));
}

/** What the commands need that work on the data without a relay. */
export function loadStoreConfig(sources: ConfigSources): StoreConfig {
  return Object.freeze(readStore(new SettingReader(sources)));
}

/** What a program needs to talk to a relay. */
export interface ClientConfig {
  readonly url: string;
  readonly apiKey: string | undefined;
}

export function loadClientConfig(sources: ConfigSources): ClientConfig {
  // The address never comes from .env: a foreign directory must not decide where messages and the key go.
  const trusted = new SettingReader({ ...sources, dotenv: {} });
  return Object.freeze({
    url: trusted.read(RELAY_URL),
    apiKey: new SettingReader(sources).read(SETTINGS.apiKey),
  });
}
