import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
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
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "../../packages/relay/testing/store-builders.ts";
import { BreakableLine } from "../support/breakable-line.ts";

/** The commands as they are on the wire. */
const COMMIT = "commit\0";
const BEFORE_COMMIT = { "the first statement": "begin\0", "the last statement": "pg_notify" };

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
