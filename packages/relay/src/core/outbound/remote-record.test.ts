import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU } from "../../../testing/core-on-memory.ts";
import {
  AGENT_URL,
  aRemoteTask,
  type RemoteCore,
  remoteCore,
  RpcError,
  saying,
} from "../../../testing/fake-agent.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

/** Each update in short: the state and its text, or the text of an artifact, with `+` appended, with `.` its last. */
async function storyOf(core: RemoteCore, taskId: string): Promise<readonly string[]> {
  const query = { tenant: DEFAULT_TENANT, taskId, afterN: 0, withArtifacts: true, limit: 100 };
  const { updates } = await core.store.tasks.updates({ ...query, bytesMax: LIMITS.answerBytesMax });
  return updates.map(({ step }) => {
    if (step.kind === "status") return `${step.state} ${step.said?.text ?? ""}`.trim();
    if (step.kind === "message") return "message";
    const text = step.artifact.parts.map((part) => part["text"]).join("");
    return `${step.append ? "+" : ""}${text}${step.lastChunk ? "." : ""}`;
  });
}

function said(text: string, more: object = {}): object {
  return { messageId: text, role: "ROLE_AGENT", parts: [{ text }], ...more };
}

function made(...texts: readonly string[]): object {
  return { artifacts: [{ artifactId: "文", parts: texts.map((text) => ({ text })) }] };
}

describe("a remote task that is polled", () => {
  it("records its status, then its artifacts, which are complete only at its end", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    for (const task of [
      { ...saying("WORKING", "开始"), ...made("一") },
      { ...saying("WORKING", "一半"), ...made("一", "二") },
      { ...saying("COMPLETED", "好了"), ...made("一", "二", "三") },
    ]) {
      core.agent.get = () => task;
      await core.pollNext();
    }
    assert.deepEqual(await storyOf(core, taskId), [
      "working",
      "working 开始",
      "一",
      "working 一半",
      "+二",
      "+三.",
      "completed 好了",
    ]);
  });

  it("completes an artifact of several pieces with the last only", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const texts = Array.from({ length: LIMITS.partsMax + 1 }, () => "字");
    core.agent.get = () => ({ ...saying("COMPLETED", "好了"), ...made(...texts) });
    await core.pollNext();
    const whole = "字".repeat(LIMITS.partsMax);
    assert.deepEqual((await storyOf(core, taskId)).slice(1), [whole, "+字.", "completed 好了"]);
  });

  it("asks its question once, though its artifacts could not be recorded the first time", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => ({ ...saying("INPUT_REQUIRED", "哪一个？"), ...made("草稿") });
    const commit = core.store.commit.bind(core.store);
    core.store.commit = async (changes) => {
      if (changes.artifacts !== undefined) throw new Error("坏了");
      return commit(changes);
    };
    core.clock.advance(await core.waitMs());
    await assert.rejects(core.poll());
    core.store.commit = commit;
    await core.pollNext();
    assert.deepEqual(await storyOf(core, taskId), ["working", "input-required 哪一个？", "草稿"]);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });
});

describe("what a remote agent said between two polls", () => {
  it("is recorded before its newest message, each once and in order", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const history = [said("帮个忙", { role: "ROLE_USER" }), said("开始"), said("一半")];
    const polled = [
      { ...saying("WORKING", "开始"), history: history.slice(0, 2) },
      { ...saying("WORKING", "快了"), history },
      { ...saying("WORKING", "快了"), history: [...history, said("快了")] },
      { ...saying("COMPLETED", "好了"), history: [...history, said("快了"), said("收尾"), said("好了")] },
    ];
    for (const task of polled) {
      core.agent.get = () => task;
      await core.pollNext();
    }
    const expected = [
      "working",
      "working 开始",
      "working 一半",
      "working 快了",
      "working 收尾",
      "completed 好了",
    ];
    assert.deepEqual(await storyOf(core, taskId), expected);
  });

  it("is recognized however long it is and however much was said since", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const history = [said("长".repeat(LIMITS.bodyBytesMax / 2), { messageId: "长" })];
    for (let poll = 0; poll < 60; poll += 1) {
      core.agent.get = () => ({ ...saying("WORKING", `第${poll}`), history });
      await core.pollNext();
    }
    const story = await storyOf(core, taskId);
    assert.equal(story.filter((step) => step.endsWith(" […]")).length, 1);
    assert.equal(story.length, 62);
  });

  it("leaves out what was said to another task, has no id, or is the answer itself", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const history = [
      said("别处", { taskId: "另一个" }),
      said("无名", { messageId: undefined }),
      said("这里", { taskId: "他们的任务" }),
      said("答案"),
    ];
    core.agent.get = () => aRemoteTask({ status: { state: "TASK_STATE_COMPLETED" }, history });
    await core.pollNext();
    assert.deepEqual(await storyOf(core, taskId), ["working", "working 这里", "completed 答案"]);
  });

  it("is bounded to the last of it", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const history = Array.from({ length: 50 }, (_, index) => said(`第${index}`));
    core.agent.get = () => aRemoteTask({ history });
    await core.pollNext();
    const story = await storyOf(core, taskId);
    assert.deepEqual([story.length, story[1], story.at(-1)], [21, "working 第30", "working 第49"]);
  });

  it("does not take a question back that still waits for its answer", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    for (const history of [[], [said("想")]]) {
      core.agent.get = () => ({ ...saying("INPUT_REQUIRED", "哪一个？"), history });
      await core.pollNext();
    }
    assert.equal((await core.task(taskId)).state, "input-required");
    core.agent.get = () => ({ ...saying("WORKING", "明白"), history: [said("想"), said("哪一个？")] });
    await core.pollNext();
    const expected = ["working", "input-required 哪一个？", "working 想", "working 明白"];
    assert.deepEqual(await storyOf(core, taskId), expected);
  });
});

describe("a state that A2A does not have", () => {
  const paused = (): object => aRemoteTask({ status: { state: "paused" }, ...made("草稿") });

  it("is polled less and less often, then given up, and the task is canceled at the agent", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = paused;
    const waits: number[] = [];
    for (let poll = 0; poll < 21; poll += 1) {
      await core.pollNext();
      waits.push(await core.waitMs());
    }
    assert.deepEqual(waits.slice(0, 4), [1_000, 2_000, 4_000, 8_000]);
    const { state, status_text: why, artifacts } = await core.task(taskId);
    assert.deepEqual([state, artifacts.length], ["failed", 1]);
    assert.match(why ?? "", /for an hour: the agent says that its task is in the state "paused"/);
    assert.equal(await core.poll(), 1);
    assert.equal(core.agent.calledFor("CancelTask").length, 1);
    assert.equal(await core.waitMs(), Infinity);
  });

  it("is forgotten when the agent names another, also when it was in its first answer", async () => {
    await using core = await remoteCore();
    core.agent.send = () => ({ task: paused() });
    const { taskId } = await core.taken();
    assert.equal(await core.waitMs(), 1_000);
    core.agent.get = paused;
    for (let poll = 0; poll < 15; poll += 1) await core.pollNext();
    assert.equal(core.agent.calledFor("GetTask").length, 15);
    core.agent.get = () => saying("WORKING", "又开始了");
    await core.pollNext();
    assert.equal(await core.waitMs(), 250);
    core.agent.get = paused;
    for (let poll = 0; poll < 15; poll += 1) await core.pollNext();
    core.agent.get = () => saying("COMPLETED", "好了");
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "completed");
  });
});

describe("a question of a remote agent", () => {
  async function asked(core: RemoteCore): Promise<{ taskId: string; questionId: string }> {
    const { taskId } = await core.taken();
    core.agent.get = () => saying("INPUT_REQUIRED", "哪一个？");
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "input-required");
    const [question] = await core.inboxOf(LULU);
    assert.equal(question?.message.body, "哪一个？");
    return { taskId, questionId: question.message_id };
  }

  const reply = (core: RemoteCore, questionId: string): Promise<unknown> =>
    core.messages.send(core.lulu, { to: AGENT_URL, type: "reply", reply_to: questionId, body: "第二个" });

  it("is asked once, and the answer goes to the same task there", async () => {
    await using core = await remoteCore();
    const { taskId, questionId } = await asked(core);
    await core.pollNext();
    assert.equal((await core.inboxOf(LULU)).length, 1);
    await reply(core, questionId);
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.deepEqual(await core.push(), ["delivered"]);
    const message = core.agent.calledFor("SendMessage").at(-1)?.["message"] as Record<string, unknown>;
    assert.deepEqual([message["taskId"], message["contextId"]], ["他们的任务", "他们的话题"]);
    core.agent.get = () => saying("COMPLETED", "好的，第二个");
    await core.poll();
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "completed");
  });

  it("is not asked again because the agent has not read the answer yet", async () => {
    await using core = await remoteCore();
    const { taskId, questionId } = await asked(core);
    await reply(core, questionId);
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "working");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("is asked again when the agent did not take the answer", async () => {
    await using core = await remoteCore();
    const { taskId, questionId } = await asked(core);
    await reply(core, questionId);
    core.agent.send = () => {
      throw new RpcError(-32602, "看不懂");
    };
    assert.deepEqual(await core.push(), ["refused"]);
    assert.equal((await core.task(taskId)).state, "working");
    await core.poll();
    assert.equal((await core.task(taskId)).state, "input-required");
    const bodies = (await core.inboxOf(LULU)).map(({ message }) => message.body);
    assert.deepEqual(bodies.filter((body) => body === "哪一个？").length, 2);
    assert.equal(bodies.length, 3);
    assert.match(bodies[1] ?? "", /the agent refused it: 看不懂/);
  });

  it("may be answered with a remark, after which the task goes on", async () => {
    await using core = await remoteCore();
    const { taskId, questionId } = await asked(core);
    await reply(core, questionId);
    core.agent.send = () => ({ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "明白" }] } });
    assert.deepEqual(await core.push(), ["delivered"]);
    await core.poll();
    const { state, status_text: text } = await core.task(taskId);
    assert.deepEqual([state, text], ["working", "明白"]);
    assert.notEqual(await core.waitMs(), Infinity);
  });
});
