import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  change,
  idsOf,
  lease,
  LULU,
  newId,
  type OpenStore,
  OTHER_TENANT,
  queueIds,
  readIds,
  send,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const CAROL = "carol@host" as AgentId;

export function describeDeliveryPurposes(open: OpenStore): void {
  describe("deliveries of one purpose", () => {
    it("are read and leased before all others, and in order with them without a purpose", async () => {
      await using store = await open();
      const note = await send(store);
      const work = await send(store, {}, { purpose: "work" });
      const result = await send(store, {}, { purpose: "result" });
      const more = await send(store, {}, { purpose: "work" });
      assert.equal((await storedDelivery(store, work.id)).purpose, "work");
      assert.deepEqual(await readIds(store, { purpose: "work" }), [work.id, more.id]);
      assert.deepEqual(await readIds(store, { purpose: "work", limit: 1 }), [work.id]);
      assert.deepEqual(await readIds(store, { purpose: "result" }), [result.id]);
      assert.deepEqual(await readIds(store), [note.id, work.id, result.id, more.id]);
      const leaseIds = [newId("lease"), newId("lease"), newId("lease")];
      const leased = await lease(store, { purpose: "work", leaseIds });
      assert.deepEqual(idsOf(leased), [work.id, more.id]);
      assert.deepEqual(leased[0]?.delivery, await storedDelivery(store, work.id));
      assert.deepEqual(idsOf(await lease(store, { purpose: "work" })), []);
      assert.deepEqual(await readIds(store), [note.id, result.id]);
    });

    it("keep their purpose when they are leased, released, reserved and approved", async () => {
      await using store = await open();
      const held = await send(store, {}, { purpose: "work", state: "held" });
      const work = await send(store, {}, { purpose: "work" });
      await lease(store, { purpose: "work" });
      await change(store, held.id, { state: "available" });
      await change(store, work.id, { state: "available" });
      assert.deepEqual(await readIds(store, { purpose: "work" }), [held.id, work.id]);
      await change(store, held.id, { reservedFor: "工人" });
      assert.deepEqual(await readIds(store, { purpose: "work" }), [held.id, work.id]);
      assert.deepEqual(idsOf(await lease(store, { purpose: "work", worker: "别人" })), [work.id]);
    });

    it("can be listed alone in the queue, in every state", async () => {
      await using store = await open();
      const leased = await send(store, {}, { purpose: "work" });
      await send(store);
      const leaseIds = [newId("lease"), newId("lease")];
      await lease(store, { leaseIds });
      const waiting = await send(store, {}, { purpose: "work" });
      await send(store);
      const settled = await send(store, {}, { purpose: "work" });
      for (const { id } of [settled, await send(store)]) await settle(store, id);
      assert.deepEqual(await queueIds(store, { purpose: "work" }), [leased.id, waiting.id]);
      assert.deepEqual(await queueIds(store, { purpose: "work", agentId: ZHIWEI, limit: 2 }), [
        leased.id,
        waiting.id,
      ]);
      assert.deepEqual(await queueIds(store, { purpose: "work", state: "acknowledged" }), [settled.id]);
      assert.deepEqual(await queueIds(store, { purpose: "result" }), []);
    });
  });

  describe("the oldest mailbox", () => {
    const oldest = (store: RelayStore, nowMs = NOON_MS): Promise<AgentId | undefined> =>
      store.deliveries.oldestMailbox(TENANT, "work", nowMs);

    it("is the one with the oldest delivery of the purpose, whatever other purposes others have", async () => {
      await using store = await open();
      assert.equal(await oldest(store), undefined);
      await send(store, { recipient: LULU });
      await send(store, { recipient: LULU, tenant: OTHER_TENANT }, { purpose: "work" });
      assert.equal(await oldest(store), undefined);
      await send(store, { recipient: CAROL }, { purpose: "work" });
      await send(store, { recipient: ZHIWEI }, { purpose: "work" });
      assert.equal(await oldest(store), CAROL);
      assert.equal(await store.deliveries.oldestMailbox(TENANT, "mail", NOON_MS), LULU);
      assert.equal(await store.deliveries.oldestMailbox(OTHER_TENANT, "work", NOON_MS), LULU);
    });

    it("skips deliveries that are held, leased, settled or expired", async () => {
      await using store = await open();
      await send(store, { recipient: LULU }, { purpose: "work", expiresAtMs: NOON_MS + 10 });
      const first = await send(store, { recipient: CAROL }, { purpose: "work" });
      const held = await send(store, { recipient: ZHIWEI }, { purpose: "work", state: "held" });
      assert.equal(await oldest(store, NOON_MS + 9), LULU);
      assert.equal(await oldest(store, NOON_MS + 10), CAROL);
      await lease(store, { agentId: CAROL });
      assert.equal(await oldest(store, NOON_MS + 10), undefined);
      await change(store, held.id, { state: "available" });
      await change(store, first.id, { state: "available" });
      assert.equal(await oldest(store, NOON_MS + 10), ZHIWEI);
      await settle(store, held.id);
      assert.equal(await oldest(store, NOON_MS + 10), CAROL);
    });
  });
}
