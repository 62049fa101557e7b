import { RelayError } from "@a2a-relay/protocol";

// SQLite's primary result codes; the low byte of every extended code.
export const SQLITE_BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

// Extended codes: the disk did not confirm what it was told to keep.
const IOERR_FSYNC = 1034;
const IOERR_DIR_FSYNC = 1290;
// The shared-memory file beside the WAL could not grow: a full disk by another name.
const IOERR_SHMSIZE = 4874;

/** The extended result code of an error of `node:sqlite`, also behind a `RelayError`; undefined for other errors. */
export function sqliteCode(error: unknown): number | undefined {
  if (error instanceof RelayError) return sqliteCode(error.cause);
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}

/** The driver's error for a statement whose database was closed. */
function isClosed(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_INVALID_STATE";
}

/**
 * After a failed fsync the content of the disk is unknown, and a second fsync may wrongly succeed: the process must
 * end and read the file again. At a commit every I/O error leaves the outcome unknown.
 */
export function isFatal(error: unknown, during: "commit" | "checkpoint" | "statement"): boolean {
  const code = sqliteCode(error);
  if (code === undefined) return false;
  if (code === IOERR_FSYNC || code === IOERR_DIR_FSYNC) return true;
  return during === "commit" && primary(code) === IOERR;
}

/** The error that a caller of the store gets for an error of the database. */
export function relayErrorFrom(error: unknown): RelayError {
  if (error instanceof RelayError) return error;
  if (isClosed(error)) return new RelayError("unavailable", "the store is closed", { cause: error });
  const code = sqliteCode(error);
  if (code === undefined) return RelayError.from(error);
  const options = { cause: error };
  if (primary(code) === FULL || code === IOERR_SHMSIZE) {
    return new RelayError("storage_full", "the disk is full; nothing was written, free some space", options);
  }
  if (primary(code) === SQLITE_BUSY) {
    const message = "another program is writing to the database; try again";
    return new RelayError("unavailable", message, options);
  }
  if ([IOERR, CORRUPT, READONLY, CANTOPEN, NOTADB].includes(primary(code))) {
    const message = "the database cannot be read or written; the relay's log says more";
    return new RelayError("unavailable", message, options);
  }
  return RelayError.from(error);
}

/** The same for a database that did not open, worded for the operator who starts the relay. */
export function openErrorFrom(error: unknown, path: string): RelayError {
  if (error instanceof RelayError) return error;
  return new RelayError("unavailable", `cannot open ${path}: ${openReason(error)}`, { cause: error });
}

function openReason(error: unknown): string {
  const code = sqliteCode(error);
  switch (code === undefined ? undefined : primary(code)) {
    case SQLITE_BUSY:
      return "another program has it locked; close that program and try again";
    case READONLY:
      return "it is read-only; give the relay write permission or choose another --data directory";
    case CORRUPT:
      return "the database is damaged; restore it from a backup or choose another --data directory";
    case FULL:
      return "the disk is full; free some space and try again";
    case CANTOPEN:
      return "it or its directory is missing or not writable; check the permissions or choose another --data directory";
    case NOTADB:
      return "it is not a SQLite database; move the file away or choose another --data directory";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

function primary(code: number): number {
  return code & 0xff;
}
