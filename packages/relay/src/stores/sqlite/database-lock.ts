import { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import { openErrorFrom, sqliteCode } from "./sqlite-error.ts";

const BUSY = 5;

/**
 * Keeps a second relay from the same data. It is an open exclusive transaction on an empty database beside
 * the real one, so the operating system frees it however the process ends, and other programs may still
 * look into the real file.
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
      if (sqliteCode(error) !== BUSY) throw openErrorFrom(error, lockPath(path));
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

export function lockPath(path: string): string {
  return `${path}.lock`;
}
