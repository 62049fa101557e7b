import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { QUEUE, send, settle, TENANT } from "../../../testing/store-builders.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";

const LONG = JSON.stringify({ body: "x".repeat(1_000_000), subject: "长信" });

function open(): Promise<RelayStore> {
  return openSqliteStore({
    path: ":memory:",
    checkpointPages: 1_000,
    onFatal: (error) => {
      throw error;
    },
  });
}

/** How many turns the event loop made before the answer. */
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

describe("reading many rows from SQLite", () => {
  it("lets other requests run while the queue or the threads read long messages", async () => {
    await using store = await open();
    for (let count = 0; count < 20; count += 1) await send(store, { json: LONG });
    assert.ok((await turnsDuring(() => store.deliveries.queue(QUEUE))) >= 10);
    assert.ok((await turnsDuring(() => store.messages.threads(THREADS))) >= 10);
    const { threads } = await store.messages.threads(THREADS);
    assert.deepEqual(new Set(threads.map(({ subject }) => subject)), new Set(["长信"]));
  });

  it("leaves out of the queue what is retired during the read", async () => {
    await using store = await open();
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) {
      ids.push((await send(store, { json: LONG })).id);
      await settle(store, ids[count] ?? "");
    }
    const asked = store.deliveries.queue({ ...QUEUE, state: "acknowledged" });
    await store.retention.retireMessages(TENANT, [ids[0] ?? ""], NOON_MS);
    const found = (await asked).map(({ delivery }) => delivery.messageId);
    assert.deepEqual(found, ids.slice(1).toReversed());
  });
});
