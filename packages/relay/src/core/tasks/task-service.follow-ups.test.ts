import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, type CoreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const KAMES = "kames@kamac";

async function requested(core: CoreOnMemory): Promise<string> {
  return (await core.send({ type: "request", body: "帮我看看" })).receipt.task_id ?? "";
}

describe("an unread follow-up", () => {
  it("keeps its task from being handed over, until it is read", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: KAMES });
    const taskId = await requested(core);
    const { receipt } = await core.send({ task_id: taskId, body: "更正" });
    const handoff = { to: KAMES, type: "handoff", task_id: taskId, body: "交给你" };
    const error = await refused(core.messages.send(core.zhiwei, handoff), "wrong_state", /have not read/);
    assert.deepEqual(error.details, { message_ids: [receipt.message_id] });
    await core.mailboxes.read(core.zhiwei, ZHIWEI, {});
    await core.messages.send(core.zhiwei, handoff);
    assert.equal((await core.tasks.get(core.operator, taskId)).assignee, KAMES);
  });

  it("is withdrawn, not acknowledged, when the task is finished without it", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    const { receipt } = await core.send({ task_id: taskId, body: "更正" });
    await core.tasks.complete(core.zhiwei, taskId, { text: "好了" });
    const delivery = await core.delivery(receipt.message_id);
    assert.equal(delivery.state, "withdrawn");
    assert.match(delivery.reason ?? "", /finished before this was read/);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("is withdrawn by a cancel at the same time", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    const followUp = core.send({ task_id: taskId, body: "更正" });
    await Promise.allSettled([followUp, core.tasks.cancel(core.lulu, taskId, {})]);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("is free for other workers when its worker releases the task at the same time", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    const { message_id, lease_id } = await core.lease({ worker: "w1" });
    const release = core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
    await Promise.all([core.send({ task_id: taskId, body: "更正" }), release]);
    const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, { max: 10, worker: "w2" });
    assert.deepEqual(messages.map(({ message }) => message.body).toSorted(), ["帮我看看", "更正"].toSorted());
  });

  it("is free for other workers once its worker has failed another one", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    await core.lease({ worker: "w1" });
    await core.send({ task_id: taskId, body: "一" });
    await core.send({ task_id: taskId, body: "二" });
    const first = await core.lease({ worker: "w1" });
    await core.mailboxes.fail(core.zhiwei, ZHIWEI, {
      message_id: first.message_id,
      lease_id: first.lease_id,
      reason: "看不懂",
    });
    const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, { worker: "w2" });
    assert.equal(messages[0]?.message.body, "二");
  });
});

describe("an answer", () => {
  it("is the same answer under another key", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    const reply = { to: LULU, type: "reply", task_id: taskId, body: "好了" };
    const first = await core.messages.send(core.zhiwei, { ...reply, idempotency_key: "k1" });
    const again = await core.messages.send(core.zhiwei, { ...reply, idempotency_key: "k2" });
    assert.equal(again.created, false);
    assert.equal(again.receipt.message_id, first.receipt.message_id);
    await refused(core.messages.send(core.zhiwei, { ...reply, body: "别的" }), "task_finished");
  });

  it("about the state of a task comes from its assignee", async () => {
    await using core = await coreOnMemory();
    const taskId = await requested(core);
    const status = { type: "status", task_id: taskId, task_state: "canceled", body: "算了" } as const;
    await refused(core.send(status), "invalid_argument", /POST \/tasks\/\{id\}\/cancel/);
  });
});
