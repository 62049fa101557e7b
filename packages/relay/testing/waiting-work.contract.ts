import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { DeliveryRecord } from "../src/core/ports/deliveries.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewTask,
  commit,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  send,
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

/** Available work of all agents, as one line. */
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
  return (await store.queue({ ...filter, limit })).map(({ delivery }) => delivery.messageId);
}

/** Work that waits: in line for whoever takes it, held until it may be taken, and on its way to the archive. */
export function describeWaitingWork(open: OpenStore): void {
  describe("waiting work", () => {
    it("of all agents is one line, in the order in which it may be taken, whenever it expires", async () => {
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

    it("is one line also of what one agent sent or got, however much lies in between", async () => {
      await using store = await open();
      const mine = await work(store, CAROL);
      for (let count = 0; count < 1_100; count += 1)
        await send(store, { sender: CAROL }, { purpose: "work" });
      const last = await work(store, CAROL);
      assert.deepEqual(await line(store, 2, LULU), [mine, last]);
      assert.equal((await line(store, 5, CAROL)).length, 5);
    });

    it("that is held is found in all tenants, some at a time, each time going on behind the last", async () => {
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
        const some = await store.heldWork(after, 3);
        found.push(...some.map(({ messageId }) => messageId));
        after = some.at(-1);
        if (some.length < 3) break;
      }
      assert.deepEqual(found.toSorted(), held.toSorted());
      assert.equal((await store.heldWork(undefined, 100)).length, held.length);
    });

    it("that is held is looked for from the beginning when what was looked at last is gone", async () => {
      await using store = await open();
      const id = await work(store, ZHIWEI, { state: "held" });
      const gone = { ...(await storedDelivery(store, id)), messageId: "gone" };
      assert.deepEqual(
        (await store.heldWork(gone, 10)).map(({ messageId }) => messageId),
        [id],
      );
    });

    it("is told to the archive by id, with the task that it began, and without what is gone", async () => {
      await using store = await open();
      const task = aNewTask({ messageId: "asked", state: "completed" });
      await send(store, { id: "asked", taskId: task.id }, { purpose: "work" });
      await commit(store, { tasks: [task] });
      const lines = await store.archiveLines(TENANT, ["asked", "nothing"]);
      assert.deepEqual(
        lines.map(({ messageId }) => messageId),
        ["asked"],
      );
      const { task: began } = (lines[0]?.line ?? {}) as { readonly task?: { readonly id: string } };
      assert.equal(began?.id, task.id);
      assert.deepEqual(await store.archiveLines(OTHER_TENANT, ["asked"]), []);
    });
  });
}
