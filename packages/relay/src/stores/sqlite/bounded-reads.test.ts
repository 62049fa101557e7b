import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { idsOf, lease, QUEUE, readIds, send, settle, TENANT } from "../../../testing/store-builders.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";

const LONG = JSON.stringify({ body: "x".repeat(1_000_000), subject: "长信" });

function open(path = ":memory:"): Promise<RelayStore> {
  return openSqliteStore({
    path,
    checkpointPages: 1_000,
    onFatal: (error) => {
      throw error;
    },
  });
}

/** How many turns the event loop made while somebody waited for the answer. */
async function turnsDuring(act: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await act();
  isOver = true;
  return turns;
}

const THREADS = {
  tenant: TENANT,
  agent: undefined,
  beforePosition: Number.MAX_SAFE_INTEGER,
  limit: 100,
  scanRowsMax: 20_000,
};

describe("reading much from SQLite", () => {
  it("lets everybody else have turns while the queue or the threads look into long messages", async () => {
    await using store = await open();
    for (let count = 0; count < 20; count += 1) await send(store, { json: LONG });
    assert.ok((await turnsDuring(() => store.queue(QUEUE))) >= 10);
    assert.ok((await turnsDuring(() => store.threads(THREADS))) >= 10);
    const { threads } = await store.threads(THREADS);
    assert.deepEqual(new Set(threads.map(({ subject }) => subject)), new Set(["长信"]));
  });

  it("leaves out of the queue what is retired while it is read", async () => {
    await using store = await open();
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) {
      ids.push((await send(store, { json: LONG })).id);
      await settle(store, ids[count] ?? "");
    }
    const asked = store.queue({ ...QUEUE, state: "acknowledged" });
    await store.retireMessages(TENANT, [ids[0] ?? ""], NOON_MS);
    const found = (await asked).map(({ delivery }) => delivery.messageId);
    assert.deepEqual(found, ids.slice(1).toReversed());
  });

  it("knows after a restart what has expired and what is kept for whom", async () => {
    const directory = mkdtempSync(join(tmpdir(), "a2a-relay-bounded-"));
    const path = join(directory, "relay.db");
    try {
      const ids: string[] = [];
      {
        await using store = await open(path);
        for (const said of [{ expiresAtMs: NOON_MS }, { reservedFor: "工人一" }, {}]) {
          ids.push((await send(store, {}, said)).id);
        }
      }
      await using store = await open(path);
      assert.deepEqual(await readIds(store), ids.slice(1));
      const leaseIds = ["l1", "l2", "l3"];
      assert.deepEqual(idsOf(await lease(store, { worker: "工人二", leaseIds })), ids.slice(2));
      assert.deepEqual(idsOf(await lease(store, { worker: "工人一", leaseIds })), ids.slice(1, 2));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
