import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { selfSigned } from "../../../testing/certificate.ts";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { Database, type PostgresOptions, withConnection } from "./database.ts";

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

function options(more: Partial<PostgresOptions> = {}): PostgresOptions {
  return { url: server.url, poolMax: 2, schema: server.newSchema(), ...more };
}

function run(database: PostgresOptions, ...statements: readonly string[]): Promise<void> {
  return withConnection(database, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
}

/** The sentence with which it is refused. */
async function refusal(database: PostgresOptions): Promise<string> {
  try {
    await using _ = await Database.open(database);
  } catch (reason) {
    assert.ok(reason instanceof RelayError, String(reason));
    assert.equal(reason.code, "unavailable");
    return reason.message;
  }
  return assert.fail("the database was opened");
}

/** The server's URL with another part. */
function urlWith(change: (url: URL) => void): string {
  const url = new URL(server.url);
  change(url);
  return url.href;
}

describe("a PostgreSQL database", () => {
  it("gets its schema when it is empty, also from several relays at once", async () => {
    const empty = options();
    const databases = await Promise.all([1, 2, 3].map(() => Database.open(empty)));
    for (const database of databases) {
      await using _ = database;
      const rows = await database.rows("select version from schema_version");
      assert.deepEqual(rows.length, database.schemaVersion);
    }
  });

  it("works in a schema that was made for it, as a role that may not make one", async () => {
    const owned = options();
    const role = `${owned.schema}_role`;
    const create = [`create role ${role} login password '百分%之'`, `create schema ${owned.schema}`];
    await run(owned, ...create, `grant all on schema ${owned.schema} to ${role}`);
    // The percent sign as people write it, not as URLs do.
    const url = server.url.replace(/\/\/.*@/, `//${role}:百分%之@`);
    await using database = await Database.open({ ...owned, url });
    assert.deepEqual(await database.row("select current_user as name"), { name: role });
  });

  it("has the timeouts of the relay, and the parameters that its URL names", async () => {
    const url = urlWith(({ searchParams }) => searchParams.set("options", "-c geqo=off"));
    const timeouts = { statementTimeoutMs: 1_234, lockTimeoutMs: 567 };
    await using database = await Database.open(options({ url, ...timeouts }));
    const sql =
      "select current_setting('statement_timeout') as a, current_setting('lock_timeout') as b, current_setting('geqo') as c";
    assert.deepEqual(await database.row(sql), { a: "1234ms", b: "567ms", c: "off" });
  });
});

describe("a PostgreSQL database is refused in one sentence", () => {
  it("when no server answers", async () => {
    const url = "postgres://lulu:geheim@localhost:1/中继";
    const message = await refusal(options({ url }));
    assert.match(message, /^the database localhost:1\/\S+ cannot be used: connect ECONNREFUSED .+:1$/);
  });

  it("when the password is wrong, which it does not repeat", async () => {
    const url = urlWith((parts) => (parts.password = "geheim"));
    const message = await refusal(options({ url }));
    assert.match(message, /cannot be used: password authentication failed for user/);
    assert.doesNotMatch(message, /geheim/);
  });

  it("when it is not called over TLS though a CA file is named", async () => {
    const directory = mkdtempSync(join(tmpdir(), "a2a-relay-ca-"));
    const caFile = join(directory, "授权.pem");
    writeFileSync(caFile, selfSigned("db.example").cert);
    assert.match(await refusal(options({ caFile })), /cannot be used: The server does not support SSL/);
    rmSync(directory, { recursive: true });
    assert.match(await refusal(options({ caFile })), /cannot be used: ENOENT.*授权\.pem/);
  });

  it("when its schema is newer", async () => {
    const newer = options({ migrate: true });
    await (await Database.open(newer))[Symbol.asyncDispose]();
    await run(newer, "insert into schema_version (version, name) values (99, '明天.sql')");
    assert.match(await refusal(newer), /has schema version 99, this relay knows \d+; start a newer relay$/);
  });

  it("when its schema is older, until it is to be migrated", async () => {
    const older = options();
    await run(
      older,
      `create schema ${older.schema}`,
      "create table schema_version (version bigint primary key, name text not null)",
    );
    assert.match(await refusal(older), /has schema version 0, this relay needs \d+; run `a2a-relay migrate`/);
    await using database = await Database.open({ ...older, migrate: true });
    assert.deepEqual(await database.rows("select * from message"), []);
  });

  it("when a migration fails, and nothing of it remains", async () => {
    const used = options();
    await run(used, `create schema ${used.schema}`, "create table probe (foreign_one int)");
    assert.match(await refusal(used), /^the migration 0001-relay\.sql failed and was undone: .*"probe"/);
    await run(used, "drop table probe");
    await (await Database.open(used))[Symbol.asyncDispose]();
  });
});

describe("the connections of a relay to PostgreSQL", () => {
  it("survive that the server ends one between two statements of a transaction", async () => {
    await using database = await Database.open(options({ poolMax: 4 }));
    const client = await database.pool.connect();
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    await database.rows("select pg_terminate_backend($1)", [rows[0]?.pid]);
    await ended;
    client.release(true);
    assert.deepEqual(await database.row("select 1 as one"), { one: 1 });
  });
});
