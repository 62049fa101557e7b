import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mailboxTopic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { ownThreadId } from "../src/core/rules/own-thread.ts";
import { describeBoundedAnswers } from "./bounded-answers.contract.ts";
import { NOON_MS } from "./fake-clock.ts";
import { describeLeases } from "./leases.contract.ts";
import { describeDeliveryPurposes } from "./delivery-purposes.contract.ts";
import { describeMailboxStore } from "./mailbox-store.contract.ts";
import {
  aNewMessage,
  aSend,
  change,
  clashOf,
  commit,
  deliveryOf,
  eventAbout,
  idsOf,
  lease,
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

/** All that the mailbox shows is what is kept. */
async function assertShowsWhatIsKept(store: RelayStore, ids: readonly string[]): Promise<void> {
  const mail = await store.availableMessages(READ);
  assert.deepEqual(idsOf(mail), ids);
  for (const { delivery, message } of mail) {
    assert.deepEqual(delivery, await storedDelivery(store, message.id));
    assert.deepEqual(message, await store.message(TENANT, message.id));
  }
}

/** A store may show new mail to those who wait for it without reading it back; it must not show anything else. */
export function describeAwaitedDeliveries(openStore: OpenStore): void {
  const open = async (): Promise<RelayStore> => {
    const store = await openStore();
    for (const agentId of [LULU, ZHIWEI]) store.feed.watch(mailboxTopic(TENANT, agentId));
    return store;
  };

  describe("mailboxes that somebody watches", () => {
    describeMailboxStore(open);
    describeDeliveryPurposes(open);
    describeLeases(open);
    describeBoundedAnswers(open);

    it("show new mail of every sort as it is kept", async () => {
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
      await assertShowsWhatIsKept(
        store,
        sent.map((message) => message.id),
      );
    });

    it("show the messages of one commit, whichever way round it brings them", async () => {
      await using store = await open();
      const messages = [aNewMessage({ id: "甲" }), aNewMessage({ id: "乙", json: `{"body":"乙"}` })];
      const deliveries = messages.map((message) => deliveryOf(message)).toReversed();
      await commit(store, { messages: messages, deliveries });
      await assertShowsWhatIsKept(store, ["甲", "乙"]);
    });

    it("show what became of new mail", async () => {
      await using store = await open();
      const [marked, freed, again, gone, leased] = await Promise.all(
        Array.from({ length: 5 }, async () => (await send(store, {}, { reservedFor: "w1" })).id),
      );
      await store.markDelivered(TENANT, [marked ?? ""], NOON_MS, eventAbout("message.delivered", NOON_MS));
      await change(store, freed ?? "", { reservedFor: null, reason: "大家都可以做" });
      await change(store, again ?? "", { state: "leased", leaseId: "租约" });
      await change(store, again ?? "", { state: "available" });
      await settle(store, gone ?? "");
      await change(store, leased ?? "", { state: "leased", leaseId: "租约" });
      await assertShowsWhatIsKept(store, [marked ?? "", freed ?? "", again ?? ""]);
    });

    it("show nothing of mail that was leased in the commit that brought it", async () => {
      await using store = await open();
      const sent = store.commit(aSend());
      const taken = lease(store);
      await sent;
      const [mail] = await taken;
      assert.equal(mail?.delivery.state, "leased");
      assert.deepEqual(mail.delivery, await storedDelivery(store, mail.message.id));
      assert.deepEqual(await readIds(store), []);
    });

    it("show nothing of a message that could not be written, and the next one in its place", async () => {
      await using store = await open();
      const [first, second] = [aSend({ id: "同名" }), aSend({ id: "同名", json: `{"body":"晚了"}` })];
      const outcomes = await Promise.all([
        store.commit(first),
        store.commit(aSend({ id: "別" })),
        store.commit(second),
      ]);
      assert.deepEqual(
        outcomes.map(({ committed }) => committed),
        [true, true, false],
      );
      assert.equal(await clashOf(store, second), "message_id");
      const long = await send(store, { json: JSON.stringify({ body: "信".repeat(100_000) }) });
      await assertShowsWhatIsKept(store, ["同名", "別", long.id]);
    });
  });
}
