import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewTask,
  aSend,
  change,
  commit,
  eventAbout,
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
  queueIds,
  QUEUE,
} from "./store-builders.ts";

async function counts(store: RelayStore, agentId?: AgentId): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries(await store.countOpenByState(TENANT, agentId));
}

export function describeMailboxStore(open: OpenStore): void {
  describe("reading a mailbox", () => {
    it("shows the mail of one agent in the order it was accepted, with the messages", async () => {
      await using store = await open();
      const first = await send(store, { id: "z" });
      await send(store, { recipient: LULU });
      const second = await send(store, { id: "a" });
      const mail = await store.availableMessages(READ);
      assert.deepEqual(
        mail.map(({ message }) => message),
        [first, second],
      );
      assert.deepEqual(mail[0]?.delivery, await storedDelivery(store, "z"));
      assert.deepEqual(await readIds(store, { limit: 1 }), ["z"]);
    });

    it("keeps the order in which concurrent senders were accepted", async () => {
      await using store = await open();
      const sent = Array.from({ length: 300 }, () => aSend());
      await Promise.all(sent.map((each) => store.commit(each)));
      assert.deepEqual(
        await readIds(store),
        sent.map(({ messages }) => messages[0].id),
      );
    });

    it("goes on after a position", async () => {
      await using store = await open();
      const ids = [(await send(store)).id, (await send(store)).id, (await send(store)).id];
      const { position } = await storedDelivery(store, ids[0] ?? "");
      assert.deepEqual(await readIds(store, { afterPosition: position }), ids.slice(1));
      const last = await storedDelivery(store, ids[2] ?? "");
      assert.deepEqual(await readIds(store, { afterPosition: last.position }), []);
    });

    it("shows what is held or settled to nobody", async () => {
      await using store = await open();
      const held = await send(store, {}, { state: "held" });
      const settled = await send(store);
      await settle(store, settled.id);
      assert.deepEqual(await readIds(store), []);
      assert.equal((await storedDelivery(store, held.id)).state, "held");
    });

    it("does not show mail at or after the moment it expires", async () => {
      await using store = await open();
      const { id } = await send(store, {}, { expiresAtMs: NOON_MS + 10 });
      assert.deepEqual(await readIds(store, { nowMs: NOON_MS + 9 }), [id]);
      assert.deepEqual(await readIds(store, { nowMs: NOON_MS + 10 }), []);
    });

    it("gives mail that becomes available again a new place, so that no reader misses it", async () => {
      await using store = await open();
      const first = await send(store);
      const second = await send(store);
      await lease(store);
      const { position: cursor } = await storedDelivery(store, second.id);
      await change(store, first.id, { state: "available" });
      assert.deepEqual(await readIds(store, { afterPosition: cursor }), [first.id]);
      assert.deepEqual(await readIds(store), [second.id, first.id]);
    });

    it("gives held mail its place when it is approved", async () => {
      await using store = await open();
      const held = await send(store, {}, { state: "held" });
      const { position: cursor } = await storedDelivery(store, (await send(store)).id);
      await change(store, held.id, { state: "available" });
      assert.deepEqual(await readIds(store, { afterPosition: cursor }), [held.id]);
    });

    it("keeps the place of mail that was available all along", async () => {
      await using store = await open();
      const first = await send(store, {}, { reservedFor: "w1" });
      const second = await send(store);
      const { position } = await storedDelivery(store, first.id);
      assert.equal((await change(store, first.id, { reservedFor: null })).position, position);
      assert.deepEqual(await readIds(store), [first.id, second.id]);
    });

    it("never gives a position twice, also when all mail is gone", async () => {
      await using store = await open();
      let last = 0;
      for (let round = 0; round < 5; round += 1) {
        const { id } = await send(store);
        const { position } = await storedDelivery(store, id);
        assert.ok(position > last, `position ${position} after ${last}`);
        await settle(store, id);
        await store.retireMessages(TENANT, [id], NOON_MS);
        assert.equal(await store.message(TENANT, id), undefined);
        last = position;
      }
    });

    it("has a place for every message in a mailbox whose mail leaves in any order", async () => {
      await using store = await open();
      const sent = Array.from({ length: 400 }, () => aSend());
      await Promise.all(sent.map((each) => store.commit(each)));
      const ids = sent.map(({ messages }) => messages[0].id);
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

  describe("marking mail as delivered", () => {
    it("marks available mail once and records it once", async () => {
      await using store = await open();
      const { id } = await send(store);
      await store.markDelivered(TENANT, [id], NOON_MS + 1, eventAbout("message.delivered"));
      await store.markDelivered(TENANT, [id], NOON_MS + 2, eventAbout("message.delivered"));
      const delivery = await storedDelivery(store, id);
      assert.equal(delivery.deliveredAtMs, NOON_MS + 1);
      const types = (await store.eventsOfMessage(TENANT, id)).map(({ type }) => type);
      assert.deepEqual(types, ["message.accepted", "message.delivered"]);
      assert.deepEqual(await readIds(store), [id]);
    });

    it("raises the version, so that nobody overwrites the mark unseen", async () => {
      await using store = await open();
      const { id } = await send(store);
      const before = await storedDelivery(store, id);
      await store.markDelivered(TENANT, [id], NOON_MS, eventAbout("message.delivered"));
      assert.equal((await storedDelivery(store, id)).version, before.version + 1);
    });

    it("leaves alone what is leased, held, settled or unknown", async () => {
      await using store = await open();
      const leased = await send(store);
      await lease(store);
      const held = await send(store, {}, { state: "held" });
      const settled = await send(store);
      await settle(store, settled.id);
      const head = await store.chainHead(TENANT);
      const ids = [leased.id, held.id, settled.id, "unknown"];
      await store.markDelivered(TENANT, ids, NOON_MS, eventAbout("message.delivered"));
      for (const { id } of [leased, held, settled]) {
        assert.equal((await storedDelivery(store, id)).deliveredAtMs, null);
      }
      assert.deepEqual(await store.chainHead(TENANT), head);
    });
  });

  describe("open mail", () => {
    it("is counted exactly through all its states", async () => {
      await using store = await open();
      const [one, two] = [await send(store), await send(store, {}, { state: "held" })];
      assert.equal(await store.countOpen(TENANT, ZHIWEI), 2);
      assert.deepEqual(await counts(store), { held: 1, available: 1, leased: 0 });
      await lease(store);
      assert.deepEqual(await counts(store), { held: 1, available: 0, leased: 1 });
      await send(store, { recipient: LULU });
      assert.deepEqual(await counts(store, ZHIWEI), { held: 1, available: 0, leased: 1 });
      assert.deepEqual(await counts(store, LULU), { held: 0, available: 1, leased: 0 });
      assert.deepEqual(await counts(store, "nobody" as AgentId), { held: 0, available: 0, leased: 0 });
      assert.deepEqual(await counts(store), { held: 1, available: 1, leased: 1 });
      for (const { delivery } of await store.availableMessages({ ...READ, agentId: LULU })) {
        await settle(store, delivery.messageId);
      }
      await change(store, one.id, { state: "available" });
      await change(store, two.id, { state: "available" });
      assert.deepEqual(await counts(store), { held: 0, available: 2, leased: 0 });
      await change(store, two.id, { state: "dead", settledAtMs: NOON_MS });
      await settle(store, one.id);
      assert.deepEqual(await counts(store), { held: 0, available: 0, leased: 0 });
      assert.equal(await store.countOpen(TENANT, ZHIWEI), 0);
      assert.equal(await store.countOpen(TENANT, LULU), 0);
    });

    it("is found by agent in every open state, up to the limit", async () => {
      await using store = await open();
      const leased = await send(store);
      await lease(store);
      const held = await send(store, {}, { state: "held" });
      const available = await send(store);
      await settle(store, (await send(store)).id);
      await send(store, { recipient: LULU });
      const found = await store.openDeliveriesOfAgent(TENANT, ZHIWEI, 10);
      const ids = found.map(({ messageId }) => messageId);
      assert.deepEqual(ids.toSorted(), [leased.id, held.id, available.id].toSorted());
      for (const limit of [1, 2, 3]) {
        assert.equal((await store.openDeliveriesOfAgent(TENANT, ZHIWEI, limit)).length, limit);
      }
    });

    it("is found by task, oldest first", async () => {
      await using store = await open();
      const first = await send(store, { taskId: "任务" });
      const settled = await send(store, { taskId: "任务" });
      await settle(store, settled.id);
      const second = await send(store, { taskId: "任务", recipient: LULU });
      await send(store, { taskId: "other" });
      const found = await store.openDeliveriesOfTask(TENANT, "任务");
      assert.deepEqual(
        found.map(({ messageId }) => messageId),
        [first.id, second.id],
      );
    });

    it("is expired, held or available, from the very moment its time is over", async () => {
      await using store = await open();
      const expiresAtMs = NOON_MS + 10;
      const available = await send(store, {}, { expiresAtMs });
      const held = await send(store, {}, { expiresAtMs, state: "held" });
      const leased = await send(store, { recipient: LULU }, { expiresAtMs });
      await lease(store, { agentId: LULU });
      await settle(store, (await send(store, {}, { expiresAtMs })).id);
      assert.deepEqual(await store.expiredDeliveries(NOON_MS + 9, 10), []);
      const expired = await store.expiredDeliveries(NOON_MS + 10, 10);
      const ids = expired.map(({ messageId }) => messageId);
      assert.deepEqual(ids.toSorted(), [available.id, held.id].toSorted());
      assert.ok(!ids.includes(leased.id));
      assert.equal((await store.expiredDeliveries(NOON_MS + 10, 1)).length, 1);
    });
  });

  describe("the queue", () => {
    it("shows leases first, then waiting mail, the oldest first in each", async () => {
      await using store = await open();
      const [one, two, three] = [await send(store), await send(store), await send(store)];
      await lease(store, { nowMs: NOON_MS + 2 });
      await settle(store, (await send(store)).id);
      const four = await send(store, { recipient: LULU }, { state: "held" });
      assert.deepEqual(await queueIds(store), [one.id, two.id, three.id, four.id]);
      assert.deepEqual(await queueIds(store, { limit: 2 }), [one.id, two.id]);
      assert.deepEqual(await queueIds(store, { limit: 1, state: "leased" }), [one.id]);
    });

    it("says of each message what an operator needs to know, in any script", async () => {
      await using store = await open();
      const subject = '知微你好 \u{1f44b}\u0000\ud800 "quoted"\n';
      const task = aNewTask({ deadlineMs: NOON_MS + 7 });
      await commit(store, { tasks: [task] });
      const json = JSON.stringify({ body: '"subject":"wrong"', inner: { subject: "wrong" }, subject });
      const { id } = await send(store, { json, kind: "request", taskId: task.id, acceptedAtMs: NOON_MS - 3 });
      const plain = await send(store, { json: JSON.stringify({ subject: "无任务" }) });
      const [first, second] = await store.queue(QUEUE);
      assert.deepEqual(first, {
        delivery: await storedDelivery(store, id),
        kind: "request",
        subject,
        acceptedAtMs: NOON_MS - 3,
        deadlineMs: NOON_MS + 7,
      });
      assert.deepEqual(
        [second?.delivery.messageId, second?.subject, second?.deadlineMs],
        [plain.id, "无任务", null],
      );
    });

    it("can be asked for one state, the newest settled mail first", async () => {
      await using store = await open();
      const ids: Record<string, string[]> = {};
      for (const state of ["held", "available", "acknowledged", "expired", "withdrawn", "dead"] as const) {
        for (let count = 0; count < 2; count += 1) {
          const { id } = await send(store);
          await change(store, id, { state, settledAtMs: NOON_MS });
          (ids[state] ??= []).push(id);
        }
      }
      for (const state of ["held", "available"] as const) {
        assert.deepEqual(await queueIds(store, { state }), ids[state]);
      }
      for (const state of ["acknowledged", "expired", "withdrawn", "dead"] as const) {
        assert.deepEqual(await queueIds(store, { state }), ids[state]?.toReversed());
      }
    });

    it("can be asked for one agent", async () => {
      await using store = await open();
      const leased = await send(store);
      await lease(store);
      const waiting = await send(store);
      const held = await send(store, {}, { state: "held" });
      await send(store, { recipient: LULU });
      const dead = await send(store);
      await change(store, dead.id, { state: "dead" });
      const found = await queueIds(store, { agentId: ZHIWEI });
      assert.deepEqual([...found].toSorted(), [leased.id, waiting.id, held.id].toSorted());
      assert.equal(found[0], leased.id);
      assert.deepEqual(await queueIds(store, { agentId: ZHIWEI, state: "dead" }), [dead.id]);
      assert.deepEqual(await queueIds(store, { agentId: LULU, state: "dead" }), []);
      assert.deepEqual(await queueIds(store, { agentId: "nobody@host" as AgentId }), []);
    });

    it("hides young leases when asked to, and only those", async () => {
      await using store = await open();
      const [old, young, waiting] = [await send(store), await send(store), await send(store)];
      await lease(store, { nowMs: NOON_MS });
      await lease(store, { nowMs: NOON_MS + 100 });
      assert.deepEqual(await queueIds(store, { leasedBeforeMs: NOON_MS + 99 }), [old.id, waiting.id]);
      assert.deepEqual(await queueIds(store, { leasedBeforeMs: NOON_MS + 100 }), [
        old.id,
        young.id,
        waiting.id,
      ]);
    });

    it("can be asked for mail whose task is due, however much other mail there is", async () => {
      await using store = await open();
      await Promise.all(Array.from({ length: 700 }, () => store.commit(aSend())));
      const due = aNewTask({ deadlineMs: NOON_MS + 10 });
      const later = aNewTask({ deadlineMs: NOON_MS + 11 });
      await commit(store, { tasks: [due, later] });
      await send(store, { taskId: later.id });
      const { id } = await send(store, { taskId: due.id });
      await send(store);
      const filter = { deadlineBeforeMs: NOON_MS + 10, limit: 3 };
      assert.deepEqual(await queueIds(store, filter), [id]);
      assert.deepEqual(await queueIds(store, { ...filter, agentId: ZHIWEI }), [id]);
      assert.deepEqual(await queueIds(store, { ...filter, state: "held" }), []);
    });
  });
}
