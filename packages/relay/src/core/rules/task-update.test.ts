import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GUEST, isTerminal, LIMITS, type TaskState } from "@a2a-relay/protocol";
import { askedTask } from "../../../testing/asked-task.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { aTask } from "../../../testing/records.ts";
import { tell } from "./task-update.ts";
import type { TaskStep } from "../ports/tasks.ts";

async function stepsOf({ store, operator }: CoreOnMemory, taskId: string): Promise<readonly TaskStep[]> {
  const { updates } = await store.tasks.updates({
    tenant: operator.tenant,
    taskId,
    afterN: 0,
    withArtifacts: true,
    limit: 100,
    bytesMax: 1_000_000,
  });
  assert.deepEqual(
    updates.map(({ n }) => n),
    updates.map((_each, index) => index + 1),
  );
  const [task] = await store.tasks.get(operator.tenant, [taskId]);
  assert.equal(task?.updateCount, updates.length);
  return updates.map(({ step }) => step);
}

function statesOf(steps: readonly TaskStep[]): readonly (TaskState | TaskStep["kind"])[] {
  return steps.map((step) => (step.kind === "status" ? step.state : step.kind));
}

const ENDS: readonly (readonly [string, (core: CoreOnMemory, taskId: string) => Promise<unknown>])[] = [
  ["completed", ({ tasks, zhiwei }, id) => tasks.complete(zhiwei, id, { text: "好了" })],
  [
    "completed with artifacts",
    ({ tasks, zhiwei }, id) => tasks.complete(zhiwei, id, { artifacts: [{ parts: [{ text: "好了" }] }] }),
  ],
  ["failed", ({ tasks, zhiwei }, id) => tasks.fail(zhiwei, id, { reason: "做不了" })],
  ["canceled", ({ tasks, lulu }, id) => tasks.cancel(lulu, id, {})],
  [
    "answered by message",
    (core, id) => core.send({ from: ZHIWEI, to: LULU, type: "reply", task_id: id, body: "好了" }),
  ],
  [
    "past its deadline",
    async ({ clock, sweep }) => {
      clock.advance(2_000);
      await sweep.step();
    },
  ],
  ["without its agent", ({ agents, operator }) => agents.remove(operator, ZHIWEI)],
];

describe("the steps of a task", () => {
  it("hold every status with what was said, whole and as it was said", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const long = "很长".repeat(2_000);
    await core.tasks.reportStatus(core.zhiwei, taskId, {
      state: "working",
      text: long,
      parts: [{ text: long }, { data: null }],
      a2a_message: { messageId: "自己的", extensions: ["urn:x"] },
      metadata: { step: 1 },
    });
    await core.tasks.complete(core.zhiwei, taskId, { text: "好了" });
    const [working, completed] = await stepsOf(core, taskId);
    assert.deepEqual(working, {
      kind: "status",
      state: "working",
      said: {
        text: long,
        parts: [{ text: long }, { data: null }],
        a2aMessage: { messageId: "自己的", extensions: ["urn:x"] },
      },
      metadata: { step: 1 },
    });
    const { result_message_id: messageId } = await core.tasks.get(core.lulu, taskId);
    assert.deepEqual(completed, { kind: "status", state: "completed", said: { text: "好了", messageId } });
  });

  it("hold artifacts as they came, in pieces and with the end, before the status that ends it", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const artifact = (text: string): object => ({ artifactId: "a", parts: [{ text }] });
    await core.tasks.addArtifact(core.zhiwei, taskId, { artifact: artifact("一"), last_chunk: false });
    await core.tasks.addArtifact(core.zhiwei, taskId, { artifact: artifact("二"), append: true });
    const last = { artifact: artifact("三"), append: true, last_chunk: true, metadata: { 完: true } };
    await core.tasks.addArtifact(core.zhiwei, taskId, last);
    await core.tasks.complete(core.zhiwei, taskId, {
      artifacts: [{ artifactId: "b", parts: [{ text: "四" }] }],
    });
    const steps = await stepsOf(core, taskId);
    assert.deepEqual(statesOf(steps), ["artifact", "artifact", "artifact", "artifact", "completed"]);
    const pieces = steps.flatMap((step) => (step.kind === "artifact" ? [step] : []));
    assert.deepEqual(
      pieces.map(({ artifact: { parts }, append, lastChunk }) => [parts, append, lastChunk]),
      [
        [[{ text: "一" }], false, false],
        [[{ text: "二" }], true, false],
        [[{ text: "三" }], true, true],
        [[{ text: "四" }], false, true],
      ],
    );
    assert.deepEqual(pieces[2]?.metadata, { 完: true });
  });

  it("hold a question, what its requester added, and that the work goes on", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    await core.tasks.reportStatus(core.zhiwei, taskId, { state: "input-required", text: "哪一个？" });
    const { receipt } = await core.send({ type: "request", task_id: taskId, body: "第二个" });
    await core.send({ type: "request", task_id: taskId, body: "快一点" });
    const steps = await stepsOf(core, taskId);
    assert.deepEqual(statesOf(steps), ["input-required", "message", "working", "message"]);
    assert.deepEqual(steps[1], { kind: "message", messageId: receipt.message_id });
  });

  it("are the same when the agent answers by message", async () => {
    const { core, taskId, requestId } = await askedTask();
    await using _ = core;
    const about = { from: ZHIWEI, to: LULU, reply_to: requestId };
    await core.send({ ...about, type: "status", task_state: "working", body: "在做" });
    await core.send({ ...about, type: "reply", body: "哪一个？", needs_reply: true });
    const reply = await core.send({
      ...about,
      type: "reply",
      body: "好了",
      parts: [{ kind: "text", text: "好了" }],
    });
    const steps = await stepsOf(core, taskId);
    assert.deepEqual(statesOf(steps), ["working", "input-required", "completed"]);
    assert.deepEqual(steps[2], {
      kind: "status",
      state: "completed",
      said: { text: "好了", parts: [{ kind: "text", text: "好了" }], messageId: reply.receipt.message_id },
    });
  });

  it("tell of a handoff, a cancellation, and of of work that was given up", async () => {
    const { core, taskId, requestId } = await askedTask();
    await using _ = core;
    await core.agents.register(core.operator, { agent_id: "carol@host" });
    await core.send({ from: ZHIWEI, to: "carol@host", type: "handoff", task_id: taskId, body: "请你" });
    assert.deepEqual(statesOf(await stepsOf(core, taskId)), ["submitted"]);
    assert.equal((await core.store.tasks.get(core.operator.tenant, [taskId]))[0]?.firstMessageId, requestId);
    await core.tasks.cancel(core.lulu, taskId, {});
    assert.deepEqual((await stepsOf(core, taskId))[1], { kind: "status", state: "canceled" });

    const expiring = await core.send({
      type: "request",
      expires_at: new Date(core.clock.nowMs() + 1_000).toISOString(),
    });
    core.clock.advance(2_000);
    await core.sweep.step();
    const [failed] = await stepsOf(core, expiring.receipt.task_id ?? "");
    assert.ok(failed?.kind === "status" && failed.state === "failed" && failed.said?.text !== undefined);
  });

  it("are bounded in number and in what they weigh, all together", () => {
    const step: TaskStep = { kind: "status", state: "working", said: { text: "知知知知" } };
    const many = aTask({ updateCount: LIMITS.taskUpdatesMax - 2 });
    assert.equal(tell(many, [step], 1).task.updateCount, LIMITS.taskUpdatesMax - 1);
    assert.throws(() => tell(many, [step, step], 1), /has had 9999 updates/);
    const artifact = { artifactId: "a", parts: [{ text: "知知知知" }] };
    const piece: TaskStep = { kind: "artifact", artifact, append: false, lastChunk: true };
    for (const each of [step, piece]) {
      const bytes = Buffer.byteLength(JSON.stringify(each));
      const heavy = aTask({ updateBytes: LIMITS.taskUpdateBytesMax - bytes });
      assert.equal(tell(heavy, [each], 1).task.updateBytes, LIMITS.taskUpdateBytesMax);
      assert.throws(() => tell({ ...heavy, updateBytes: heavy.updateBytes + 1 }, [each], 1), /at most/);
    }
  });

  for (const [by, end] of ENDS) {
    it(`leave room for the end of a task that is full: ${by}`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      const full = { updateCount: LIMITS.taskUpdatesMax - 1, updateBytes: LIMITS.taskUpdateBytesMax };
      const [task] = await core.store.tasks.get(core.operator.tenant, [taskId]);
      assert.ok(task);
      const deadlineMs = core.clock.nowMs() + 1_000;
      await core.store.commit({
        tenant: task.tenant,
        tasks: [{ ...task, ...full, deadlineMs }],
        events: [],
      });
      const report = { state: "working", text: "还在做" };
      await refused(core.tasks.reportStatus(core.zhiwei, taskId, report), "too_large");
      await end(core, taskId);
      const { state, updateCount } = (await core.store.tasks.get(task.tenant, [taskId]))[0] ?? task;
      assert.ok(isTerminal(state), state);
      assert.ok(updateCount >= LIMITS.taskUpdatesMax);
    });
  }
});

describe("a guest", () => {
  it("asks, is asked back without a message, and is answered by any wire though it has no mailbox", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.messages.send(
      core.operator,
      { type: "request", to: ZHIWEI, body: "你好" },
      { isAsked: true },
    );
    const taskId = receipt.task_id ?? "";
    assert.equal((await core.tasks.get(core.zhiwei, taskId)).requester, GUEST);
    await core.tasks.reportStatus(core.zhiwei, taskId, { state: "input-required", text: "哪一个？" });
    const added = { type: "request", to: ZHIWEI, task_id: taskId, body: "第二个" };
    await core.messages.send(core.operator, added, { isAsked: true });
    const reply = await core.send({
      from: ZHIWEI,
      to: GUEST,
      type: "reply",
      reply_to: receipt.message_id,
      body: "好",
    });
    assert.equal((await core.delivery(reply.receipt.message_id)).state, "acknowledged");
    assert.deepEqual(statesOf(await stepsOf(core, taskId)), [
      "input-required",
      "message",
      "working",
      "completed",
    ]);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("cannot be written to out of the blue, registered, or spoken for", async () => {
    await using core = await coreOnMemory();
    await refused(core.send({ to: GUEST, body: "嗨" }), "unknown_agent");
    await refused(core.agents.register(core.operator, { agent_id: GUEST }), "invalid_argument");
    await refused(core.send({ from: GUEST, to: ZHIWEI, body: "嗨" }), "unknown_agent");
    const asGuest = core.messages.send(
      core.lulu,
      { type: "request", from: GUEST, to: ZHIWEI, body: "嗨" },
      { isAsked: true },
    );
    await refused(asGuest, "permission_denied");
  });

  it("sees the end of a task that was given up", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.messages.send(
      core.operator,
      { type: "request", to: ZHIWEI, body: "你好" },
      { isAsked: true },
    );
    await core.agents.remove(core.operator, ZHIWEI);
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual([task.state, task.result_message_id], ["failed", undefined]);
  });
});
