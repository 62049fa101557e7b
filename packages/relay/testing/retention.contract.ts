import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import { expiryAt } from "./records.ts";
import {
  aNewMessage,
  aNewTask,
  aSend,
  commit,
  LULU,
  newId,
  type OpenStore,
  send,
  sendKeyOf,
  settle,
  TENANT,
  ZHIWEI,
  countOpen,
} from "./store-builders.ts";

const LATER_MS = NOON_MS + 1_000;

async function retirable(store: RelayStore, limit = 10, beforeMs = LATER_MS): Promise<readonly string[]> {
  return (await store.retention.messages(TENANT, beforeMs, limit)).map(({ messageId }) => messageId);
}

export function describeRetention(open: OpenStore): void {
  describe("retention", () => {
    it("finds messages that were settled before the time, oldest first", async () => {
      await using store = await open();
      const [one, two, three] = [await send(store), await send(store), await send(store)];
      await send(store);
      await settle(store, two.id, NOON_MS + 1);
      await settle(store, one.id, NOON_MS + 2);
      await settle(store, three.id, LATER_MS);
      assert.deepEqual(await retirable(store), [one.id, two.id]);
      assert.deepEqual(await retirable(store, 1), [one.id]);
      assert.deepEqual(await retirable(store, 10, NOON_MS + 2), [two.id]);
    });

    it("finds a message again until it is retired", async () => {
      await using store = await open();
      const ids: string[] = [];
      for (let count = 0; count < 4; count += 1) ids.push((await send(store)).id);
      for (const id of ids) await settle(store, id);
      assert.deepEqual(await retirable(store, 2), ids.slice(0, 2));
      assert.deepEqual(await retirable(store, 2), ids.slice(0, 2));
      await store.retention.retireMessages(TENANT, ids.slice(0, 2), LATER_MS);
      assert.deepEqual(await retirable(store, 2), ids.slice(2));
      await store.retention.retireMessages(TENANT, ids.slice(2), LATER_MS);
      assert.deepEqual(await retirable(store, 2), []);
    });

    it("finds a message that is settled late although newer ones are retired", async () => {
      await using store = await open();
      const old = await send(store);
      const young = await send(store);
      await settle(store, young.id);
      assert.deepEqual(await retirable(store), [young.id]);
      await store.retention.retireMessages(TENANT, [young.id], LATER_MS);
      await settle(store, old.id);
      assert.deepEqual(await retirable(store), [old.id]);
    });

    it("finds a message behind many that must stay", async () => {
      await using store = await open();
      await Promise.all(Array.from({ length: 1_200 }, () => store.commit(aSend())));
      const { id } = await send(store);
      await settle(store, id);
      assert.deepEqual(await retirable(store), [id]);
    });

    it("leaves messages whose task is not finished", async () => {
      await using store = await open();
      const task = aNewTask({ state: "working" });
      const { id } = await send(store, { taskId: task.id });
      await commit(store, { tasks: [{ ...task, messageId: id }] });
      await settle(store, id);
      assert.deepEqual(await retirable(store), []);
      const [stored] = await store.tasks.get(TENANT, [task.id]);
      assert.ok(stored);
      await commit(store, { tasks: [{ ...stored, state: "completed" }] });
      assert.deepEqual(await retirable(store), [id]);
    });

    it("takes a message to an agent without a mailbox by the time of its acceptance", async () => {
      await using store = await open();
      const message = aNewMessage({ acceptedAtMs: NOON_MS });
      await commit(store, { messages: [message] });
      assert.deepEqual(await retirable(store, 10, NOON_MS), []);
      assert.deepEqual(await retirable(store), [message.id]);
      await store.retention.retireMessages(TENANT, [message.id], LATER_MS);
      assert.equal((await store.messages.get(TENANT, [message.id]))[0], undefined);
    });

    it("writes a line that a person can read", async () => {
      await using store = await open();
      const { id } = await send(store);
      await settle(store, id);
      const [first] = await store.retention.messages(TENANT, LATER_MS, 1);
      const line = JSON.parse(JSON.stringify(first?.line)) as Record<string, Record<string, unknown>>;
      assert.deepEqual(line["message"], { id, body: "知微你好" });
      assert.equal(line["delivery"]?.["state"], "acknowledged");
      assert.equal(line["delivery"]["recipient"], ZHIWEI);
      assert.equal(line["delivery"]["settled_at"], new Date(NOON_MS).toISOString());
    });

    it("removes the message, its delivery, and the task it began with its artifacts", async () => {
      await using store = await open();
      const taskId = newId("task");
      const { id } = await send(store, { taskId });
      const answer = await send(store, { taskId, sender: ZHIWEI, recipient: LULU });
      await commit(store, {
        tasks: [aNewTask({ id: taskId, messageId: id, state: "completed" })],
        artifacts: [{ tenant: TENANT, taskId, artifact: { artifactId: "a", parts: [] } }],
        taskUpdates: [
          { tenant: TENANT, taskId, n: 1, atMs: NOON_MS, step: { kind: "status", state: "working" } },
        ],
      });
      await settle(store, id);
      await settle(store, answer.id);
      await store.retention.retireMessages(TENANT, [answer.id], LATER_MS);
      assert.ok((await store.tasks.get(TENANT, [taskId]))[0]);
      await store.retention.retireMessages(TENANT, [id, "unknown"], LATER_MS);
      assert.equal((await store.messages.get(TENANT, [id]))[0], undefined);
      assert.equal((await store.deliveries.get(TENANT, [id]))[0], undefined);
      assert.equal((await store.tasks.get(TENANT, [taskId]))[0], undefined);
      assert.deepEqual(await store.tasks.artifacts(TENANT, taskId), []);
      const steps = { tenant: TENANT, taskId, afterN: 0, withArtifacts: true, limit: 9, bytesMax: 999 };
      assert.deepEqual((await store.tasks.updates(steps)).updates, []);
    });

    it("keeps what is open", async () => {
      await using store = await open();
      const { id } = await send(store);
      await store.retention.retireMessages(TENANT, [id], LATER_MS);
      assert.ok((await store.messages.get(TENANT, [id]))[0]);
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 1);
    });

    it("keeps the events and the send keys of a retired message", async () => {
      await using store = await open();
      const sent = aSend();
      const [message] = sent.messages;
      await commit(store, { ...sent, sendKeys: [sendKeyOf(message, "一"), sendKeyOf(message, "二")] });
      await settle(store, message.id);
      await store.retention.retireMessages(TENANT, [message.id], LATER_MS);
      assert.equal((await store.journal.ofMessages(TENANT, [message.id])).length, 1);
      for (const key of ["一", "二"]) {
        assert.deepEqual(await store.messages.sendKey(TENANT, LULU, ZHIWEI, key), sendKeyOf(message, key));
      }
    });

    it("removes send keys by the time their message was retired, never before", async () => {
      await using store = await open();
      const goneAtMs = new Map([
        ["early", LATER_MS],
        ["late", LATER_MS + 10],
      ]);
      for (const key of ["early", "late", "present"]) {
        const sent = aSend();
        const [message] = sent.messages;
        await commit(store, { ...sent, sendKeys: [sendKeyOf(message, key)] });
        await settle(store, message.id);
        const atMs = goneAtMs.get(key);
        if (atMs !== undefined) await store.retention.retireMessages(TENANT, [message.id], atMs);
      }
      assert.equal(await store.retention.forgetExpired(expiryAt(0, { sendKeysBeforeMs: LATER_MS })), 0);
      assert.equal(await store.retention.forgetExpired(expiryAt(0, { sendKeysBeforeMs: LATER_MS + 1 })), 1);
      assert.equal(await store.messages.sendKey(TENANT, LULU, ZHIWEI, "early"), undefined);
      assert.equal(
        await store.retention.forgetExpired(expiryAt(0, { sendKeysBeforeMs: LATER_MS + 1_000 })),
        1,
      );
      assert.ok(await store.messages.sendKey(TENANT, LULU, ZHIWEI, "present"));
    });
  });
}
