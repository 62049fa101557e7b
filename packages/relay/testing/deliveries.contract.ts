import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aSend,
  change,
  lease,
  LULU,
  type OpenStore,
  READ,
  readIds,
  send,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
  countOpen,
  marks,
} from "./store-builders.ts";

async function counts(store: RelayStore, agentId?: AgentId): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries(await store.deliveries.countByState(TENANT, agentId));
}

export function describeDeliveries(open: OpenStore): void {
  describe("reading a mailbox", () => {
    it("returns the messages of one agent in the order of their acceptance", async () => {
      await using store = await open();
      const first = await send(store, { id: "z" });
      await send(store, { recipient: LULU });
      const second = await send(store, { id: "a" });
      const found = await store.deliveries.available(READ);
      assert.deepEqual(
        found.map(({ message }) => message),
        [first, second],
      );
      assert.deepEqual(found[0]?.delivery, await storedDelivery(store, "z"));
      assert.deepEqual(await readIds(store, { limit: 1 }), ["z"]);
    });

    it("keeps the order in which concurrent senders were accepted", async () => {
      await using store = await open();
      const sent = Array.from({ length: 300 }, () => aSend());
      await Promise.all(sent.map((each) => store.commit(each)));
      const ids = sent.map(({ messages }) => messages[0].id);
      const accepted = (await store.journal.ofMessages(TENANT, ids)).map(({ messageId }) => messageId);
      const found = await readIds(store);
      assert.deepEqual(found, accepted);
      assert.deepEqual(found.toSorted(), ids);
    });

    it("goes on after a position", async () => {
      await using store = await open();
      const ids = [(await send(store)).id, (await send(store)).id, (await send(store)).id];
      const { position } = await storedDelivery(store, ids[0] ?? "");
      assert.deepEqual(await readIds(store, { afterPosition: position }), ids.slice(1));
      const last = await storedDelivery(store, ids[2] ?? "");
      assert.deepEqual(await readIds(store, { afterPosition: last.position }), []);
    });

    it("leaves out what is held or settled", async () => {
      await using store = await open();
      const held = await send(store, {}, { state: "held" });
      const settled = await send(store);
      await settle(store, settled.id);
      assert.deepEqual(await readIds(store), []);
      assert.equal((await storedDelivery(store, held.id)).state, "held");
    });

    it("leaves out a delivery from the very millisecond it expires", async () => {
      await using store = await open();
      const { id } = await send(store, {}, { expiresAtMs: NOON_MS + 10 });
      assert.deepEqual(await readIds(store, { nowMs: NOON_MS + 9 }), [id]);
      assert.deepEqual(await readIds(store, { nowMs: NOON_MS + 10 }), []);
    });

    it("gives a delivery that becomes available again a new position, so that no reader misses it", async () => {
      await using store = await open();
      const first = await send(store);
      const second = await send(store);
      await lease(store);
      const { position: cursor } = await storedDelivery(store, second.id);
      await change(store, first.id, { state: "available" });
      assert.deepEqual(await readIds(store, { afterPosition: cursor }), [first.id]);
      assert.deepEqual(await readIds(store), [second.id, first.id]);
    });

    it("gives a held delivery its position when it is approved", async () => {
      await using store = await open();
      const held = await send(store, {}, { state: "held" });
      const { position: cursor } = await storedDelivery(store, (await send(store)).id);
      await change(store, held.id, { state: "available" });
      assert.deepEqual(await readIds(store, { afterPosition: cursor }), [held.id]);
    });

    it("keeps the position of a delivery that was available all along", async () => {
      await using store = await open();
      const first = await send(store, {}, { reservedFor: "w1" });
      const second = await send(store);
      const { position } = await storedDelivery(store, first.id);
      assert.equal((await change(store, first.id, { reservedFor: null })).position, position);
      assert.deepEqual(await readIds(store), [first.id, second.id]);
    });

    it("never gives a position twice, also when all messages are gone", async () => {
      await using store = await open();
      let last = 0;
      for (let round = 0; round < 5; round += 1) {
        const { id } = await send(store);
        const { position } = await storedDelivery(store, id);
        assert.ok(position > last, `position ${position} after ${last}`);
        await settle(store, id);
        await store.retention.retireMessages(TENANT, [id], NOON_MS);
        assert.equal((await store.messages.get(TENANT, [id]))[0], undefined);
        last = position;
      }
    });

    it("keeps every message in order when others leave in any order", async () => {
      await using store = await open();
      const sent = Array.from({ length: 400 }, () => aSend());
      await Promise.all(sent.map((each) => store.commit(each)));
      const ids = await readIds(store);
      const leaves = (index: number): boolean => index % 7 !== 3 && index !== 399;
      await Promise.all(ids.filter((_, index) => leaves(index)).map((id) => settle(store, id)));
      assert.deepEqual(
        await readIds(store),
        ids.filter((_, index) => !leaves(index)),
      );
      const later = await send(store);
      assert.equal((await readIds(store)).at(-1), later.id);
    });
  });

  describe("marking messages as delivered", () => {
    it("marks an available message once and records it once", async () => {
      await using store = await open();
      const { id } = await send(store);
      await store.deliveries.markDelivered(marks(TENANT, [id], NOON_MS + 1));
      await store.deliveries.markDelivered(marks(TENANT, [id], NOON_MS + 2));
      const delivery = await storedDelivery(store, id);
      assert.equal(delivery.deliveredAtMs, NOON_MS + 1);
      const types = (await store.journal.ofMessages(TENANT, [id])).map(({ type }) => type);
      assert.deepEqual(types, ["message.accepted", "message.delivered"]);
      assert.deepEqual(await readIds(store), [id]);
    });

    it("raises the version, so that no writer overwrites the mark unseen", async () => {
      await using store = await open();
      const { id } = await send(store);
      const before = await storedDelivery(store, id);
      await store.deliveries.markDelivered(marks(TENANT, [id], NOON_MS));
      assert.equal((await storedDelivery(store, id)).version, before.version + 1);
    });

    it("leaves alone what is leased, held, settled or unknown", async () => {
      await using store = await open();
      const leased = await send(store);
      await lease(store);
      const held = await send(store, {}, { state: "held" });
      const settled = await send(store);
      await settle(store, settled.id);
      const head = (await store.journal.chain(TENANT)).head;
      const ids = [leased.id, held.id, settled.id, "unknown"];
      await store.deliveries.markDelivered(marks(TENANT, ids, NOON_MS));
      for (const { id } of [leased, held, settled]) {
        assert.equal((await storedDelivery(store, id)).deliveredAtMs, null);
      }
      assert.deepEqual((await store.journal.chain(TENANT)).head, head);
    });
  });

  describe("open deliveries", () => {
    it("are counted exactly through all their states", async () => {
      await using store = await open();
      const [one, two] = [await send(store), await send(store, {}, { state: "held" })];
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 2);
      assert.deepEqual(await counts(store), { held: 1, available: 1, leased: 0 });
      await lease(store);
      assert.deepEqual(await counts(store), { held: 1, available: 0, leased: 1 });
      await send(store, { recipient: LULU });
      assert.deepEqual(await counts(store, ZHIWEI), { held: 1, available: 0, leased: 1 });
      assert.deepEqual(await counts(store, LULU), { held: 0, available: 1, leased: 0 });
      assert.deepEqual(await counts(store, "unknown" as AgentId), { held: 0, available: 0, leased: 0 });
      assert.deepEqual(await counts(store), { held: 1, available: 1, leased: 1 });
      for (const { delivery } of await store.deliveries.available({ ...READ, agentId: LULU })) {
        await settle(store, delivery.messageId);
      }
      await change(store, one.id, { state: "available" });
      await change(store, two.id, { state: "available" });
      assert.deepEqual(await counts(store), { held: 0, available: 2, leased: 0 });
      await change(store, two.id, { state: "dead", settledAtMs: NOON_MS });
      await settle(store, one.id);
      assert.deepEqual(await counts(store), { held: 0, available: 0, leased: 0 });
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 0);
      assert.equal(await countOpen(store, TENANT, LULU), 0);
    });

    it("are found by agent in every open state, up to the limit", async () => {
      await using store = await open();
      const leased = await send(store);
      await lease(store);
      const held = await send(store, {}, { state: "held" });
      const available = await send(store);
      await settle(store, (await send(store)).id);
      await send(store, { recipient: LULU });
      const found = await store.deliveries.openOfAgent(TENANT, ZHIWEI, 10);
      const ids = found.map(({ messageId }) => messageId);
      assert.deepEqual(ids.toSorted(), [leased.id, held.id, available.id].toSorted());
      for (const limit of [1, 2, 3]) {
        assert.equal((await store.deliveries.openOfAgent(TENANT, ZHIWEI, limit)).length, limit);
      }
    });

    it("are found by task, oldest first", async () => {
      await using store = await open();
      const first = await send(store, { taskId: "任务" });
      const settled = await send(store, { taskId: "任务" });
      await settle(store, settled.id);
      const second = await send(store, { taskId: "任务", recipient: LULU });
      await send(store, { taskId: "other" });
      const found = await store.deliveries.openOfTasks(TENANT, ["任务"]);
      assert.deepEqual(
        found.map(({ messageId }) => messageId),
        [first.id, second.id],
      );
    });

    it("are expired, held or available, from the very millisecond of their time", async () => {
      await using store = await open();
      const expiresAtMs = NOON_MS + 10;
      const available = await send(store, {}, { expiresAtMs });
      const held = await send(store, {}, { expiresAtMs, state: "held" });
      const leased = await send(store, { recipient: LULU }, { expiresAtMs });
      await lease(store, { agentId: LULU });
      await settle(store, (await send(store, {}, { expiresAtMs })).id);
      assert.deepEqual((await store.sweeps.lapsed(NOON_MS + 9, 10)).expired, []);
      const expired = (await store.sweeps.lapsed(NOON_MS + 10, 10)).expired;
      const ids = expired.map(({ messageId }) => messageId);
      assert.deepEqual(ids.toSorted(), [available.id, held.id].toSorted());
      assert.ok(!ids.includes(leased.id));
      assert.equal((await store.sweeps.lapsed(NOON_MS + 10, 1)).expired.length, 1);
    });
  });
}
