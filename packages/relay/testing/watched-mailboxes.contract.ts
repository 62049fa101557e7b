import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mailboxTopic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { ownThreadId } from "../src/core/rules/own-thread.ts";
import { NOON_MS } from "./fake-clock.ts";
import { describeDeliveries } from "./deliveries.contract.ts";
import {
  aNewMessage,
  aSend,
  change,
  clashOf,
  commit,
  deliveryOf,
  marks,
  idsOf,
  leaseQuery,
  LULU,
  newId,
  type OpenStore,
  READ,
  readIds,
  send,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

/** The mailbox returns exactly what the store keeps. */
async function assertReturnsWhatIsKept(store: RelayStore, ids: readonly string[]): Promise<void> {
  const found = await store.deliveries.available(READ);
  assert.deepEqual(idsOf(found), ids);
  for (const { delivery, message } of found) {
    assert.deepEqual(delivery, await storedDelivery(store, message.id));
    assert.deepEqual(message, (await store.messages.get(TENANT, [message.id]))[0]);
  }
}

/** A watch on a mailbox changes nothing of what the mailbox returns. */
export function describeWatchedMailboxes(openStore: OpenStore): void {
  const open = async (): Promise<RelayStore> => {
    const store = await openStore();
    for (const agentId of [LULU, ZHIWEI]) store.feed.watch(mailboxTopic(TENANT, agentId));
    return store;
  };

  describe("watched mailboxes", () => {
    describeDeliveries(open);

    it("return new messages of every kind as the store keeps them", async () => {
      await using store = await open();
      const id = `msg_${newId("0")}`;
      const sent = [
        await send(store),
        await send(store, { id, threadId: ownThreadId(id) ?? "另一个话题" }),
        await send(store, { kind: "request", taskId: "任务" }, { purpose: "work" }),
        await send(store, {}, { duplicateSafety: "idempotent", idempotencyKey: "一次", quiet: true }),
        await send(store, {}, { reservedFor: "w1", expiresAtMs: NOON_MS + 1 }),
        await send(store, { json: JSON.stringify({ body: "信".repeat(100_000) }) }),
      ];
      await assertReturnsWhatIsKept(
        store,
        sent.map((message) => message.id),
      );
    });

    it("return the messages of one commit, whatever the order of its deliveries", async () => {
      await using store = await open();
      const messages = [aNewMessage({ id: "甲" }), aNewMessage({ id: "乙", json: `{"body":"乙"}` })];
      const deliveries = messages.map((message) => deliveryOf(message)).toReversed();
      await commit(store, { messages, deliveries });
      await assertReturnsWhatIsKept(store, ["甲", "乙"]);
    });

    it("return the changes of new deliveries", async () => {
      await using store = await open();
      const one = async (): Promise<string> => (await send(store, {}, { reservedFor: "w1" })).id;
      const [marked, freed, again] = [await one(), await one(), await one()];
      const [gone, leased] = [await one(), await one()];
      await store.deliveries.markDelivered(marks(TENANT, [marked]));
      await change(store, freed, { reservedFor: null, reason: "大家都可以做" });
      await change(store, again, { state: "leased", leaseId: "租约" });
      await change(store, again, { state: "available" });
      await settle(store, gone);
      await change(store, leased, { state: "leased", leaseId: "租约" });
      await assertReturnsWhatIsKept(store, [marked, freed, again]);
    });

    it("leave out a message that was leased in the commit that brought it", async () => {
      await using store = await open();
      const outcome = await store.deliveries.lease(leaseQuery(), aSend());
      assert.ok(outcome.committed);
      const [leased] = outcome.messages;
      assert.equal(leased?.delivery.state, "leased");
      assert.deepEqual(leased.delivery, await storedDelivery(store, leased.message.id));
      assert.deepEqual(await readIds(store), []);
    });

    it("leave out a message that could not be written, and return the next one", async () => {
      await using store = await open();
      const [first, second] = [aSend({ id: "同名" }), aSend({ id: "同名", json: `{"body":"晚了"}` })];
      const [one, , two] = await Promise.all([
        clashOf(store, first),
        commit(store, aSend({ id: "別" })),
        clashOf(store, second),
      ]);
      assert.deepEqual([one, two].toSorted(), ["message_id", "none, it was committed"]);
      assert.equal(await clashOf(store, second), "message_id");
      const [winner] = one === "message_id" ? second.messages : first.messages;
      assert.deepEqual((await store.messages.get(TENANT, ["同名"]))[0], winner);
      const ids = await readIds(store);
      assert.deepEqual(ids.toSorted(), ["別", "同名"].toSorted());
      const long = await send(store, { json: JSON.stringify({ body: "信".repeat(100_000) }) });
      await assertReturnsWhatIsKept(store, [...ids, long.id]);
    });
  });
}
