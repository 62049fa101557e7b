import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLost, relayErrorFrom } from "./postgres-error.ts";

function answered(severity: string, code: string): Error {
  return Object.assign(new Error("被拒绝"), { name: "error", severity, code });
}

function ofSocket(code: string): Error {
  return Object.assign(new Error(`write ${code}`), { code });
}

const CASES: readonly (readonly [what: string, reason: Error, code: string, isLost: boolean])[] = [
  ["a dropped connection", new Error("Connection terminated unexpectedly"), "unavailable", true],
  ["no answer in time", new Error("Query read timeout"), "unavailable", true],
  ["a socket whose code has the form of the server's", ofSocket("EPIPE"), "unavailable", true],
  ["a server that shuts down", answered("FATAL", "57P01"), "unavailable", true],
  ["a server that has become a standby", answered("ERROR", "25006"), "unavailable", true],
  ["a password that is no longer right", answered("FATAL", "28P01"), "unavailable", true],
  ["a serialization failure", answered("ERROR", "40001"), "unavailable", false],
  ["a lock that is not free in time", answered("ERROR", "55P03"), "unavailable", false],
  ["a full queue of notifications", answered("ERROR", "54000"), "unavailable", false],
  ["a full disk", answered("ERROR", "53100"), "storage_full", false],
  ["a wrong statement", answered("ERROR", "42601"), "internal", false],
  ["our own mistake", new TypeError("undefined"), "internal", false],
];

describe("an error of PostgreSQL", () => {
  for (const [what, reason, code, lost] of CASES) {
    it(`${code}: ${what}${lost ? ", which costs the connection" : ""}`, () => {
      assert.deepEqual([relayErrorFrom(reason).code, isLost(reason)], [code, lost]);
    });
  }
});
