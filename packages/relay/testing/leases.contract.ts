import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "./fake-clock.ts";
import {
  aSend,
  change,
  clashOf,
  idsOf,
  lease,
  LULU,
  newId,
  type OpenStore,
  readIds,
  send,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
  queueIds,
  leaseQuery,
} from "./store-builders.ts";

function leaseIds(count: number): readonly string[] {
  return Array.from({ length: count }, () => newId("lease"));
}

export function describeLeases(open: OpenStore): void {
  describe("leasing", () => {
    it("takes the oldest message and says which worker has it", async () => {
      await using store = await open();
      const first = await send(store);
      await send(store);
      const [leased] = await lease(store, {
        worker: "工人一",
        leaseIds: ["租约"],
        nowMs: NOON_MS + 5,
        leaseExpiresAtMs: NOON_MS + 105,
      });
      assert.deepEqual(leased?.message, first);
      const stored = await storedDelivery(store, first.id);
      assert.deepEqual(leased?.delivery, stored);
      assert.equal(stored.state, "leased");
      assert.equal(stored.leaseId, "租约");
      assert.equal(stored.worker, "工人一");
      assert.equal(stored.leasedAtMs, NOON_MS + 5);
      assert.equal(stored.leaseExpiresAtMs, NOON_MS + 105);
      assert.equal(stored.attempt, 1);
      assert.equal(stored.version, 2);
    });

    it("records each lease with the delivery as it is then", async () => {
      await using store = await open();
      const { id } = await send(store);
      await lease(store, { leaseIds: ["租约"], worker: "工人一" });
      const event = (await store.journal.ofMessages(TENANT, [id])).at(-1);
      assert.equal(event?.type, "message.leased");
      assert.deepEqual(JSON.parse(event.dataJson), { attempt: 1, lease_id: "租约", worker: "工人一" });
    });

    it("settles one message and leases the next in one commit", async () => {
      await using store = await open();
      const done = await send(store);
      const next = await send(store);
      const [held] = await lease(store);
      assert.ok(held);
      const settled = { ...held.delivery, state: "acknowledged", settledAtMs: NOON_MS } as const;
      const changes = { tenant: TENANT, deliveries: [settled], events: [] };
      const outcome = await store.deliveries.lease(leaseQuery(), changes);
      assert.deepEqual(outcome.committed ? idsOf(outcome.messages) : outcome, [next.id]);
      assert.equal((await storedDelivery(store, done.id)).state, "acknowledged");
    });

    it("leases nothing when the changes of the same commit clash", async () => {
      await using store = await open();
      const { id } = await send(store);
      const stale = { ...(await storedDelivery(store, id)), version: 7 };
      const changes = { tenant: TENANT, deliveries: [stale], events: [] };
      const outcome = await store.deliveries.lease(leaseQuery(), changes);
      assert.deepEqual(outcome, { committed: false, clash: "delivery" });
      assert.deepEqual(await readIds(store), [id]);
    });

    it("takes as many as there are lease ids, and no more than there is", async () => {
      await using store = await open();
      const ids = [(await send(store)).id, (await send(store)).id, (await send(store)).id];
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(2) })), ids.slice(0, 2));
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(5) })), ids.slice(2));
      assert.deepEqual(await lease(store, { leaseIds: leaseIds(5) }), []);
      assert.deepEqual(await readIds(store), []);
    });

    it("may take a message that is sent at the same moment, and then all of it", async () => {
      await using store = await open();
      const sent = aSend();
      const [, leased] = await Promise.all([store.commit(sent), lease(store, { leaseIds: leaseIds(2) })]);
      const [message] = sent.messages;
      for (const each of leased) assert.deepEqual(each.message, message);
      // Whether the lease was in time depends on the store; either way the message is there once.
      assert.deepEqual([...idsOf(leased), ...(await readIds(store))], [message.id]);
    });

    it("finds one message where two were sent with the same id at the same moment", async () => {
      await using store = await open();
      const sent = aSend();
      const [clash, none] = await Promise.all([clashOf(store, sent), clashOf(store, sent)]);
      assert.deepEqual([clash, none].toSorted(), ["message_id", "none, it was committed"]);
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(2) })), [sent.messages[0].id]);
    });

    it("never leases the same message to two of fifty workers that ask at once", async () => {
      await using store = await open();
      const sent = Array.from({ length: 120 }, () => aSend());
      await Promise.all(sent.map((each) => store.commit(each)));
      const grants = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          lease(store, { worker: `w${index}`, leaseIds: leaseIds(3) }),
        ),
      );
      const ids = grants.flatMap((leased) => idsOf(leased));
      assert.equal(ids.length, 120);
      assert.equal(new Set(ids).size, 120);
      for (const leased of grants) {
        for (const { delivery } of leased) {
          assert.equal((await storedDelivery(store, delivery.messageId)).leaseId, delivery.leaseId);
        }
      }
    });

    it("takes neither held, nor settled, nor expired messages, nor those of other agents", async () => {
      await using store = await open();
      await send(store, {}, { state: "held" });
      await settle(store, (await send(store)).id);
      await send(store, {}, { expiresAtMs: NOON_MS });
      await send(store, { recipient: LULU });
      const { id } = await send(store, {}, { expiresAtMs: NOON_MS + 1 });
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(10) })), [id]);
    });

    it("keeps a follow-up for the worker it is reserved for", async () => {
      await using store = await open();
      const reserved = await send(store, {}, { reservedFor: "w1" });
      const free = await send(store);
      assert.deepEqual(idsOf(await lease(store, { worker: "w2", leaseIds: leaseIds(2) })), [free.id]);
      assert.deepEqual(await lease(store, { worker: null }), []);
      assert.deepEqual(idsOf(await lease(store, { worker: "w1" })), [reserved.id]);
    });

    it("counts attempts up with each lease and never down", async () => {
      await using store = await open();
      const { id } = await send(store);
      for (const attempt of [1, 2, 3]) {
        const [leased] = await lease(store);
        assert.equal(leased?.delivery.attempt, attempt);
        await change(store, id, { state: "available" });
      }
    });

    it("takes a requeued message after those that were waiting already", async () => {
      await using store = await open();
      const first = await send(store);
      const second = await send(store);
      await lease(store);
      await change(store, first.id, { state: "available" });
      assert.deepEqual(idsOf(await lease(store, { leaseIds: leaseIds(2) })), [second.id, first.id]);
    });

    it("makes a writer that read before it start again", async () => {
      await using store = await open();
      const { id } = await send(store);
      const before = await storedDelivery(store, id);
      await lease(store);
      assert.equal(await clashOf(store, { deliveries: [{ ...before, state: "acknowledged" }] }), "delivery");
    });

    it("sees a message that is committed at the same moment or later, and nothing half written", async () => {
      await using store = await open();
      const [, leased] = await Promise.all([store.commit(aSend()), lease(store)]);
      const later = await lease(store);
      assert.equal(leased.length + later.length, 1);
    });
  });

  describe("renewing leases", () => {
    it("extends those that are current and tells which, without an event", async () => {
      await using store = await open();
      const one = await send(store);
      const two = await send(store);
      await lease(store, { leaseIds: ["l1", "l2"], leaseExpiresAtMs: NOON_MS + 10 });
      const head = (await store.journal.chain(TENANT)).head;
      const before = await storedDelivery(store, one.id);
      const renewed = await store.deliveries.renew(
        TENANT,
        ZHIWEI,
        [
          { messageId: one.id, leaseId: "l1" },
          { messageId: two.id, leaseId: "stale" },
          { messageId: "unknown", leaseId: "l1" },
        ],
        NOON_MS + 500,
      );
      assert.deepEqual([...renewed.keys()], [one.id]);
      const after = await storedDelivery(store, one.id);
      assert.deepEqual(renewed.get(one.id), after);
      assert.equal(after.leaseExpiresAtMs, NOON_MS + 500);
      assert.equal(after.version, before.version + 1);
      assert.equal((await storedDelivery(store, two.id)).leaseExpiresAtMs, NOON_MS + 10);
      assert.deepEqual((await store.journal.chain(TENANT)).head, head);
    });

    it("renews neither what was given back, nor what another agent holds", async () => {
      await using store = await open();
      const { id } = await send(store);
      await lease(store, { leaseIds: ["l1"] });
      const mine = [{ messageId: id, leaseId: "l1" }];
      assert.equal((await store.deliveries.renew(TENANT, LULU, mine, NOON_MS + 1)).size, 0);
      await change(store, id, { state: "available" });
      assert.equal((await store.deliveries.renew(TENANT, ZHIWEI, mine, NOON_MS + 1)).size, 0);
    });
  });

  describe("leases that last", () => {
    it("are listed by age, the oldest first", async () => {
      await using store = await open();
      const ids: string[] = [];
      for (let count = 0; count < 3; count += 1) ids.push((await send(store)).id);
      await lease(store, { nowMs: NOON_MS + 30 });
      await lease(store, { nowMs: NOON_MS + 10 });
      await lease(store, { nowMs: NOON_MS + 20 });
      await send(store);
      assert.deepEqual(await queueIds(store, { state: "leased" }), [ids[1], ids[2], ids[0]]);
      assert.deepEqual(await queueIds(store, { state: "leased", limit: 2 }), [ids[1], ids[2]]);
    });

    it("run out only for idempotent work with a finite lease, from the very moment", async () => {
      await using store = await open();
      const idempotent = { duplicateSafety: "idempotent", idempotencyKey: "k" } as const;
      const timed = await send(store, {}, idempotent);
      await lease(store, { leaseExpiresAtMs: NOON_MS + 10 });
      await send(store, {}, idempotent);
      await lease(store, { leaseExpiresAtMs: null });
      await send(store);
      await lease(store, { leaseExpiresAtMs: NOON_MS + 10 });
      assert.deepEqual((await store.sweeps.lapsed(NOON_MS + 9, 10)).timedOut, []);
      const found = (await store.sweeps.lapsed(NOON_MS + 10, 10)).timedOut;
      assert.deepEqual(found, [await storedDelivery(store, timed.id)]);
      await settle(store, timed.id);
      assert.deepEqual((await store.sweeps.lapsed(NOON_MS + 10, 10)).timedOut, []);
    });
  });
}
