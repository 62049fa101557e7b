import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import { openErrorFrom, relayErrorFrom, SQLITE_BUSY, sqliteCode } from "./sqlite-error.ts";

/** A row as its column values, in the order of the statement's column list. */
export type Row = readonly SQLOutputValue[];

interface RowStatement {
  run(...values: SQLInputValue[]): { readonly changes: number | bigint };
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  iterate(...values: SQLInputValue[]): Iterable<Row>;
}

/** A prepared statement with rows as arrays. Everything it throws is a `RelayError`. */
export class Statement {
  readonly #statement: RowStatement;

  constructor(database: DatabaseSync, sql: string) {
    this.#statement = database.prepare(sql, { returnArrays: true }) as unknown as RowStatement;
  }

  /** Answers how many rows changed. */
  run(...values: SQLInputValue[]): number {
    try {
      return Number(this.#statement.run(...values).changes);
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  get(...values: SQLInputValue[]): Row | undefined {
    try {
      return this.#statement.get(...values);
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  all(...values: SQLInputValue[]): Row[] {
    try {
      return this.#statement.all(...values);
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  /** Reads row by row, for callers that stop early. */
  *iterate(...values: SQLInputValue[]): Generator<Row, void, void> {
    try {
      yield* this.#statement.iterate(...values);
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }
}

export type Statements<Sql> = { readonly [Name in keyof Sql]: Statement };

export function prepareAll<Sql extends Readonly<Record<string, string>>>(
  database: DatabaseSync,
  sql: Sql,
): Statements<Sql> {
  const prepared = Object.entries(sql).map(([name, text]) => [name, new Statement(database, text)]);
  return Object.fromEntries(prepared) as Statements<Sql>;
}

export interface DatabaseOptions {
  /** A file, or ":memory:". */
  readonly path: string;
  /** The most pages the file may grow to; absent: as many as the disk holds. */
  readonly pagesMax?: number | undefined;
  /** Whether this is the import itself: all others refuse a database with a part of one. */
  readonly isImport?: boolean | undefined;
}

export interface OpenDatabase {
  readonly database: DatabaseSync;
  /** Absent in memory. */
  readonly lock: DatabaseLock | undefined;
}

const IN_MEMORY = ":memory:";
/** A write waits this long for another program that reads the file. */
const BUSY_TIMEOUT_MS = 2_000;
/** Messages of one or two kilobytes fill a larger page better. Only a new file takes it. */
const PAGE_BYTES = 8_192;

// The relay runs checkpoints itself (see checkpoints.ts): SQLite's own hide a failed fsync. `secure_delete`
// overwrites deleted secrets in the pages that are written anyway.
const PRAGMAS = `
  pragma synchronous = full;
  pragma foreign_keys = off;
  pragma cache_size = -65536;
  pragma temp_store = memory;
  pragma secure_delete = fast;
  pragma wal_autocheckpoint = 0;`;

/** Opens, locks and migrates the file. Every failure is a sentence for the operator who starts the relay. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  if (options.path === IN_MEMORY) return { database: configuredDatabase(options), lock: undefined };
  createPrivateFiles(options.path);
  const lock = DatabaseLock.acquire(options.path);
  try {
    return { database: configuredDatabase(options), lock };
  } catch (error) {
    lock[Symbol.dispose]();
    throw openErrorFrom(error, options.path);
  }
}

function configuredDatabase(options: DatabaseOptions): DatabaseSync {
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
    if (options.isImport !== true) refusePartOfImport(database, options.path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens a database only for reading, also beside the relay that uses it. Closing it as the last one leaves one file
 * without a log, which a read-only connection could not do.
 */
export function openForReading(path: string): DatabaseSync {
  if (!existsSync(path)) {
    const how = "choose another with --data or --database";
    throw new RelayError("unavailable", `there is no database ${path}; ${how}`);
  }
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    database.exec("pragma query_only = on");
    const version = schemaVersion(database, path);
    const newest = newestVersion();
    refuseNewer(path, version, newest);
    if (version < newest) {
      const what = `${path} was written by an older relay (schema ${version}, this one needs ${newest})`;
      throw new RelayError("unavailable", `${what}; start the relay of this version on it once`);
    }
    refusePartOfImport(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw openErrorFrom(error, path);
  }
}

/** The table exists from the beginning of an import until it is verified. */
export const IMPORT_TABLE = "import_progress";

function refusePartOfImport(database: DatabaseSync, path: string): void {
  const tables = database.prepare(TABLES).all();
  if (!tables.some((table) => table["name"] === IMPORT_TABLE)) return;
  const how = "import the same file again to finish it, or remove the database to begin anew";
  throw new RelayError("unavailable", `${path} holds a part of an import; ${how}`);
}

function useWriteAheadLog(database: DatabaseSync, path: string): void {
  const mode = new Statement(database, "pragma journal_mode = wal").get()?.[0];
  if (mode === "wal") return;
  throw new RelayError(
    "unavailable",
    `cannot open ${path}: its file system does not support a write-ahead log; choose a --data directory on a local disk`,
  );
}

/**
 * Messages and the relay's keys are private: only the user who runs the relay may read the files, also those of a
 * restored copy. SQLite gives its side files the same mode.
 */
function createPrivateFiles(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
      throw new RelayError("unavailable", `cannot open ${path}: it is a directory, not a database file`);
    }
    for (const file of [path, lockPath(path)]) closeSync(openSync(file, "a", 0o600));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) closeToOthers(file);
  } catch (error) {
    if (error instanceof RelayError) throw error;
    throw new RelayError("unavailable", `cannot open ${path}: ${fileReason(error)}`, { cause: error });
  }
}

/** Windows shows modes that cannot be changed; there the directory's access list protects the file. */
function closeToOthers(file: string): void {
  if (process.platform === "win32") return;
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) !== 0) chmodSync(file, 0o600);
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

function lockPath(path: string): string {
  return `${path}.lock`;
}

/**
 * Keeps a second relay from the same data: an open exclusive transaction on an empty database beside the real one.
 * The operating system frees it however the process ends, and other programs may still read the real file.
 */
export class DatabaseLock implements Disposable {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  static acquire(path: string): DatabaseLock {
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(lockPath(path));
      database.exec("begin exclusive");
      return new DatabaseLock(database);
    } catch (error) {
      database?.close();
      if (sqliteCode(error) !== SQLITE_BUSY) throw openErrorFrom(error, lockPath(path));
      throw new RelayError(
        "unavailable",
        `${path} is already in use by another relay; stop it or choose another --data directory`,
        { cause: error },
      );
    }
  }

  // The file stays: deleting it would let a third relay lock a new one while a second holds the old.
  [Symbol.dispose](): void {
    this.#database.close();
  }
}

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
 * Brings the schema up to date, forward only, one transaction a step. It refuses a file of another program or of a
 * newer relay before `configure`, and so before anything in the file changes.
 */
export function migrate(database: DatabaseSync, path: string, configure: () => void): void {
  const current = schemaVersion(database, path);
  refuseNewer(path, current, newestVersion());
  configure();
  database.exec(CREATE_VERSIONS);
  for (const migration of listMigrations()) {
    if (migration.version > current) apply(database, migration);
  }
}

function newestVersion(): number {
  return listMigrations().at(-1)?.version ?? 0;
}

function refuseNewer(path: string, current: number, newest: number): void {
  if (current <= newest) return;
  throw new RelayError(
    "unavailable",
    `${path} was written by a newer relay (schema ${current}, this one knows ${newest}); upgrade a2a-relay`,
  );
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
