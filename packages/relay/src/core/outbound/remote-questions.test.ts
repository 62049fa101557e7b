import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU } from "../../../testing/core-on-memory.ts";
import {
  AGENT_URL,
  aRemoteTask,
  type RemoteCore,
  remoteCore,
  RpcError,
  saying,
} from "../../../testing/fake-agent.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";

describe("a question of an agent elsewhere", () => {
  async function asked(core: RemoteCore): Promise<{ taskId: string; questionId: string }> {
    const { taskId } = await core.taken();
    core.agent.get = () => saying("INPUT_REQUIRED", "哪一个？");
    await core.lookNext();
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
    await core.lookNext();
    assert.equal((await core.inboxOf(LULU)).length, 1);
    await reply(core, questionId);
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.deepEqual(await core.push(), ["delivered"]);
    const message = core.agent.calledFor("SendMessage").at(-1)?.["message"] as Record<string, unknown>;
    assert.deepEqual([message["taskId"], message["contextId"]], ["他们的任务", "他们的话题"]);
    core.agent.get = () => saying("COMPLETED", "好的，第二个");
    await core.look();
    await core.lookNext();
    assert.equal((await core.task(taskId)).state, "completed");
  });

  it("is not asked again because the agent has not read the answer yet", async () => {
    await using core = await remoteCore();
    const { taskId, questionId } = await asked(core);
    await reply(core, questionId);
    await core.lookNext();
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
    await core.look();
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
    await core.look();
    const { state, status_text: text } = await core.task(taskId);
    assert.deepEqual([state, text], ["working", "明白"]);
    assert.notEqual(await core.waitMs(), Infinity);
  });
});

describe("what is added to a task", () => {
  it("waits for the message that asks for the task", async () => {
    await using core = await remoteCore();
    core.agent.outside.receiver = () => anAnswer(503);
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["failed"]);
    await core.send({ to: AGENT_URL, type: "note", task_id: taskId, body: "还有" });
    assert.deepEqual(await core.push(), ["refused"]);
    assert.deepEqual(core.agent.calls, []);
  });
});
