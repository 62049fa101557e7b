import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AgentId, LIMITS } from "@a2a-relay/protocol";
import pg from "pg";
import { mailboxTopic } from "../../packages/relay/src/core/ports/change-feed.ts";
import type { PostgresOptions } from "../../packages/relay/src/stores/postgres/database.ts";
import {
  openPostgresStore,
  type PostgresStore,
} from "../../packages/relay/src/stores/postgres/postgres-relay-store.ts";
import { startPostgres, type TestServer } from "../../packages/relay/testing/postgres-server.ts";
import {
  aSend,
  commit,
  lease,
  readIds,
  send,
  sendKeyOf,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "../../packages/relay/testing/store-builders.ts";
import { BreakableLine } from "../support/breakable-line.ts";

/** The commands as they are on the wire. */
const COMMIT = "commit\0";
const BEFORE_COMMIT = { "the first statement": "begin\0", "the last statement": "insert into event (" };

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

interface Scene extends AsyncDisposable {
  /** Connected through the line. */
  readonly store: PostgresStore;
  readonly line: BreakableLine;
  /** Connected directly to the same tables. */
  readonly other: PostgresStore;
}

async function openScene(more: Partial<PostgresOptions> = {}): Promise<Scene> {
  const line = await BreakableLine.open(() => server.url.replace(/^postgres:/, "http:"));
  const direct = { url: server.url, poolMax: 4, schema: server.newSchema() };
  const url = Object.assign(new URL(server.url), { host: new URL(line.url).host }).href;
  const other = await openPostgresStore(direct);
  const store = await openPostgresStore({ ...direct, url, ...more });
  return {
    store,
    line,
    other,
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      await line[Symbol.asyncDispose]();
    },
  };
}

const UNKNOWN = { code: "unavailable", message: /may have been written; repeat it with the same key$/ };

describe("a PostgreSQL connection that breaks", () => {
  it("after the commit, before its answer, leaves every caller of the batch without a verdict", async () => {
    await using scene = await openScene();
    const { store, line, other } = scene;
    const ids = [(await send(store)).id, (await send(store)).id];
    line.breakAt(COMMIT, "answered");
    const leases = [lease(store, { worker: "甲" }), lease(store, { worker: "乙" })];
    await Promise.all(leases.map((asked) => assert.rejects(asked, UNKNOWN)));
    for (const id of ids) {
      const { state, attempt } = await storedDelivery(other, id);
      assert.deepEqual([state, attempt], ["leased", 1]);
    }
  });

  it("before the commit reaches the server leaves them without a verdict too", async () => {
    await using scene = await openScene();
    scene.line.breakAt(COMMIT, "before");
    const sends = [aSend({ id: "信1" }), aSend({ id: "信2" })];
    await Promise.all(sends.map((changes) => assert.rejects(commit(scene.store, changes), UNKNOWN)));
    assert.deepEqual(await readIds(scene.other), []);
  });

  for (const [name, text] of Object.entries(BEFORE_COMMIT)) {
    for (const when of ["before", "answered"] as const) {
      it(`${when === "before" ? "at" : "after"} ${name} repeats the batch on another one`, async () => {
        await using scene = await openScene();
        scene.line.breakAt(text, when);
        const sends = [aSend({ id: "信1" }), aSend({ id: "信2" })];
        await Promise.all(sends.map((changes) => commit(scene.store, changes)));
        assert.equal(scene.line.isBreakPlanned, false);
        assert.deepEqual((await readIds(scene.other)).toSorted(), ["信1", "信2"]);
      });
    }
  }

  it("after the commit still wakes the readers of the same relay", async () => {
    await using scene = await openScene();
    using watch = scene.store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
    scene.line.breakAt(COMMIT, "answered");
    await assert.rejects(commit(scene.store, aSend()), UNKNOWN);
    assert.equal(await watch.changed({ timeoutMs: 20_000 }), true);
  });
});

/** Long enough for a busy machine, short enough for a test. */
const ANSWER = { answerTimeoutMs: 1_000 };
const CHECK = { checkMs: 500 };

describe("a PostgreSQL connection that falls silent", () => {
  it("during the commit is given up, and only this batch has no verdict", async () => {
    await using scene = await openScene(ANSWER);
    scene.line.breakAt(COMMIT, "silent");
    await assert.rejects(commit(scene.store, aSend({ id: "信1" })), UNKNOWN);
    await commit(scene.store, aSend({ id: "信2" }));
    assert.deepEqual(await readIds(scene.other), ["信2"]);
  });

  it("before the commit is given up, and the batch runs on another one", async () => {
    await using scene = await openScene(ANSWER);
    void scene.line.silence();
    await commit(scene.store, aSend({ id: "信1" }));
    assert.deepEqual(await readIds(scene.other), ["信1"]);
  });

  it("fails the reads and the probe that wait for it, then is replaced", async () => {
    await using scene = await openScene({ ...ANSWER, poolMax: 1 });
    const { store, line } = scene;
    const answers = { code: "unavailable", message: "the database does not answer; try again" };
    await store.probe(1);
    void line.silence();
    await assert.rejects(store.probe(2), answers);
    await store.probe(3);
    void line.silence();
    await assert.rejects(store.tenants.list(), answers);
    await store.tenants.list();
  });

  it("is noticed by a reader's relay, which listens on a new one and wakes the reader", async () => {
    await using scene = await openScene({ ...ANSWER, ...CHECK });
    using watch = scene.store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
    void scene.line.silence();
    await send(scene.other);
    assert.equal(await watch.changed({ timeoutMs: 20_000 }), true);
    // From then on wake-ups come at once again.
    using next = scene.store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
    await send(scene.other);
    assert.equal(await next.changed({ timeoutMs: 20_000 }), true);
  });
});

describe("a relay on PostgreSQL", () => {
  it("wakes readers of names as long as names may be", async () => {
    await using scene = await openScene();
    // No two alike, so that the server cannot compress them; four bytes each.
    const longest = (chars: number, first: number): string =>
      String.fromCodePoint(...Array.from({ length: chars }, (_, index) => 0x2_0000 + first + index * 7));
    const [sender, recipient] = [1, 2].map((first) => longest(LIMITS.idCharsMax, first) as AgentId);
    const [tenant, key] = [longest(LIMITS.tenantCharsMax, 3), longest(LIMITS.idempotencyKeyCharsMax, 4)];
    assert.ok(sender !== undefined && recipient !== undefined);
    using watch = scene.store.feed.watch(mailboxTopic(tenant, recipient));
    const changes = aSend({ tenant, sender, recipient, taskId: longest(LIMITS.idCharsMax, 5) });
    await commit(scene.other, { ...changes, sendKeys: [sendKeyOf(changes.messages[0], key)] });
    assert.equal(await watch.changed({ timeoutMs: 20_000 }), true);
  });

  it("uses no standby, and recovers when the server is a primary again", async () => {
    const url = await server.newDatabase();
    await using store = await openPostgresStore({ url, poolMax: 2, schema: server.newSchema() });
    const name = new URL(url).pathname.slice(1);
    const turn = async (readOnly: "on" | "off"): Promise<void> => {
      await admin(`alter database ${name} set default_transaction_read_only = ${readOnly}`);
      await admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
    };
    await turn("on");
    await assert.rejects(store.probe(1), { code: "unavailable" });
    await assert.rejects(store.tenants.list(), { code: "unavailable" });
    await assert.rejects(commit(store, aSend()), { code: "unavailable" });
    await turn("off");
    await store.probe(2);
    await commit(store, aSend());
  });
});

async function admin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
