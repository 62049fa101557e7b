import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { cliRun } from "../../../../testing/cli-run.ts";
import { startPostgres, type TestServer } from "../../../../testing/postgres-server.ts";

describe("migrate", () => {
  let server: TestServer;
  let env: { readonly DATABASE_URL: string };
  let name = "";
  const data = mkdtempSync(join(tmpdir(), "migrate-"));

  async function query(url: string, sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(sql);
    await client.end();
  }

  before(async () => {
    server = await startPostgres();
    name = server.newSchema();
    await query(server.url, `create database ${name}`);
    const url = new URL(server.url);
    url.pathname = name;
    env = { DATABASE_URL: url.href };
  });
  after(async () => {
    await query(server.url, `drop database ${name} with (force)`);
    await server[Symbol.asyncDispose]();
    rmSync(data, { recursive: true });
  });

  /** The first output of a relay, and what `beside` does while it runs. */
  async function serve(flags: readonly string[], beside = async () => {}): Promise<string> {
    const ending = new AbortController();
    let beginning: Promise<void> | undefined;
    const directory = mkdtempSync(join(data, "relay-"));
    const argv = ["serve", "--port", "0", "--data", directory, "--log-level", "silent", ...flags];
    const { stdout } = await cliRun(argv, {
      env,
      signal: ending.signal,
      onStdout: () => void (beginning ??= beside().finally(() => ending.abort())),
    });
    await beginning;
    return stdout;
  }

  async function json(...flags: readonly string[]): Promise<unknown> {
    const { code, stdout, stderr } = await cliRun(["migrate", "--json", ...flags], { env });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  }

  it("shows what is pending, runs it once, and never shows the password", async () => {
    const { host } = new URL(env.DATABASE_URL);
    const database = `${host}/${name}`;
    const pending = ["0001-relay.sql"];
    const unused = { database, schema_version: 0, known_version: 1, pending };
    assert.deepEqual(await json("--status"), unused);
    assert.deepEqual(await json("--dry-run"), unused);
    const { stdout } = await cliRun(["migrate"], { env });
    assert.equal(stdout, `${database} went from schema version 0 to 1; ran:\n  0001-relay.sql\n`);
    assert.deepEqual(await json(), { database, schema_version: 1, from_version: 1, ran: [] });
    assert.deepEqual(await json("--status"), { database, schema_version: 1, known_version: 1, pending: [] });
  });

  it("is not needed for an empty database; `serve` says its version and how many relays are on it", async () => {
    await query(env.DATABASE_URL, "drop schema if exists a2a_relay cascade");
    let second = "";
    const first = await serve([], async () => {
      second = await serve(["--json"]);
    });
    const { host } = new URL(env.DATABASE_URL);
    const line = `  database    postgres ${host}/${name}, schema version 1, 0 other relays\n`;
    assert.ok(first.includes(line), first);
    const { database } = JSON.parse(second) as { readonly database: unknown };
    const expected = { kind: "postgres", name: `${host}/${name}`, schema_version: 1, other_relays: 1 };
    assert.deepEqual(database, expected);
  });

  it("is what `serve` asks for on an older schema, unless it may migrate itself", async () => {
    await query(env.DATABASE_URL, "drop schema if exists a2a_relay cascade");
    await query(env.DATABASE_URL, "create schema a2a_relay");
    await query(env.DATABASE_URL, "create table a2a_relay.schema_version (version bigint, name text)");
    const argv = ["serve", "--port", "0", "--data", data, "--log-level", "silent"];
    const refused = await cliRun(argv, { env });
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /^error: .* run `a2a-relay migrate`, or serve with --migrate\n$/);
    assert.match(await serve(["--migrate"]), /schema version 1, 0 other relays\n/);
  });

  it("refuses a newer schema, whose version `--status` shows", async () => {
    await cliRun(["migrate"], { env });
    await query(env.DATABASE_URL, "insert into a2a_relay.schema_version values (99, '明天.sql')");
    for (const argv of [["migrate"], ["migrate", "--dry-run"]]) {
      const { code, stderr } = await cliRun(argv, { env });
      assert.equal(code, 4);
      assert.match(stderr, /^error: the database has schema version 99, this relay knows 1; .*\n$/);
    }
    const { stdout } = await cliRun(["migrate", "--status"], { env });
    assert.match(stdout, /has schema version 99, this relay knows 1\n$/);
  });

  it("has nothing to do for SQLite", async () => {
    const { code, stdout } = await cliRun(["migrate", "--database", "sqlite:relay.db"], { env });
    const sentence = "the migrations of an SQLite database run when the relay starts\n";
    assert.deepEqual([code, stdout], [0, sentence]);
  });
});
