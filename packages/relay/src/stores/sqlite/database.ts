import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import { DatabaseLock, lockPath } from "./database-lock.ts";
import { migrate } from "./migrate.ts";
import { openErrorFrom } from "./sqlite-error.ts";

/** A row as its column values, in the order of the statement's column list. */
export type Row = readonly SQLOutputValue[];

/** A prepared statement whose rows are arrays: half the cost of objects, and joins need no aliases. */
export interface Statement {
  run(...values: SQLInputValue[]): { readonly changes: number | bigint };
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  iterate(...values: SQLInputValue[]): Iterable<Row>;
}

export interface DatabaseOptions {
  /** A file, or ":memory:". */
  readonly path: string;
  /** The most pages the file may grow to; absent: as many as the disk holds. */
  readonly pagesMax?: number | undefined;
}

export interface OpenDatabase {
  readonly database: DatabaseSync;
  /** Absent in memory. */
  readonly lock: DatabaseLock | undefined;
}

const IN_MEMORY = ":memory:";
// Another program may look at the file while the relay runs; a write waits this long for it.
const BUSY_TIMEOUT_MS = 2_000;

// Messages of one or two kilobytes fill a larger page better: a batch costs a seventh less. Only a new file takes it.
const PAGE_BYTES = 8_192;

// Checkpoints are ours (see checkpoints.ts): SQLite's own would swallow a failed fsync.
// What is forgotten, such as a secret, is overwritten in the pages that are written anyway.
const PRAGMAS = `
  pragma synchronous = full;
  pragma foreign_keys = off;
  pragma cache_size = -65536;
  pragma temp_store = memory;
  pragma secure_delete = fast;
  pragma wal_autocheckpoint = 0;`;

/** Opens, locks and migrates the file. Every failure is a sentence for whoever starts the relay. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  if (options.path === IN_MEMORY) return { database: prepareDatabase(options), lock: undefined };
  createPrivateFiles(options.path);
  const lock = DatabaseLock.acquire(options.path);
  try {
    return { database: prepareDatabase(options), lock };
  } catch (error) {
    lock[Symbol.dispose]();
    throw openErrorFrom(error, options.path);
  }
}

export function prepare(database: DatabaseSync, sql: string): Statement {
  return database.prepare(sql, { returnArrays: true }) as unknown as Statement;
}

function prepareDatabase(options: DatabaseOptions): DatabaseSync {
  const database = new DatabaseSync(options.path, {
    enableForeignKeyConstraints: false,
    timeout: BUSY_TIMEOUT_MS,
  });
  try {
    migrate(database, options.path, () => {
      database.exec(`pragma page_size = ${PAGE_BYTES}`);
      if (options.path !== IN_MEMORY) useWriteAheadLog(database, options.path);
      database.exec(PRAGMAS);
      if (options.pagesMax !== undefined) database.exec(`pragma max_page_count = ${options.pagesMax}`);
    });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function useWriteAheadLog(database: DatabaseSync, path: string): void {
  const mode = prepare(database, "pragma journal_mode = wal").get()?.[0];
  if (mode === "wal") return;
  throw new RelayError(
    "unavailable",
    `cannot open ${path}: its file system does not support a write-ahead log; choose a --data directory on a local disk`,
  );
}

/** MailboxMessage is private: only the user who runs the relay may read the files. SQLite's side files follow. */
function createPrivateFiles(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
      throw new RelayError("unavailable", `cannot open ${path}: it is a directory, not a database file`);
    }
    for (const file of [path, lockPath(path)]) closeSync(openSync(file, "a", 0o600));
  } catch (error) {
    if (error instanceof RelayError) throw error;
    throw new RelayError("unavailable", `cannot open ${path}: ${fileReason(error)}`, { cause: error });
  }
}

function fileReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return "no permission to write there; change the permissions or choose another --data directory";
  }
  if (code === "ENOSPC") return "the disk is full; free some space and try again";
  if (code === "ENOTDIR" || code === "EEXIST") return "part of the path is a file, not a directory";
  return error instanceof Error ? error.message : String(error);
}
