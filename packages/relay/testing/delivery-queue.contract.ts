import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { DeliveryRecord } from "../src/core/ports/deliveries.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewTask,
  aSend,
  change,
  commit,
  lease,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  QUEUE,
  queueIds,
  send,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const CAROL = "carol@studio" as AgentId;

async function work(
  store: RelayStore,
  recipient: AgentId,
  said: Partial<DeliveryRecord> = {},
  tenant = TENANT,
): Promise<string> {
  return (await send(store, { recipient, tenant }, { purpose: "work", ...said })).id;
}

/** Available work of all agents, in one order. */
async function line(store: RelayStore, limit: number, party?: AgentId): Promise<readonly string[]> {
  const any = { agentId: undefined, leasedBeforeMs: undefined, deadlineBeforeMs: undefined };
  const filter = {
    tenant: TENANT,
    ...any,
    party,
    purpose: "work",
    state: "available",
    isOneLine: true,
  } as const;
  return (await store.deliveries.queue({ ...filter, limit })).map(({ delivery }) => delivery.messageId);
}

export function describeDeliveryQueue(open: OpenStore): void {
  describe("waiting work", () => {
    it("of all agents is one list, in the order in which it may be leased, whenever it expires", async () => {
      await using store = await open();
      const expiresAtMs = NOON_MS + 1_000;
      const ids: string[] = [];
      for (let count = 0; count < 3; count += 1) {
        ids.push(await work(store, ZHIWEI, count === 2 ? { expiresAtMs } : {}));
        await work(store, ZHIWEI, { purpose: "mail" });
        ids.push(await work(store, CAROL));
      }
      await work(store, ZHIWEI, {}, OTHER_TENANT);
      assert.deepEqual(await line(store, 100), ids);
      assert.deepEqual(await line(store, 4), ids.slice(0, 4));
      const [first = ""] = ids;
      await commit(store, { deliveries: [{ ...(await storedDelivery(store, first)), state: "leased" }] });
      assert.deepEqual(await line(store, 100), ids.slice(1));
      await commit(store, { deliveries: [{ ...(await storedDelivery(store, first)), state: "available" }] });
      assert.deepEqual(await line(store, 100), [...ids.slice(1), first]);
    });

    it("is one list also of what one agent sent or received, however many others are between", async () => {
      await using store = await open();
      const mine = await work(store, CAROL);
      for (let count = 0; count < 1_100; count += 1)
        await send(store, { sender: CAROL }, { purpose: "work" });
      const last = await work(store, CAROL);
      assert.deepEqual(await line(store, 2, LULU), [mine, last]);
      assert.equal((await line(store, 5, CAROL)).length, 5);
    });

    it("that is held is found in all tenants, page by page", async () => {
      await using store = await open();
      await work(store, ZHIWEI);
      const held: string[] = [];
      for (const tenant of [TENANT, OTHER_TENANT]) {
        for (const recipient of [CAROL, ZHIWEI]) {
          for (const _ of [1, 2]) held.push(await work(store, recipient, { state: "held" }, tenant));
        }
      }
      await work(store, ZHIWEI, { state: "held", purpose: "mail" });
      const found: string[] = [];
      let after: DeliveryRecord | undefined;
      for (;;) {
        const some = await store.sweeps.heldWork(after, 3);
        found.push(...some.map(({ messageId }) => messageId));
        after = some.at(-1);
        if (some.length < 3) break;
      }
      assert.deepEqual(found.toSorted(), held.toSorted());
      assert.equal((await store.sweeps.heldWork(undefined, 100)).length, held.length);
    });

    it("that is held is read from the beginning when the last delivery of the page before is gone", async () => {
      await using store = await open();
      const id = await work(store, ZHIWEI, { state: "held" });
      const gone = { ...(await storedDelivery(store, id)), messageId: "gone" };
      assert.deepEqual(
        (await store.sweeps.heldWork(gone, 10)).map(({ messageId }) => messageId),
        [id],
      );
    });

    it("has a line for the archive by id, with the task that it began; unknown ids have none", async () => {
      await using store = await open();
      const task = aNewTask({ messageId: "asked", state: "completed" });
      await send(store, { id: "asked", taskId: task.id }, { purpose: "work" });
      await commit(store, { tasks: [task] });
      const lines = await store.retention.archiveLines(TENANT, ["asked", "nothing"]);
      assert.deepEqual(
        lines.map(({ messageId }) => messageId),
        ["asked"],
      );
      const { task: began } = (lines[0]?.line ?? {}) as { readonly task?: { readonly id: string } };
      assert.equal(began?.id, task.id);
      assert.deepEqual(await store.retention.archiveLines(OTHER_TENANT, ["asked"]), []);
    });
  });

  describe("the queue", () => {
    it("lists leases first, then waiting deliveries, the oldest first in each", async () => {
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
      const [first, second] = await store.deliveries.queue(QUEUE);
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

    it("can be asked for one state, the newest settled delivery first", async () => {
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
      assert.deepEqual(await queueIds(store, { agentId: "unknown@host" as AgentId }), []);
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

    it("can be asked for deliveries whose task is due, however many others there are", async () => {
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

  describe("the queue of one party", () => {
    it("lists what the agent sent and received, and nothing else", async () => {
      await using store = await open();
      const sent = await send(store, { sender: CAROL, recipient: ZHIWEI });
      const got = await send(store, { sender: LULU, recipient: CAROL });
      await send(store, { sender: LULU, recipient: ZHIWEI });
      const dead = await send(store, { sender: CAROL, recipient: LULU });
      await change(store, dead.id, { state: "dead", settledAtMs: NOON_MS });
      const found = await queueIds(store, { party: CAROL });
      assert.deepEqual(found.toSorted(), [sent.id, got.id].toSorted());
      assert.deepEqual(await queueIds(store, { party: CAROL, agentId: ZHIWEI }), [sent.id]);
      assert.deepEqual(await queueIds(store, { party: CAROL, state: "dead" }), [dead.id]);
      assert.deepEqual(await queueIds(store, { party: "unknown@host" as AgentId }), []);
    });
  });
}
