import type { ConnectionConfig } from "../config/relay-config.ts";
import { type ConnectionOptions, databaseName, withConnection } from "../stores/postgres/database.ts";
import {
  migrate,
  readSchema,
  refuseNewerSchema,
  type SchemaStatus,
} from "../stores/postgres/migrations/migrations.ts";

const SCHEMA = "a2a_relay";
/** How much longer than the server works on a statement the relay waits for its answer. */
const ANSWER_EXTRA_MS = 5_000;

export function connectionOptions(url: string, config: ConnectionConfig): ConnectionOptions {
  const { databaseStatementTimeoutMs: statementTimeoutMs } = config;
  return {
    url,
    schema: SCHEMA,
    caFile: config.databaseCa,
    statementTimeoutMs,
    lockTimeoutMs: config.databaseLockTimeoutMs,
    answerTimeoutMs: statementTimeoutMs === 0 ? undefined : statementTimeoutMs + ANSWER_EXTRA_MS,
  };
}

/** The schema of a PostgreSQL database, from before a migration. */
export interface DatabaseSchema extends SchemaStatus {
  /** `host/name`. */
  readonly database: string;
}

/** What the command does: only read, read as if it would migrate, or migrate. */
export type MigrateMode = "status" | "dry-run" | "migrate";

/** Undefined for SQLite, whose migrations run when it is opened. */
export async function migrateDatabase(
  config: ConnectionConfig,
  mode: MigrateMode,
): Promise<DatabaseSchema | undefined> {
  if (config.database?.kind !== "postgres") return undefined;
  const { url } = config.database;
  const status = await withConnection(connectionOptions(url, config), (client) =>
    mode === "migrate" ? migrate(client, SCHEMA, "always") : readSchema(client),
  );
  if (mode !== "status") refuseNewerSchema(status);
  return { database: databaseName(url), ...status };
}
