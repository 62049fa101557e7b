import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type A2aTask, type Artifact, LIMITS } from "@a2a-relay/protocol";
import { callerOf } from "../../../testing/a2a-asking.ts";
import { type AskedTask, askedTask } from "../../../testing/asked-task.ts";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { A2aPage } from "../a2a/a2a-streams.ts";

function textsOf(task: A2aTask): readonly unknown[] {
  return (task.history ?? []).map(({ parts }) => parts[0]?.["text"]);
}

function piecesOf(artifacts: readonly Artifact[] | undefined): string {
  return (artifacts ?? []).flatMap(({ parts }) => parts.map((part) => String(part["text"]))).join("");
}

/** As a relay wrote it before it kept the steps of tasks. */
async function madeOld({ core, taskId }: AskedTask, said: Partial<TaskRecord>): Promise<void> {
  const task = await core.store.task(core.operator.tenant, taskId);
  assert.ok(task);
  const old = { ...task, updateCount: 0, updateBytes: 0, firstMessageId: null, ...said };
  await core.store.commit({ tenant: task.tenant, tasks: [old], events: [] });
}

describe("the history of a task", () => {
  it("has the newest messages, as many as are asked for, in their order", async () => {
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

  it("begins later where all of it would be too long for an answer", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const long = "x".repeat(900_000);
    for (let index = 0; index < 12; index += 1) {
      await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working", text: `${index}${long}` });
    }
    const told = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.ok(Buffer.byteLength(JSON.stringify(told.history)) <= LIMITS.answerBytesMax);
    assert.deepEqual(
      textsOf(told).map((text) => String(text).replaceAll("x", "")),
      ["3", "4", "5", "6", "7", "8", "9", "10", "11"],
    );
    assert.ok(told.status.message);
  });

  it("is read without the steps that nobody asked for", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    for (let index = 0; index < 20; index += 1) {
      await core.tasks.reportStatus(core.zhiwei, taskId, { state: "working", text: `第${index}步` });
    }
    let read = 0;
    const lastTaskUpdates = core.store.lastTaskUpdates.bind(core.store);
    core.store.lastTaskUpdates = async (query) => {
      const page = await lastTaskUpdates(query);
      read += page.updates.length;
      return page;
    };
    const told = await core.a2a.get(callerOf(core.lulu), { id: taskId, historyLength: 0 });
    assert.deepEqual(told.status.message?.parts, [{ text: "第19步" }]);
    assert.equal(read, 1);
  });
});

describe("the task that a stream begins with", () => {
  for (const verb of ["message", "lastTaskUpdates", "taskWithArtifacts", "artifacts"] as const) {
    it(`shows every piece once, also one that comes while it is read: before ${verb}`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      const add = (text: string, append: boolean): Promise<unknown> =>
        core.tasks.addArtifact(core.zhiwei, taskId, {
          artifact: { artifactId: "a", parts: [{ text }] },
          append,
        });
      await add("一", false);
      const store = core.store as unknown as Record<string, (...asked: unknown[]) => Promise<unknown>>;
      const read = store[verb] ?? assert.fail();
      const pages = await core.a2a.subscribe(callerOf(core.lulu), { id: taskId }, { afterN: undefined });
      store[verb] = async (...asked) => {
        store[verb] = read;
        await add("二", true);
        return read(...asked);
      };
      let text = "";
      const show = ({ events }: A2aPage): void => {
        for (const { event } of events) {
          if (event.task !== undefined) text = piecesOf(event.task.artifacts);
          if (event.artifactUpdate !== undefined) text += piecesOf([event.artifactUpdate.artifact]);
        }
      };
      const reader = pages[Symbol.asyncIterator]();
      show((await reader.next()).value as A2aPage);
      store[verb] = read;
      await add("三", true);
      await core.tasks.complete(core.zhiwei, taskId, { text: "好了" });
      for (let next = await reader.next(); next.done !== true; next = await reader.next()) show(next.value);
      assert.match(text, /^一二?三$/);
      const [whole] = await core.store.artifacts(core.operator.tenant, taskId);
      assert.equal(text, piecesOf(whole === undefined ? [] : [whole]));
    });
  }
});

describe("a task from before its steps were kept", () => {
  it("shows what it was answered with, whole where its message is still there", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    const long = "很长".repeat(2_000);
    await core.tasks.complete(core.zhiwei, taskId, { text: long, parts: [{ text: long }, { data: 1 }] });
    await madeOld(asked, {});
    const told = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.equal(told.status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(told.status.message?.parts, [{ text: long }, { data: 1 }]);
    assert.equal(told.status.message.role, "ROLE_AGENT");
    assert.deepEqual(textsOf(told), ["知微你好", long]);
    await madeOld(asked, { resultMessageId: null, statusText: "好了" });
    const short = await core.a2a.get(callerOf(core.lulu), { id: taskId, historyLength: 0 });
    assert.deepEqual(short.status.message?.parts, [{ text: "好了" }]);
  });

  it("shows what was said of it while it is worked on, and not why it was canceled", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    await madeOld(asked, { state: "working", statusText: "在做" });
    await core.send({ type: "request", task_id: taskId, body: "快一点" });
    const told = await core.a2a.get(callerOf(core.lulu), { id: taskId });
    assert.deepEqual(told.status.message?.parts, [{ text: "在做" }]);
    assert.deepEqual(textsOf(told), ["知微你好", "在做", "快一点"]);
    await madeOld(asked, { state: "canceled", statusText: "不要了" });
    assert.equal((await core.a2a.get(callerOf(core.lulu), { id: taskId })).status.message, undefined);
  });

  it("does not show the message that handed it over as its requester's", async () => {
    const asked = await askedTask();
    const { core, taskId } = asked;
    await using _ = core;
    await core.agents.register(core.operator, { agent_id: "carol@host" });
    await core.send({ from: ZHIWEI, to: "carol@host", type: "handoff", task_id: taskId, body: "请你" });
    await madeOld(asked, {});
    const told = await core.a2a.get(callerOf(core.lulu, { agentId: undefined }), { id: taskId });
    assert.deepEqual(
      [told.history, (await core.store.task(core.operator.tenant, taskId))?.requester],
      [undefined, LULU],
    );
  });
});
