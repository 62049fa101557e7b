import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import type { ClientBase } from "pg";

/** In their order: the first one makes version 1. */
const FILES = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".sql"))
  .toSorted();

const ADVISORY_LOCK = 0x61_32_61;

export interface SchemaStatus {
  /** No migration has ever run. */
  readonly isEmpty: boolean;
  readonly version: number;
  /** The newest version that this relay knows. */
  readonly knownVersion: number;
  /** The files that have not run yet, in their order. */
  readonly pending: readonly string[];
}

export async function readSchema(client: ClientBase): Promise<SchemaStatus> {
  const found = await client.query("select to_regclass('schema_version') is null as is_empty");
  const isEmpty = (found.rows as readonly { readonly is_empty: boolean }[])[0]?.is_empty ?? true;
  const version = isEmpty ? 0 : await readVersion(client);
  return { isEmpty, version, knownVersion: FILES.length, pending: FILES.slice(version) };
}

async function readVersion(client: ClientBase): Promise<number> {
  const { rows } = await client.query("select coalesce(max(version), 0)::int as version from schema_version");
  return (rows as readonly { readonly version: number }[])[0]?.version ?? 0;
}

export function refuseNewerSchema({ version, knownVersion }: SchemaStatus): void {
  if (version <= knownVersion) return;
  const what = `the database has schema version ${version}, this relay knows ${knownVersion}; start a newer relay`;
  throw new RelayError("unavailable", what);
}

/** The table exists from the beginning of an import until it is verified. */
export const IMPORT_TABLE = "import_progress";

export async function refusePartOfImport(client: ClientBase): Promise<void> {
  const found = "select from pg_tables where schemaname = current_schema() and tablename = $1";
  if ((await client.query(found, [IMPORT_TABLE])).rowCount === 0) return;
  const how = "import the same file again to finish it, or drop the schema to begin anew";
  throw new RelayError("unavailable", `the database holds a part of an import; ${how}`);
}

/**
 * Runs what is pending and returns the status from before. One connection at a time migrates: the others wait for its
 * advisory lock, which ends with the connection. The caller closes the connection, because its timeouts are changed.
 */
export async function migrate(
  client: ClientBase,
  schema: string,
  when: "always" | "empty",
): Promise<SchemaStatus> {
  await client.query("set statement_timeout = 0");
  await client.query("set lock_timeout = 0");
  await client.query(`select pg_advisory_lock(${ADVISORY_LOCK})`);
  // A step that waits for the lock of a table makes every relay wait behind it.
  await client.query("reset lock_timeout");
  const before = await readSchema(client);
  refuseNewerSchema(before);
  if (when === "empty" && !before.isEmpty && before.pending.length > 0) {
    const { version, knownVersion } = before;
    const what = `the database has schema version ${version}, this relay needs ${knownVersion}`;
    throw new RelayError("unavailable", `${what}; run \`a2a-relay migrate\`, or serve with --migrate`);
  }
  for (const [index, file] of before.pending.entries()) {
    await step(client, { schema, file, version: before.version + index + 1 });
  }
  return before;
}

interface Step {
  readonly schema: string;
  readonly file: string;
  readonly version: number;
}

async function step(client: ClientBase, { schema, file, version }: Step): Promise<void> {
  try {
    await client.query("begin");
    // A role that may not create schemas can migrate in one that was made for it.
    const { rowCount } = await client.query("select from pg_namespace where nspname = $1", [schema]);
    if (rowCount === 0) await client.query(`create schema ${schema}`);
    await client.query(
      "create table if not exists schema_version (version bigint primary key, name text not null)",
    );
    await client.query(readFileSync(join(import.meta.dirname, file), "utf8"));
    await client.query("insert into schema_version (version, name) values ($1, $2)", [version, file]);
    await client.query("commit");
  } catch (cause) {
    await client.query("rollback").catch(() => undefined);
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError("unavailable", `the migration ${file} failed and was undone: ${why}`, { cause });
  }
}
