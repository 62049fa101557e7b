import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Changes } from "../src/core/ports/relay-store.ts";
import {
  aNewAgent,
  aNewMessage,
  aNewTask,
  anEvent,
  aSend,
  change,
  clashOf,
  commit,
  deliveryOf,
  newId,
  type OpenStore,
  readIds,
  send,
  sendKeyOf,
  storedDelivery,
  TENANT,
  ZHIWEI,
  countOpen,
} from "./store-builders.ts";
import { agentsNamed } from "../src/core/rules/agent-names.ts";

/** A change of every kind of record, to be refused whole: `bad` brings the clash. */
function aWideChange(bad: Partial<Changes>): { readonly changes: Changes; readonly id: string } {
  const message = aNewMessage({ taskId: newId("task") });
  const task = aNewTask({ id: message.taskId ?? "", messageId: message.id });
  const { id } = message;
  const changes: Changes = {
    tenant: TENANT,
    events: [anEvent({ messageId: id })],
    agents: [aNewAgent({ id: ZHIWEI }), ...(bad.agents ?? [])],
    messages: [message, ...(bad.messages ?? [])],
    sendKeys: [sendKeyOf(message, id), ...(bad.sendKeys ?? [])],
    deliveries: [deliveryOf(message), ...(bad.deliveries ?? [])],
    tasks: [task, ...(bad.tasks ?? [])],
    artifacts: [{ tenant: TENANT, taskId: task.id, artifact: { artifactId: "a", parts: [] } }],
  };
  return { changes, id };
}

export function describeCommit(open: OpenStore): void {
  describe("commit", () => {
    it("takes no two messages with one id, and counts none of them", async () => {
      await using store = await open();
      const [first, second] = [aSend({ id: "同一个" }), aSend({ id: "同一个" })];
      const changes = {
        messages: [...first.messages, ...second.messages],
        deliveries: [first, second].flatMap(({ deliveries = [] }) => deliveries),
      };
      assert.equal(await clashOf(store, changes), "message_id");
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 0);
      await commit(store, first);
      assert.equal(await clashOf(store, changes), "message_id");
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 1);
    });

    it("writes a message, its delivery, its key, its task and its events together", async () => {
      await using store = await open();
      const message = aNewMessage({ kind: "request", taskId: newId("task") });
      const task = aNewTask({ id: message.taskId ?? "", messageId: message.id });
      await commit(store, {
        messages: [message],
        deliveries: [deliveryOf(message)],
        sendKeys: [sendKeyOf(message, "钥匙")],
        tasks: [task],
        events: [anEvent({ messageId: message.id })],
      });
      assert.deepEqual((await store.messages.get(TENANT, [message.id]))[0], message);
      const delivery = await storedDelivery(store, message.id);
      assert.deepEqual(delivery, { ...deliveryOf(message), position: delivery.position, version: 1 });
      assert.deepEqual((await store.tasks.get(TENANT, [task.id]))[0], { ...task, version: 1 });
      const key = await store.messages.sendKey(TENANT, message.sender, message.recipient, "钥匙");
      assert.deepEqual(key, sendKeyOf(message, "钥匙"));
      assert.equal((await store.journal.ofMessages(TENANT, [message.id])).length, 1);
    });

    const clashes = [
      "agent",
      "agent_name",
      "message_id",
      "send_key",
      "delivery",
      "task",
      "result_key",
    ] as const;
    for (const clash of clashes) {
      it(`writes nothing at all when another caller was faster: ${clash}`, async () => {
        await using store = await open();
        const existing = aNewMessage();
        const existingTask = aNewTask({ messageId: existing.id, resultKey: "结果" });
        const existingAgent = aNewAgent({ id: "another@host" as typeof ZHIWEI, aliases: ["又名"] });
        await commit(store, {
          agents: [existingAgent],
          messages: [existing],
          deliveries: [deliveryOf(existing)],
          sendKeys: [sendKeyOf(existing, "taken")],
          tasks: [existingTask],
        });
        const headBefore = (await store.journal.chain(TENANT)).head;
        const stale = { ...(await storedDelivery(store, existing.id)), version: 7 };
        const bad: Record<typeof clash, Partial<Changes>> = {
          agent: { agents: [existingAgent] },
          agent_name: { agents: [aNewAgent({ id: "third@host" as typeof ZHIWEI, aliases: ["又名"] })] },
          message_id: { messages: [existing] },
          send_key: { sendKeys: [sendKeyOf(existing, "taken")] },
          delivery: { deliveries: [stale] },
          task: { tasks: [{ ...existingTask, version: 7 }] },
          result_key: { tasks: [aNewTask({ resultKey: "结果" })] },
        };
        const { changes, id } = aWideChange(bad[clash]);
        assert.equal(await clashOf(store, changes), clash);
        assert.equal((await store.messages.get(TENANT, [id]))[0], undefined);
        assert.equal((await store.deliveries.get(TENANT, [id]))[0], undefined);
        assert.equal(await store.agents.get(TENANT, ZHIWEI), undefined);
        assert.deepEqual(await agentsNamed(store, TENANT, ZHIWEI), []);
        const [task] = changes.tasks ?? [];
        assert.equal((await store.tasks.get(TENANT, [task?.id ?? ""]))[0], undefined);
        assert.deepEqual(await store.tasks.artifacts(TENANT, task?.id ?? ""), []);
        const [key] = changes.sendKeys ?? [];
        assert.ok(key);
        assert.equal(await store.messages.sendKey(TENANT, key.sender, key.recipient, key.key), undefined);
        assert.deepEqual(await store.journal.ofMessages(TENANT, [id]), []);
        assert.deepEqual((await store.journal.chain(TENANT)).head, headBefore);
        assert.equal(await countOpen(store, TENANT, ZHIWEI), 1);
        assert.deepEqual(await readIds(store), [existing.id]);
      });
    }

    it("refuses a second delivery of the same message", async () => {
      await using store = await open();
      const message = await send(store);
      assert.equal(await clashOf(store, { deliveries: [deliveryOf(message)] }), "delivery");
    });

    it("refuses a delivery of an unknown message", async () => {
      await using store = await open();
      assert.equal(await clashOf(store, { deliveries: [deliveryOf(aNewMessage())] }), "delivery");
      assert.equal(
        await clashOf(store, { deliveries: [deliveryOf(aNewMessage(), { version: 3 })] }),
        "delivery",
      );
    });

    it("raises the version with every change, so that only one of two writers wins", async () => {
      await using store = await open();
      const { id } = await send(store);
      const before = await storedDelivery(store, id);
      const outcomes = await Promise.all([
        clashOf(store, { deliveries: [{ ...before, state: "acknowledged" }] }),
        clashOf(store, { deliveries: [{ ...before, state: "dead" }] }),
      ]);
      assert.deepEqual(outcomes.toSorted(), ["delivery", "none, it was committed"]);
      const after = await storedDelivery(store, id);
      assert.equal(after.state, outcomes[0] === "delivery" ? "dead" : "acknowledged");
      assert.equal(after.version, before.version + 1);
    });

    it("keeps the others when one of many that commit at once is refused", async () => {
      await using store = await open();
      const taken = await send(store);
      const changes = Array.from({ length: 60 }, (_, index) =>
        index % 3 === 1 ? aSend({ id: taken.id }) : aSend(),
      );
      const outcomes = await Promise.all(changes.map((each) => store.commit(each)));
      for (const [index, outcome] of outcomes.entries()) {
        assert.equal(outcome.committed, index % 3 !== 1, `commit ${index}`);
      }
      const kept = changes.filter((_, index) => index % 3 !== 1).map(({ messages }) => messages[0].id);
      const [first, ...others] = await readIds(store);
      assert.equal(first, taken.id);
      assert.deepEqual(others.toSorted(), kept.toSorted());
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 41);
      assert.equal((await store.journal.chain(TENANT)).head.seq, 41);
    });

    it("undoes a caller whose event cannot be written, and no other", async () => {
      await using store = await open();
      const first = await send(store);
      const event = anEvent({ data: { number: 1n } });
      const marks = [{ messageId: first.id, event }];
      const broken = store.deliveries.markDelivered({ tenant: TENANT, deliveredAtMs: 1, marks });
      const [, sent] = await Promise.all([assert.rejects(broken, { code: "internal" }), send(store)]);
      assert.equal((await storedDelivery(store, first.id)).deliveredAtMs, null);
      assert.deepEqual(await readIds(store), [first.id, sent.id]);
    });

    it("accepts one of a hundred concurrent sends with one key", async () => {
      await using store = await open();
      const changes = Array.from({ length: 100 }, () => {
        const sent = aSend();
        return { ...sent, sendKeys: [sendKeyOf(sent.messages[0], "same")] };
      });
      const outcomes = await Promise.all(changes.map((each) => clashOf(store, each)));
      assert.equal(outcomes.filter((outcome) => outcome === "none, it was committed").length, 1);
      assert.equal(outcomes.filter((outcome) => outcome === "send_key").length, 99);
      assert.equal((await readIds(store)).length, 1);
    });

    it("clashes on the send key first when the same message comes a second time", async () => {
      await using store = await open();
      const sent = aSend();
      const changes = { ...sent, sendKeys: [sendKeyOf(sent.messages[0], "again")] };
      await commit(store, changes);
      assert.equal(await clashOf(store, changes), "send_key");
    });

    it("accepts no more new messages than the mailbox has room for, however many come at once", async () => {
      await using store = await open();
      await commit(store, { agents: [aNewAgent()] });
      const room = [{ agentId: ZHIWEI, openMax: 3 }];
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.commit({ ...aSend(), room })));
      const refused = outcomes.filter(({ committed }) => !committed);
      assert.deepEqual(
        refused,
        Array.from({ length: 5 }, () => ({ committed: false, clash: "mailbox" })),
      );
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 3);
      await commit(store, aSend());
      assert.equal(await countOpen(store, TENANT, ZHIWEI), 4);
    });

    it("commits a change that has events only", async () => {
      await using store = await open();
      await commit(store, { events: [anEvent({ type: "retry.scanned" })] });
      assert.equal((await store.journal.chain(TENANT)).head.seq, 1);
    });

    it("answers a probe without a trace in the journal", async () => {
      await using store = await open();
      const { id } = await send(store);
      const before = (await store.journal.chain(TENANT)).head;
      await store.probe(1);
      await store.probe(2);
      assert.deepEqual((await store.journal.chain(TENANT)).head, before);
      assert.equal((await change(store, id, { state: "dead" })).state, "dead");
    });
  });
}
