import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import type { LeaseResponse, SendResponse } from "@a2a-relay/protocol";
import pg from "pg";
import { loadConfig } from "../../packages/relay/src/config/load-config.ts";
import { type RunningRelay, startRelay } from "../../packages/relay/src/server/start-relay.ts";
import { openSqliteStore } from "../../packages/relay/src/stores/sqlite/sqlite-relay-store.ts";
import { cliRun } from "../../packages/relay/testing/cli-run.ts";
import { populate, sendOnRecord } from "../../packages/relay/testing/populated-store.ts";
import { startPostgres, type TestServer } from "../../packages/relay/testing/postgres-server.ts";
import { recordsIn } from "../../packages/relay/testing/transfer-files.ts";
import { childEnv } from "../support/child-env.ts";
import { eventually } from "../support/eventually.ts";

const LAUNCHER = join(import.meta.dirname, "..", "..", "packages", "relay", "bin", "a2a-relay.js");
const ROOT_KEY = "0123456789abcdef0123456789abcdef";
const LULU = "lulu@笔记本";
const ZHIWEI = "知微@studio";
/** Enough lines for several batches of an import, and for several writes of an export. */
const MANY = 1_500;

const folder = mkdtempSync(join(tmpdir(), "a2a-relay-move-"));
let server: TestServer;

before(async () => {
  server = await startPostgres();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The flags of one store, as `serve`, `export` and `import` take them. */
type StoreFlags = Readonly<Record<string, string>>;

async function newStore(kind: "SQLite" | "PostgreSQL"): Promise<StoreFlags> {
  const data = mkdtempSync(join(folder, "data-"));
  return kind === "SQLite" ? { data } : { data, database: await server.newDatabase() };
}

function words(flags: StoreFlags): readonly string[] {
  return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
}

async function ok(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cliRun(argv);
  assert.equal(code, 0, stderr);
  return stdout;
}

function serve(store: StoreFlags): Promise<RunningRelay> {
  const flags = { ...store, port: "0", "log-level": "silent" };
  return startRelay(loadConfig({ flags, env: { A2A_RELAY_API_KEY: ROOT_KEY } }));
}

/** What agents hold of a relay when it moves. */
interface Held {
  readonly keys: { readonly lulu: string; readonly zhiwei: string; readonly other: string };
  readonly receipt: SendResponse;
  readonly lease: LeaseResponse["messages"][number];
  readonly cursor: string;
}

const KEYED = { from: LULU, to: ZHIWEI, body: "请翻译", idempotency_key: "第一次" };

async function work(relay: RunningRelay): Promise<Held> {
  const operator = new RelayClient({ url: relay.url, apiKey: ROOT_KEY });
  const { key } = await operator.createKey({ tenant: "acme" });
  const other = new RelayClient({ url: `${relay.url}/t/acme`, apiKey: key });
  const [{ api_key: lulu = "" }, { api_key: zhiwei = "" }, { api_key: acme = "" }] = [
    await operator.register({ agent_id: LULU }),
    await operator.register({ agent_id: ZHIWEI, aliases: ["知微"] }),
    await other.register({ agent_id: LULU }),
  ];
  const sender = new RelayClient({ url: relay.url, apiKey: lulu });
  const receiver = new RelayClient({ url: relay.url, apiKey: zhiwei });
  const receipt = await sender.send(KEYED);
  for (const body of ["读过", "没读"]) await sender.send({ from: LULU, to: ZHIWEI, body });
  const [lease] = (await receiver.lease(ZHIWEI, { max: 1, worker: "w-1" })).messages;
  assert.ok(lease);
  const { cursor } = await receiver.readMailbox(ZHIWEI, { limit: 1 });
  return { keys: { lulu, zhiwei, other: acme }, receipt, lease, cursor };
}

async function checkMoved(relay: RunningRelay, { keys, receipt, lease, cursor }: Held): Promise<void> {
  const sender = new RelayClient({ url: relay.url, apiKey: keys.lulu });
  const receiver = new RelayClient({ url: relay.url, apiKey: keys.zhiwei });
  const repeated = await sender.send(KEYED);
  assert.deepEqual(repeated.receipt.message_id, receipt.receipt.message_id);
  const leases = [{ message_id: lease.message_id, lease_id: lease.lease.id }];
  assert.equal((await receiver.ack(ZHIWEI, { leases })).acknowledged, 1);
  await sender.send({ from: LULU, to: "知微", body: "搬家之后" });
  const { messages } = await receiver.readMailbox(ZHIWEI, { since: cursor });
  assert.deepEqual(
    messages.map(({ message }) => message.body),
    ["没读", "搬家之后"],
  );
  const other = new RelayClient({ url: `${relay.url}/t/acme`, apiKey: keys.other });
  assert.deepEqual((await other.readMailbox(LULU)).messages, []);
  const stranger = new RelayClient({ url: relay.url, apiKey: keys.other });
  await assert.rejects(stranger.readMailbox(ZHIWEI));
  const operator = new RelayClient({ url: relay.url, apiKey: ROOT_KEY });
  assert.equal((await operator.verifyJournal()).ok, true);
}

describe("moving a relay", { timeout: 300_000 }, () => {
  for (const [from, to] of [
    ["SQLite", "PostgreSQL"],
    ["PostgreSQL", "SQLite"],
  ] as const) {
    it(`from ${from} to ${to} keeps keys, leases, cursors and send keys`, async () => {
      const [source, target] = [await newStore(from), await newStore(to)];
      const file = join(folder, `${from}.ndjson`);
      let held: Held;
      {
        await using relay = await serve(source);
        held = await work(relay);
      }
      await ok("export", "--to", file, ...words(source));
      await ok("import", "--from", file, ...words(target));
      await using relay = await serve(target);
      await checkMoved(relay, held);
    });
  }

  it("exports a running relay with all events of the messages it has", async () => {
    for (const kind of ["SQLite", "PostgreSQL"] as const) {
      const [source, target] = [await newStore(kind), await newStore("SQLite")];
      const file = join(folder, `running-${kind}.ndjson`);
      await using relay = await serve(source);
      await work(relay);
      const sender = new RelayClient({ url: relay.url, apiKey: ROOT_KEY });
      const ending = new AbortController();
      const sending = Array.from({ length: 8 }, async () => {
        while (!ending.signal.aborted) await sender.send({ from: LULU, to: ZHIWEI, body: "还在写" });
      });
      await ok("export", "--to", file, ...words(source));
      ending.abort();
      await Promise.all(sending);
      await ok("import", "--from", file, ...words(target));
    }
  });
});

/** Starts the command as a process of its own. */
function start(...argv: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [LAUNCHER, ...argv], {
    env: childEnv({ HOME: folder }),
    stdio: ["pipe", "ignore", "inherit"],
  });
  // A killed one does not read to the end.
  child.stdin.on("error", () => undefined);
  return child;
}

/** Kills it once the condition holds, or when it never does. */
async function killOnce<Value>(
  child: ChildProcess,
  poll: () => Promise<Value>,
  isReached: (value: Value) => boolean,
): Promise<Value> {
  const ended = once(child, "exit");
  try {
    return await eventually(poll, isReached);
  } finally {
    child.kill("SIGKILL");
    assert.deepEqual(await ended, [null, "SIGKILL"]);
  }
}

/** The lines of an import that are durable; 0 before it has begun. */
async function importedLines({ data = "", database }: StoreFlags): Promise<number> {
  try {
    if (database === undefined) {
      using reader = new DatabaseSync(join(data, "relay.sqlite"), { readOnly: true });
      return Number(reader.prepare("select lines from import_progress").get()?.["lines"]);
    }
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    try {
      const { rows } = await client.query("select lines from a2a_relay.import_progress");
      return Number((rows as readonly { readonly lines: string }[])[0]?.lines);
    } finally {
      await client.end();
    }
  } catch {
    return 0;
  }
}

describe("a move whose process is killed", { timeout: 300_000 }, () => {
  let file = "";

  before(async () => {
    const source = await newStore("SQLite");
    {
      const path = join(source["data"] ?? "", "relay.sqlite");
      await using store = await openSqliteStore({
        path,
        checkpointPages: 1_000,
        onFatal: () => assert.fail(),
      });
      await populate(store);
      const ids = Array.from({ length: MANY }, (_, index) => `消息-${index}`);
      await Promise.all(
        ids.map((id) => sendOnRecord(store, [{ id, json: JSON.stringify({ body: id.repeat(50) }) }])),
      );
    }
    file = join(folder, "many.ndjson");
    await ok("export", "--to", file, ...words(source));
  });

  for (const kind of ["SQLite", "PostgreSQL"] as const) {
    it(`continues an import into ${kind}`, async () => {
      const target = await newStore(kind);
      const text = readFileSync(file);
      const child = start("import", "--from", "-", ...words(target));
      child.stdin?.write(text.subarray(0, Math.floor(text.length * 0.7)));
      const lines = await killOnce(
        child,
        () => importedLines(target),
        (count) => count > 1_000,
      );
      assert.ok(lines < recordsIn(file).length);
      await ok("import", "--from", file, ...words(target));
      const again = join(folder, `again-${kind}.ndjson`);
      await ok("export", "--to", again, ...words(target));
      assert.deepEqual(recordsIn(again), recordsIn(file));
    });
  }

  it("continues an export", async () => {
    const source = await newStore("PostgreSQL");
    await ok("import", "--from", file, ...words(source));
    const path = join(folder, "killed.ndjson");
    const { database = "" } = source;
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    // The export stops where it reads this table.
    await client.query("begin; lock table a2a_relay.used_nonce in access exclusive mode");
    const child = start("export", "--to", path, ...words(source), "--database-lock-timeout-ms", "60000");
    await killOnce(
      child,
      async () => statSync(path, { throwIfNoEntry: false })?.size ?? 0,
      (size) => size > 0,
    );
    await client.end();
    const { stderr } = await cliRun(["export", "--to", path, ...words(source)]);
    assert.match(stderr, /^continued after line [1-9]\d+\n/);
    assert.deepEqual(recordsIn(path), recordsIn(file));
  });
});
