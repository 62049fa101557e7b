import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import type { RelayConfig, StoreConfig } from "../config/relay-config.ts";
import type { RelayStore } from "../core/ports/relay-store.ts";
import { AnchorFile } from "../stores/archive/anchor-file.ts";
import { openSqliteStore } from "../stores/sqlite/sqlite-relay-store.ts";

/** Declared here, so that the types of an embedding program do not need those of `pg`. */
export interface ConnectedDatabase {
  /** `host/name`. */
  readonly name: string;
  readonly schemaVersion: number;
  /** How many relays were on it already. */
  readonly otherRelays: number;
}

export interface OpenStoreOptions {
  /** The disk failed and its content is unknown: the process must end. */
  readonly onFatal: (reason: unknown) => void;
  /** Opens also what is being imported. */
  readonly isImport?: boolean;
}

type OpenStoreConfig = StoreConfig &
  Pick<RelayConfig, "databasePoolMax" | "databaseRls" | "migrate" | "checkpointPages">;

/** Only a database that several relays share says what it is, and what time it is. */
export interface OpenedStore extends RelayStore {
  readonly database?: ConnectedDatabase;
  nowMs?(): number;
}

export async function openStore(
  config: OpenStoreConfig,
  { onFatal, isImport }: OpenStoreOptions,
): Promise<OpenedStore> {
  openDirectory("data directory", config.dataDirectory, "--data");
  const { database, databasePoolMax, databaseRls: isRowSecured, migrate, checkpointPages } = config;
  if (database?.kind === "postgres") {
    const { connectionOptions } = await import("./migrate-database.ts");
    const { openPostgresStore } = await import("../stores/postgres/postgres-relay-store.ts");
    const options = { poolMax: databasePoolMax, isRowSecured, migrate, isImport };
    return openPostgresStore({ ...connectionOptions(database.url, config), ...options });
  }
  return openSqliteStore({ path: sqlitePath(config), checkpointPages, onFatal, isImport });
}

/** The file of the SQLite database. */
export function sqlitePath({ database, dataDirectory }: StoreConfig): string {
  return database?.kind === "sqlite" ? database.path : join(dataDirectory, "relay.sqlite");
}

/** Several relays on one database each have only a part of the anchors. */
export function anchorsOf({ anchorDirectory, database }: StoreConfig): AnchorFile {
  return new AnchorFile(anchorDirectory, { areAll: database?.kind !== "postgres" });
}

export function openDirectory(what: string, path: string, flag: string): void {
  try {
    makeDirectory(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const sentence = `cannot create the ${what} ${path}: ${why}; choose another with ${flag}`;
    throw new RelayError("unavailable", sentence, { cause });
  }
}

/** Step by step from the first parent that exists: a recursive mkdir never returns for a path under /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}
