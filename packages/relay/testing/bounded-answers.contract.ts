import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aSend,
  change,
  clashOf,
  idsOf,
  lease,
  newId,
  type OpenStore,
  READ,
  readIds,
  send,
  storedDelivery,
  TENANT,
} from "./store-builders.ts";

/** More than a store may read one by one for every request. */
const MANY = 1_500;

/** A message of that many bytes; a count of characters would miss two thirds of them. */
function messageOf(bytes: number): string {
  const json = JSON.stringify({ body: "信".repeat((bytes - 20) / 3) });
  return json + " ".repeat(bytes - Buffer.byteLength(json));
}

async function sendMessages(store: RelayStore, sizes: readonly number[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const bytes of sizes) {
    ids.push((await send(store, { json: messageOf(bytes), threadId: "话题" })).id);
  }
  return ids;
}

function leaseIds(count: number): readonly string[] {
  return Array.from({ length: count }, () => newId("lease"));
}

export function describeBoundedAnswers(open: OpenStore): void {
  describe("messages that together are too long for one answer", () => {
    it("are read in several, in order, each once", async () => {
      await using store = await open();
      const ids = await sendMessages(store, [300, 300, 300, 900, 60, 300]);
      const pages: (readonly string[])[] = [];
      let afterPosition = 0;
      for (;;) {
        const found = await store.deliveries.available({ ...READ, afterPosition, bytesMax: 600 });
        if (found.length === 0) break;
        pages.push(idsOf(found));
        afterPosition = found.at(-1)?.delivery.position ?? 0;
      }
      assert.deepEqual(pages, [ids.slice(0, 2), ids.slice(2, 3), ids.slice(3, 4), ids.slice(4)]);
    });

    it("are counted in bytes, to the last one", async () => {
      await using store = await open();
      await sendMessages(store, [300, 300]);
      assert.equal((await readIds(store, { bytesMax: 600 })).length, 2);
      assert.equal((await readIds(store, { bytesMax: 599 })).length, 1);
      assert.equal((await store.messages.thread({ ...THREAD, bytesMax: 600 })).messages.length, 2);
      assert.equal((await store.messages.thread({ ...THREAD, bytesMax: 599 })).messages.length, 1);
    });

    it("are leased in several, and the rest stays available", async () => {
      await using store = await open();
      const ids = await sendMessages(store, [300, 300, 900, 60]);
      const take = { leaseIds: leaseIds(10), bytesMax: 600 };
      assert.deepEqual(idsOf(await lease(store, take)), ids.slice(0, 2));
      assert.equal((await storedDelivery(store, ids[2] ?? "")).attempt, 0);
      assert.deepEqual(await readIds(store), ids.slice(2));
      assert.deepEqual(idsOf(await lease(store, take)), ids.slice(2, 3));
      assert.deepEqual(idsOf(await lease(store, take)), ids.slice(3));
    });

    it("are returned as the beginning of their thread, which says that there is more", async () => {
      await using store = await open();
      const ids = await sendMessages(store, [900, 300, 300]);
      const thread = async (limit: number, bytesMax: number): Promise<readonly unknown[]> => {
        const { messages, hasMore } = await store.messages.thread({ ...THREAD, limit, bytesMax });
        return [messages.map(({ message }) => message.id), hasMore];
      };
      assert.deepEqual(await thread(10, 600), [ids.slice(0, 1), true]);
      assert.deepEqual(await thread(10, 1_200), [ids.slice(0, 2), true]);
      assert.deepEqual(await thread(10, 1_500), [ids, false]);
      assert.deepEqual(await thread(2, 1_500), [ids.slice(0, 2), true]);
      assert.deepEqual(await thread(3, 1_500), [ids, false]);
    });
  });

  describe("a message behind many that the caller may not have", () => {
    it("is read and leased at once, though what expired has not been swept", async () => {
      await using store = await open();
      await sendMany(store, { expiresAtMs: NOON_MS });
      const { id } = await send(store);
      assert.deepEqual(await readIds(store), [id]);
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(5) })), [id]);
    });

    it("is leased at once, though those before it are reserved for another worker", async () => {
      await using store = await open();
      await sendMany(store, { reservedFor: "w1" });
      const { id } = await send(store);
      assert.deepEqual(idsOf(await lease(store, { worker: "w2", leaseIds: leaseIds(5) })), [id]);
      assert.equal((await lease(store, { worker: "w1", leaseIds: leaseIds(5) })).length, 5);
    });

    it("can be leased as soon as the reason has ended, and not before", async () => {
      await using store = await open();
      const { id } = await send(store, {}, { reservedFor: "w1", expiresAtMs: NOON_MS });
      const other = await send(store, {}, { reservedFor: "w1" });
      const stale = await storedDelivery(store, other.id);
      await change(store, other.id, { reason: "又一次" });
      const freed = { ...(await storedDelivery(store, id)), reservedFor: null, expiresAtMs: NOON_MS + 1 };
      assert.equal(await clashOf(store, { deliveries: [freed, stale] }), "delivery");
      assert.deepEqual(await readIds(store), [other.id]);
      await change(store, id, { expiresAtMs: NOON_MS + 1 });
      assert.deepEqual(await readIds(store), [id, other.id]);
      assert.deepEqual(await lease(store, { worker: "w2" }), []);
      await change(store, id, { reservedFor: null });
      assert.deepEqual(idsOf(await lease(store, { worker: "w2", leaseIds: leaseIds(5) })), [id]);
      await change(store, id, { state: "available", reservedFor: "w3" });
      assert.deepEqual(await lease(store, { worker: "w2" }), []);
      assert.deepEqual(idsOf(await lease(store, { worker: "w3" })), [id]);
    });
  });
}

const THREAD = { tenant: TENANT, threadId: "话题", limit: 10 };

async function sendMany(store: RelayStore, delivery: Parameters<typeof aSend>[1]): Promise<void> {
  await Promise.all(Array.from({ length: MANY }, () => store.commit(aSend({}, delivery))));
}
