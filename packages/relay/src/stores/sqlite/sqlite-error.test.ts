import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { isFatal, relayErrorFrom, sqliteCode } from "./sqlite-error.ts";

function sqliteError(errcode: number): Error {
  return Object.assign(new Error(`code ${errcode}`), { code: "ERR_SQLITE_ERROR", errcode });
}

const FULL = 13;
const BUSY = 5;
const IOERR_WRITE = 778;
const IOERR_FSYNC = 1034;
const IOERR_DIR_FSYNC = 1290;
const IOERR_SHMSIZE = 4874;
const CONSTRAINT_UNIQUE = 2067;

describe("isFatal", () => {
  it("ends the process after every fsync that failed, wherever it was", () => {
    for (const code of [IOERR_FSYNC, IOERR_DIR_FSYNC]) {
      for (const during of ["commit", "checkpoint", "statement"] as const) {
        assert.equal(isFatal(sqliteError(code), during), true);
      }
    }
  });

  it("ends the process when a commit fails on the disk, because its outcome is unknown", () => {
    assert.equal(isFatal(sqliteError(IOERR_WRITE), "commit"), true);
    assert.equal(isFatal(sqliteError(IOERR_WRITE), "checkpoint"), false);
    assert.equal(isFatal(sqliteError(IOERR_WRITE), "statement"), false);
  });

  it("continues after a full disk, a lock, and errors that are not the database's", () => {
    for (const error of [sqliteError(FULL), sqliteError(BUSY), new Error("other"), "text", undefined]) {
      assert.equal(isFatal(error, "commit"), false);
    }
  });
});

describe("relayErrorFrom", () => {
  it("calls a full disk storage_full, under each of its names", () => {
    assert.equal(relayErrorFrom(sqliteError(FULL)).code, "storage_full");
    assert.equal(relayErrorFrom(sqliteError(IOERR_SHMSIZE)).code, "storage_full");
  });

  it("calls a disk or file that does not work unavailable, and keeps the cause for the log", () => {
    const cause = sqliteError(IOERR_WRITE);
    const error = relayErrorFrom(cause);
    assert.equal(error.code, "unavailable");
    assert.equal(error.cause, cause);
    assert.equal(relayErrorFrom(sqliteError(BUSY)).code, "unavailable");
  });

  it("takes everything else for a mistake of ours, and passes on what it knows", () => {
    assert.equal(relayErrorFrom(sqliteError(CONSTRAINT_UNIQUE)).code, "internal");
    const refusal = new RelayError("not_found", "no such thing");
    assert.equal(relayErrorFrom(refusal), refusal);
  });
});

describe("sqliteCode", () => {
  it("reads the code of a real error of the driver", () => {
    const database = new DatabaseSync(":memory:");
    database.exec("create table t (id integer primary key); insert into t values (1)");
    assert.throws(
      () => database.exec("insert into t values (1)"),
      (error) => sqliteCode(error) === 1555,
    );
    database.close();
  });
});
