import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type A2aTask, LIMITS } from "@a2a-relay/protocol";
import { callerOf } from "../../../testing/a2a-requests.ts";
import { type AskedTask, askedTask } from "../../../testing/asked-task.ts";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import type { TaskRecord } from "../ports/tasks.ts";

function textsOf(task: A2aTask): readonly unknown[] {
  return (task.history ?? []).map(({ parts }) => parts[0]?.["text"]);
}

/** Stores the task as relays did before they stored task updates. */
async function madeOld({ core, taskId }: AskedTask, said: Partial<TaskRecord>): Promise<void> {
  const [task] = await core.store.tasks.get(core.operator.tenant, [taskId]);
  assert.ok(task);
  const old = { ...task, updateCount: 0, updateBytes: 0, firstMessageId: null, ...said };
  await core.store.commit({ tenant: task.tenant, tasks: [old], events: [] });
}

describe("the history of a task", () => {
  it("contains the newest messages in their order, as many as the caller wants", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    for (const text of ["一", "二", "三"]) {
      await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working", text });
    }
    await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working" });
    await core.tasks.addArtifact(core.zhiwei, taskId, { artifact: { parts: [{ text: "件" }] } });
    await core.send({ type: "request", task_id: taskId, body: "快一点" });
    const get = (historyLength?: number): Promise<A2aTask> =>
      core.a2a.get(callerOf(core.lulu), {
        id: taskId,
        ...(historyLength === undefined ? {} : { historyLength }),
      });
    assert.deepEqual(textsOf(await get()), ["知微你好", "一", "二", "三", "快一点"]);
    assert.deepEqual(textsOf(await get(2)), ["三", "快一点"]);
    assert.deepEqual(textsOf(await get(4)), ["一", "二", "三", "快一点"]);
    assert.deepEqual(textsOf(await get(100)), ["知微你好", "一", "二", "三", "快一点"]);
    const none = await get(0);
    assert.deepEqual([none.history, none.status.state], [undefined, "TASK_STATE_WORKING"]);
    assert.equal(none.status.message, undefined);
  });

  it("leaves out the oldest messages where all would not fit into one answer", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const long = "x".repeat(900_000);
    for (let index = 0; index < 12; index += 1) {
      await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working", text: `${index}${long}` });
    }
    const task = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.ok(Buffer.byteLength(JSON.stringify(task.history)) <= LIMITS.answerBytesMax);
    assert.deepEqual(
      textsOf(task).map((text) => String(text).replaceAll("x", "")),
      ["3", "4", "5", "6", "7", "8", "9", "10", "11"],
    );
    assert.ok(task.status.message);
  });

  it("is not read where the caller wants none", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    for (let index = 0; index < 20; index += 1) {
      await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working", text: `第${index}步` });
    }
    let read = 0;
    const lastTaskUpdates = core.store.tasks.lastUpdates.bind(core.store.tasks);
    core.store.tasks.lastUpdates = async (query) => {
      const page = await lastTaskUpdates(query);
      read += page.updates.length;
      return page;
    };
    const task = await core.a2a.get(callerOf(core.lulu), { id: taskId, historyLength: 0 });
    assert.deepEqual(task.status.message?.parts, [{ text: "第19步" }]);
    assert.equal(read, 1);
  });
});

describe("a task without stored updates", () => {
  it("contains its answer, whole where the relay still has the message", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    const long = "很长".repeat(2_000);
    await core.tasks.complete(core.zhiwei, taskId, { text: long, parts: [{ text: long }, { data: 1 }] });
    await madeOld(asked, {});
    const task = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.equal(task.status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(task.status.message?.parts, [{ text: long }, { data: 1 }]);
    assert.equal(task.status.message.role, "ROLE_AGENT");
    assert.deepEqual(textsOf(task), ["知微你好", long]);
    await madeOld(asked, { resultMessageId: null, statusText: "好了" });
    const short = await core.a2a.get(callerOf(core.lulu), { id: taskId, historyLength: 0 });
    assert.deepEqual(short.status.message?.parts, [{ text: "好了" }]);
  });

  it("contains its last status text, but not the reason of a cancellation", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    await madeOld(asked, { state: "working", statusText: "在做" });
    await core.send({ type: "request", task_id: taskId, body: "快一点" });
    const task = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.deepEqual(task.status.message?.parts, [{ text: "在做" }]);
    assert.deepEqual(textsOf(task), ["知微你好", "在做", "快一点"]);
    await madeOld(asked, { state: "canceled", statusText: "不要了" });
    assert.equal((await core.a2a.get(callerOf(core.lulu), { id: taskId })).status.message, undefined);
  });

  it("does not contain the handoff as a message of its requester", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    await core.agents.register(core.operator, { agent_id: "carol@host" });
    await core.send({ from: ZHIWEI, to: "carol@host", type: "handoff", task_id: taskId, body: "请你" });
    await madeOld(asked, {});
    const task = await core.a2a.get(callerOf(core.lulu, { agentId: undefined }), { id: taskId });
    assert.deepEqual(
      [task.history, (await core.store.tasks.get(core.operator.tenant, [taskId]))[0]?.requester],
      [undefined, LULU],
    );
  });
});
