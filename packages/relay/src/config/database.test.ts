import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseDatabaseUrl } from "./database.ts";

function complain(expected: string): never {
  throw new Error(expected);
}

describe("the URL of the database", () => {
  it("names a PostgreSQL server, also by the socket of a managed one", () => {
    const url = "postgres://relay:geheim@db.example:5432/relay?sslmode=require";
    assert.deepEqual(parseDatabaseUrl(url, complain), { kind: "postgres", url });
    assert.deepEqual(parseDatabaseUrl("postgresql://u:p@/name?host=/cloudsql/a:b:c", complain), {
      kind: "postgres",
      url: "postgresql://u:p@localhost/name?host=/cloudsql/a:b:c",
    });
  });

  it("names an SQLite file", () => {
    for (const text of ["sqlite:/data/中继.db", "sqlite:///data/中继.db"]) {
      assert.deepEqual(parseDatabaseUrl(text, complain), { kind: "sqlite", path: "/data/中继.db" });
    }
    assert.deepEqual(parseDatabaseUrl("sqlite:relay.db", complain), { kind: "sqlite", path: "relay.db" });
  });

  it("is refused in any other form, with a sentence that says which forms there are", () => {
    for (const text of [
      "mysql://host/name",
      "redis://host",
      "/data/relay.db",
      "sqlite:",
      "postgres:host",
      "host",
    ]) {
      assert.throws(() => parseDatabaseUrl(text, complain), /postgres:\/\/.*sqlite:/, text);
    }
  });

  it("is refused where everything would be lost with the process", () => {
    assert.throws(() => parseDatabaseUrl("sqlite::memory:", complain), /only in memory/);
  });
});
