import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, type CoreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const KAMES = "kames@kamac";

async function setup(): Promise<{
  readonly core: CoreOnMemory;
  readonly taskId: string;
  readonly requestId: string;
}> {
  const core = await coreOnMemory();
  await core.agents.register(core.operator, { agent_id: KAMES });
  const { receipt } = await core.send({ type: "request", body: "帮我看看" });
  return { core, taskId: receipt.task_id ?? "", requestId: receipt.message_id };
}

describe("a handoff", () => {
  it("without a task makes one, as a request does", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "handoff" });
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual([task.state, task.requester, task.assignee], ["submitted", LULU, ZHIWEI]);
  });

  it("moves the task, keeps the requester, records the way and settles the old delivery", async () => {
    const { core, taskId, requestId } = await setup();
    await using _ = core;
    await core.tasks.reportStatus(core.operator, taskId, { state: "working", text: "在看" });
    const { receipt } = await core.send({ from: ZHIWEI, to: KAMES, type: "handoff", task_id: taskId });
    const task = await core.tasks.get(core.operator, taskId);
    assert.deepEqual(
      [task.state, task.requester, task.assignee, task.message_id, task.status_text],
      ["submitted", LULU, KAMES, receipt.message_id, undefined],
    );
    assert.deepEqual(task.handoffs, [
      { from: ZHIWEI, to: KAMES, message_id: receipt.message_id, at: "2026-05-08T12:00:00.000Z" },
    ]);
    assert.equal((await core.delivery(requestId)).state, "acknowledged");
    const stages = (await core.messages.get(core.operator, requestId)).receipts.map(({ stage }) => stage);
    assert.deepEqual(stages, ["accepted", "working", "acknowledged", "handed_off"]);
  });

  it("by answering the message that asked needs no task id", async () => {
    const { core, taskId, requestId } = await setup();
    await using _ = core;
    await core.send({ from: ZHIWEI, to: KAMES, type: "handoff", reply_to: requestId });
    assert.equal((await core.tasks.get(core.operator, taskId)).assignee, KAMES);
  });

  it("may go on and come back, and the result still goes to the requester", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    await core.send({ from: ZHIWEI, to: KAMES, type: "handoff", task_id: taskId });
    await core.send({ from: KAMES, to: ZHIWEI, type: "handoff", task_id: taskId });
    await core.tasks.complete(core.operator, taskId, { text: "好了" });
    const task = await core.tasks.get(core.operator, taskId);
    assert.deepEqual(
      task.handoffs.map(({ from, to }) => [from, to]),
      [
        [ZHIWEI, KAMES],
        [KAMES, ZHIWEI],
      ],
    );
    const [result] = await core.inboxOf(LULU);
    assert.deepEqual([result?.sender_agent_id, result?.message.body], [ZHIWEI, "好了"]);
    assert.equal((await core.inboxOf(KAMES)).length, 0);
  });

  it("takes the task away from the agent that had it", async () => {
    const { core, taskId, requestId } = await setup();
    await using _ = core;
    await core.send({ from: ZHIWEI, to: KAMES, type: "handoff", task_id: taskId });
    await refused(core.tasks.complete(core.zhiwei, taskId, {}), "not_found");
    const reply = { from: ZHIWEI, to: LULU, type: "reply" } as const;
    await refused(core.send({ ...reply, task_id: taskId }), "not_found");
    await refused(core.send({ ...reply, reply_to: requestId }), "permission_denied", /between/);
  });

  it("is for the agent that works on the task, and goes to neither end of it", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const handoff = { type: "handoff", task_id: taskId } as const;
    await refused(core.send({ ...handoff, from: LULU, to: KAMES }), "permission_denied", /only zhiwei/);
    await refused(core.send({ ...handoff, from: ZHIWEI, to: LULU }), "invalid_argument", /reject it instead/);
    await refused(core.send({ ...handoff, from: KAMES, to: ZHIWEI }), "not_found");
    await refused(core.send({ ...handoff, from: ZHIWEI, to: ZHIWEI }), "invalid_argument");
  });

  it("of leased work needs its lease", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const { lease_id } = await core.lease();
    const handoff = { from: ZHIWEI, to: KAMES, type: "handoff", task_id: taskId } as const;
    await refused(core.send(handoff), "lease_required");
    await core.send({ ...handoff, lease_id });
  });

  it("of a finished task is refused", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    await core.tasks.complete(core.operator, taskId, {});
    const handoff = { from: ZHIWEI, to: KAMES, type: "handoff", task_id: taskId } as const;
    await refused(core.send(handoff), "task_finished");
  });

  it("that expires ends the task, and both the requester and who passed it on are told", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const expires_at = new Date(core.clock.nowMs() + 1_000).toISOString();
    const { receipt } = await core.send({
      from: ZHIWEI,
      to: KAMES,
      type: "handoff",
      task_id: taskId,
      expires_at,
    });
    core.clock.advance(1_000);
    await core.sweep.step();
    assert.equal((await core.tasks.get(core.operator, taskId)).state, "failed");
    for (const told of [LULU, ZHIWEI]) {
      assert.deepEqual(
        (await core.inboxOf(told)).map(({ message }) => message.reply_to),
        [receipt.message_id],
        told,
      );
    }
  });
});

describe("a follow-up", () => {
  it("goes to the worker that holds the task, and to no other", async () => {
    const { core, taskId, requestId } = await setup();
    await using _ = core;
    const held = await core.lease({ worker: "w1" });
    const { receipt } = await core.send({ task_id: taskId, body: "还有" });
    const take = (worker: string) => core.mailboxes.lease(core.operator, ZHIWEI, { worker });
    assert.equal((await take("w2")).messages.length, 0);
    assert.equal((await take("w1")).messages[0]?.message_id, receipt.message_id);
    assert.equal(held.message_id, requestId);
  });

  for (const ending of ["release", "ack", "requeue", "fail"] as const) {
    it(`is free for any worker once the lease it waited for is over by ${ending}`, async () => {
      const { core, taskId } = await setup();
      await using _ = core;
      const { message_id, lease_id } = await core.lease({ worker: "w1" });
      await core.send({ task_id: taskId, body: "还有" });
      const { mailboxes, operator } = core;
      const leases = [{ message_id, lease_id }];
      if (ending === "release") await mailboxes.release(operator, ZHIWEI, { leases });
      if (ending === "ack") await mailboxes.ack(operator, ZHIWEI, { leases });
      if (ending === "fail") await mailboxes.fail(operator, ZHIWEI, { ...leases[0], reason: "no" });
      const command = { action: "requeue", duplicate_risk: "operator_accepted" };
      if (ending === "requeue") await core.repairs.repair(operator, { message_id, reason: "stuck", command });
      const open = await core.store.deliveries.openOfTasks("default", [taskId]);
      assert.deepEqual(
        open.filter(({ agentId }) => agentId === ZHIWEI).map(({ reservedFor }) => reservedFor),
        ending === "fail" ? [] : Array.from({ length: ending === "ack" ? 1 : 2 }, () => null),
      );
    });
  }

  it("keeps its order after what was sent before it when it becomes free", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const { message_id, lease_id } = await core.lease({ worker: "w1" });
    const followUp = await core.send({ task_id: taskId, body: "还有" });
    const note = await core.send({ body: "另外" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { leases: [{ message_id, lease_id }] });
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map((item) => item.message_id),
      [followUp.receipt.message_id, note.receipt.message_id],
    );
  });

  it("is refused when the task is over, or sent to an agent that does not have it", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    await refused(core.send({ task_id: taskId, to: KAMES }), "invalid_argument", /is with zhiwei/);
    await core.tasks.complete(core.operator, taskId, {});
    await refused(core.send({ task_id: taskId }), "task_finished");
  });

  it("from a stranger to the task learns nothing about it", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const stranger = { from: KAMES, to: ZHIWEI, body: "让我看看" } as const;
    const known = await refused(core.send({ ...stranger, task_id: taskId }), "not_found");
    const unknown = await refused(core.send({ ...stranger, task_id: "nothing" }), "not_found");
    assert.equal(known.message.replace(taskId, "X"), unknown.message.replace("nothing", "X"));
  });

  it("to the result of a finished task is a message in the same thread, not a refusal", async () => {
    const { core, taskId, requestId } = await setup();
    await using _ = core;
    const answer = await core.send({
      from: ZHIWEI,
      to: LULU,
      type: "reply",
      reply_to: requestId,
      body: "好了",
    });
    const thanks = await core.send({ type: "reply", reply_to: answer.receipt.message_id, body: "谢谢" });
    assert.equal(thanks.receipt.thread_id, answer.receipt.thread_id);
    assert.equal((await core.tasks.get(core.operator, taskId)).state, "completed");
    assert.equal((await core.inboxOf(ZHIWEI))[0]?.message.body, "谢谢");
  });

  it("that is canceled before it was taken tells the agent that handed the task over", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    await core.messages.send(core.zhiwei, { to: KAMES, type: "handoff", task_id: taskId, body: "交给你" });
    await core.tasks.cancel(core.lulu, taskId, {});
    const [notice, ...others] = await core.inboxOf(ZHIWEI);
    assert.equal(others.length, 0);
    assert.match(notice?.message.body ?? "", /is withdrawn: the task was canceled/);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });
});
