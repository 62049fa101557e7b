import { readdirSync, readFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";

interface Migration {
  readonly version: number;
  readonly name: string;
}

const MIGRATIONS = new URL("./migrations/", import.meta.url);
const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/;

const TABLES = "select name from sqlite_schema where type = 'table'";
const VERSION = "select max(version) as version from schema_version";
const CREATE_VERSIONS = `
  create table if not exists schema_version (version integer primary key, name text not null) strict`;
const RECORD_VERSION = "insert into schema_version (version, name) values (?, ?)";

/**
 * Brings the schema up to date, forward only, one transaction a step. A file that is not ours or is newer
 * than this relay is refused before `configure`, and so before anything in it changes.
 */
export function migrate(database: DatabaseSync, path: string, configure: () => void): void {
  const current = schemaVersion(database, path);
  const migrations = listMigrations();
  const newest = migrations.at(-1)?.version ?? 0;
  if (current > newest) {
    throw new RelayError(
      "unavailable",
      `${path} was written by a newer relay (schema ${current}, this one knows ${newest}); upgrade a2a-relay`,
    );
  }
  configure();
  database.exec(CREATE_VERSIONS);
  for (const migration of migrations) {
    if (migration.version > current) apply(database, migration);
  }
}

function schemaVersion(database: DatabaseSync, path: string): number {
  const tables = database.prepare(TABLES).all();
  if (tables.length === 0) return 0;
  if (!tables.some((table) => table["name"] === "schema_version")) {
    throw new RelayError(
      "unavailable",
      `${path} is a database of another program; choose another --data directory`,
    );
  }
  return Number(database.prepare(VERSION).get()?.["version"] ?? 0);
}

function listMigrations(): readonly Migration[] {
  return readdirSync(MIGRATIONS)
    .toSorted()
    .flatMap((name) => {
      const version = FILE_NAME.exec(name)?.[1];
      return version === undefined ? [] : [{ version: Number(version), name }];
    });
}

// The version is recorded first, so that two migrations at once clash before either has changed anything.
function apply(database: DatabaseSync, migration: Migration): void {
  const sql = readFileSync(new URL(migration.name, MIGRATIONS), "utf8");
  database.exec("begin immediate");
  try {
    database.prepare(RECORD_VERSION).run(migration.version, migration.name);
    database.exec(sql);
    database.exec("commit");
  } catch (error) {
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}
