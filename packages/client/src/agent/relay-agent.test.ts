import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aborted, type AgentSetup, ASKER, gate, setupAgent, WORKER } from "../../testing/agent-setup.ts";
import type { AgentMessage } from "./agent-message.ts";
import type { AgentTask } from "./agent-task.ts";

describe("an agent's tasks", () => {
  it("are received, reported on and answered in five lines", async () => {
    await using setup = await setupAgent({ displayName: "翻译", skills: [{ id: "translate" }] });
    const { agent, direct } = setup;
    agent.onTask(async (task) => {
      await task.working("reading");
      return `done: ${task.text}`;
    });
    await agent.start();
    const taskId = await setup.ask("知微你好");
    const task = await setup.reaches(taskId, "completed");
    assert.equal((await direct.agent(WORKER)).display_name, "翻译");
    const { message, receipts } = await direct.message(task.message_id);
    assert.deepEqual(
      receipts.map(({ stage }) => stage),
      ["accepted", "leased", "working", "acknowledged", "replied"],
    );
    const answer = (await direct.message(task.result_message_id ?? "")).message;
    assert.equal(answer.body, "done: 知微你好");
    assert.equal(answer.to, ASKER);
    assert.equal(answer.reply_to, message.id);
    assert.deepEqual(setup.errors, []);
  });

  it("may be answered with parts, artifacts and a partial result", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask(async (task) => {
      assert.equal(await task.addArtifact({ artifactId: "draft", parts: [{ text: "1" }] }), "draft");
      await task.addArtifact({ artifactId: "draft", parts: [{ text: "2" }] }, { append: true });
      return { text: "half of it", artifacts: [{ parts: [{ text: "完" }] }], resultStatus: "partial" };
    });
    await setup.agent.start();
    const task = await setup.reaches(await setup.ask("all of it"), "completed");
    assert.equal(task.result_status, "partial");
    assert.deepEqual(
      task.artifacts.map(({ parts }) => parts),
      [[{ text: "1" }, { text: "2" }], [{ text: "完" }]],
    );
  });

  it("fail when the handler throws, and the agent goes on", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask((task) => {
      if (task.text === "bad") throw new Error("no such language: 火星文");
      return "fine";
    });
    await setup.agent.start();
    const failed = await setup.reaches(await setup.ask("bad"), "failed");
    assert.equal(failed.status_text, "no such language: 火星文");
    await setup.reaches(await setup.ask("good"), "completed");
    assert.deepEqual(setup.errors, ["task no such language: 火星文"]);
  });

  it("are rejected, given up or handed on by a word", async () => {
    await using setup = await setupAgent();
    await setup.direct.register({ agent_id: "expert@demo" });
    setup.agent.onTask((task) => {
      if (task.text === "reject") task.reject("not my field");
      if (task.text === "fail") task.fail("tried in vain");
      if (task.text === "hand off") task.handOff("expert@demo", "yours, I think");
      return "not what counts";
    });
    await setup.agent.start();
    const rejected = await setup.reaches(await setup.ask("reject"), "rejected");
    assert.equal(rejected.status_text, "not my field");
    const failed = await setup.reaches(await setup.ask("fail"), "failed");
    assert.equal(failed.status_text, "tried in vain");
    const taskId = await setup.ask("hand off");
    const { messages } = await setup.direct.readMailbox("expert@demo", { wait_ms: 5_000 });
    assert.equal(messages[0]?.message.body, "yours, I think");
    assert.equal(messages[0]?.task_id, taskId);
    assert.equal((await setup.direct.task(taskId)).assignee, "expert@demo");
    assert.deepEqual(setup.errors, []);
  });

  it("are rejected by an agent that has no handler for them", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const task = await setup.reaches(await setup.ask("any agent?"), "rejected");
    assert.equal(task.status_text, "this agent takes no tasks");
  });

  it("fail with the reason when their answer is larger than a message", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask(() => "x".repeat(2_000_000));
    await setup.agent.start();
    const task = await setup.reaches(await setup.ask("much"), "failed");
    assert.match(task.status_text ?? "", /^the answer was refused by the relay: body: at most/);
    assert.deepEqual(setup.errors, ["settle too_large"]);
  });

  it("fail with the reason when they are handed to an unknown agent, or ask nothing", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask((task) => {
      if (task.text === "hand off") task.handOff("ghost@demo", "yours");
      else task.askInput("");
    });
    await setup.agent.start();
    const handedOff = await setup.reaches(await setup.ask("hand off"), "failed");
    assert.match(handedOff.status_text ?? "", /no agent is registered as "ghost@demo"/);
    const asked = await setup.reaches(await setup.ask("ask"), "failed");
    assert.match(asked.status_text ?? "", /a message says something/);
  });

  it("ask their requester, and the answer comes to the same handler", async () => {
    await using setup = await setupAgent();
    const seen: [string, boolean][] = [];
    setup.agent.onTask((task) => {
      seen.push([task.text, task.isFollowUp]);
      if (!task.isFollowUp) task.askInput("into which language?");
      return `into ${task.text}`;
    });
    await setup.agent.start();
    const taskId = await setup.ask("translate this");
    const [question] = (await setup.direct.readMailbox(ASKER, { wait_ms: 5_000 })).messages;
    assert.equal(question?.message.body, "into which language?");
    assert.equal((await setup.direct.task(taskId)).state, "input-required");
    const answer = { from: ASKER, to: WORKER, type: "reply", body: "中文", reply_to: question.id } as const;
    await setup.direct.send(answer);
    const task = await setup.reaches(taskId, "completed");
    assert.equal(task.status_text, "into 中文");
    assert.deepEqual(seen, [
      ["translate this", false],
      ["中文", true],
    ]);
    assert.deepEqual(setup.errors, []);
  });

  it("are handled at most as many at a time as was asked for", async () => {
    await using setup = await setupAgent({ concurrency: 2 });
    let running = 0;
    let most = 0;
    setup.agent.onTask(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
    });
    await setup.direct.register({ agent_id: WORKER });
    const taskIds = await Promise.all(["1", "2", "3", "4", "5", "6"].map((body) => setup.ask(body)));
    await setup.agent.start();
    for (const taskId of taskIds) await setup.reaches(taskId, "completed");
    assert.equal(most, 2);
  });

  it("run one after the other for the same task: a follow-up waits for the running handler", async () => {
    await using setup = await setupAgent();
    const begun = gate();
    const mayAsk = gate();
    const notes = [gate(), gate()];
    let read = 0;
    setup.agent.onMessage(() => notes[read++]?.open());
    const log: string[] = [];
    setup.agent.onTask(async (task) => {
      log.push(`begin ${task.text}`);
      if (task.isFollowUp) return "both";
      begun.open();
      await mayAsk.passed;
      log.push("ask");
      task.askInput("more?");
      return undefined;
    });
    await setup.agent.start();
    const taskId = await setup.ask("first");
    await begun.passed;
    await setup.direct.send({ from: ASKER, to: WORKER, body: "and this", task_id: taskId });
    // A later message that is handled already shows that the follow-up could have been, too.
    for (const noted of notes) {
      await setup.direct.send({ from: ASKER, to: WORKER, body: "by the way" });
      await noted.passed;
    }
    mayAsk.open();
    await setup.reaches(taskId, "completed");
    assert.deepEqual(log, ["begin first", "ask", "begin and this"]);
  });
});

describe("a message that is no task", () => {
  it("goes to onMessage and is acknowledged after it", async () => {
    await using setup = await setupAgent();
    const read = gate<AgentMessage>();
    setup.agent.onMessage((message) => read.open(message));
    await setup.agent.start();
    const acknowledged = setup.relay.wire.next(({ path }) => path.endsWith("/ack"));
    const { receipt } = await setup.direct.send({ from: ASKER, to: WORKER, body: "知微你好", type: "alert" });
    const message = await read.passed;
    assert.equal(message.id, receipt.message_id);
    assert.equal(message.kind, "alert");
    assert.equal(message.from, ASKER);
    assert.equal(message.text, "知微你好");
    await acknowledged;
    await setup.agent.stop();
    assert.equal((await setup.direct.message(receipt.message_id)).delivery?.state, "acknowledged");
  });

  it("may be replied to", async () => {
    await using setup = await setupAgent();
    setup.agent.onMessage(async (message) => {
      await message.reply("yours, too");
    });
    await setup.agent.start();
    const { receipt } = await setup.direct.send({ from: ASKER, to: WORKER, body: "good morning" });
    const [reply] = (await setup.direct.readMailbox(ASKER, { wait_ms: 5_000 })).messages;
    assert.equal(reply?.message.body, "yours, too");
    assert.equal(reply?.message.reply_to, receipt.message_id);
    assert.equal(reply?.message.thread_id, receipt.thread_id);
  });

  it("is dead when its handler throws, and its sender is told", async () => {
    await using setup = await setupAgent();
    setup.agent.onMessage(() => {
      throw new Error("cannot read that");
    });
    await setup.agent.start();
    const { receipt } = await setup.direct.send({ from: ASKER, to: WORKER, body: "?" });
    const [notice] = (await setup.direct.readMailbox(ASKER, { wait_ms: 5_000 })).messages;
    assert.match(notice?.message.body ?? "", /is dead: cannot read that/);
    assert.equal(notice?.message.reply_to, receipt.message_id);
    assert.deepEqual(setup.errors, ["message cannot read that"]);
  });

  it("is acknowledged, with a warning, without a handler", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const { receipt } = await setup.direct.send({ from: ASKER, to: WORKER, body: "hello?" });
    await setup.relay.wire.next(({ path }) => path.endsWith("/ack"));
    await setup.agent.stop();
    assert.equal((await setup.direct.message(receipt.message_id)).delivery?.state, "acknowledged");
    assert.match(setup.errors.join(), /acknowledged unread: this agent has no onMessage handler/);
  });

  it("brings the answer to an own request without a warning, also before the caller asks for its result", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const request = await setup.agent.request({ to: ASKER, body: "请回答" });
    await setup.direct.completeTask(request.taskId, { text: "好" });
    await setup.relay.wire.next(({ path }) => path.endsWith("/ack"));
    assert.equal((await request.result({ timeoutMs: 5_000 })).text, "好");
    assert.deepEqual(setup.errors, []);
  });
});

describe("a task's signal", () => {
  it("is aborted when the task is canceled, and nothing is answered then", async () => {
    await using setup = await setupAgent({ leaseMs: 60_000 });
    const begun = gate<AgentTask>();
    setup.agent.onTask(async (task) => {
      begun.open(task);
      await aborted(task);
      return "too late";
    });
    await setup.agent.start();
    const taskId = await setup.ask("something");
    const task = await begun.passed;
    await setup.direct.cancelTask(taskId, { reason: "changed my mind" });
    // The notice comes as a message, long before the next renewal of a lease of a minute.
    assert.equal(await aborted(task), "task_canceled");
    await setup.agent.stop();
    assert.equal((await setup.direct.task(taskId)).state, "canceled");
    assert.deepEqual(setup.errors, []);
  });

  it("is aborted at the next renewal when another worker has the lease", async () => {
    // With room for one message, this worker does not lease the message again itself.
    await using setup = await setupAgent({ leaseMs: 150, concurrency: 1 });
    const begun = gate<AgentTask>();
    setup.agent.onTask(async (task) => {
      begun.open(task);
      await aborted(task);
      return "the result of a worker that was thought dead";
    });
    await setup.agent.start();
    const taskId = await setup.ask("something");
    const task = await begun.passed;
    await requeue(setup, taskId);
    const { messages } = await setup.direct.lease(WORKER, { worker: "other", wait_ms: 5_000 });
    assert.equal(await aborted(task), "lease_lost");
    await setup.agent.stop();
    await setup.direct.completeTask(taskId, { text: "by the other", lease_id: messages[0]?.lease.id ?? "" });
    assert.equal((await setup.direct.task(taskId)).status_text, "by the other");
    assert.deepEqual(setup.errors, ["settle lease_lost"]);
  });

  it("is aborted by a report that the relay refuses", async () => {
    await using setup = await setupAgent({ leaseMs: 60_000, concurrency: 1 });
    const begun = gate<AgentTask>();
    const mayReport = gate();
    setup.agent.onTask(async (task) => {
      begun.open(task);
      await mayReport.passed;
      await assert.rejects(task.working("still at it"), { code: "task_canceled" });
      task.signal.throwIfAborted();
    });
    await setup.agent.start();
    const taskId = await setup.ask("something");
    const task = await begun.passed;
    await setup.direct.cancelTask(taskId);
    mayReport.open();
    assert.equal(await aborted(task), "task_canceled");
    await setup.agent.stop();
    assert.deepEqual(setup.errors, []);
  });
});

async function requeue({ direct }: AgentSetup, taskId: string): Promise<void> {
  const command = { action: "requeue", duplicate_risk: "operator_accepted" } as const;
  await direct.repair({ task_id: taskId, reason: "seems stuck", command });
}
