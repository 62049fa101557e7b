import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ASKER, setupAgent, WORKER } from "../../testing/agent-setup.ts";
import { AwaitedResults } from "./task-request.ts";

describe("AwaitedResults", () => {
  const item = (message: object) => ({ task_id: "t1", message: { type: "status", ...message } }) as never;

  it("wakes who waits for the task when there is news of it", () => {
    const awaited = new AwaitedResults();
    let woken = 0;
    const unwatch = awaited.watch("t1", () => {
      woken += 1;
    });
    assert.equal(awaited.accept(item({ type: "reply" })), true);
    assert.equal(awaited.accept(item({ task_state: "failed" })), true);
    assert.equal(awaited.accept(item({ task_state: "input-required" })), true);
    assert.equal(woken, 3);
    assert.equal(awaited.accept(item({ task_state: "working" })), false);
    assert.equal(awaited.accept(item({})), false);
    unwatch();
    assert.equal(awaited.accept(item({ type: "reply" })), false);
    assert.equal(woken, 3);
  });
});

describe("an agent's own requests", () => {
  it("bring the result, as a message while the agent runs, and not to onMessage", async () => {
    await using setup = await setupAgent();
    const strays: string[] = [];
    setup.agent.onMessage((message) => strays.push(message.text));
    await setup.agent.start();
    const request = await setup.agent.request({ to: ASKER, body: "知微你好" });
    assert.equal(request.receipt.stage, "accepted");
    const acknowledged = setup.relay.wire.next(({ path }) => path.endsWith("/ack"));
    const waiting = request.result();
    await setup.direct.completeTask(request.taskId, { text: "你好" });
    const { ok, state, text, message } = await waiting;
    assert.deepEqual(
      { ok, state, text, from: message?.from },
      { ok: true, state: "completed", text: "你好", from: ASKER },
    );
    await acknowledged;
    assert.deepEqual(strays, []);
  });

  it("bring the result to an agent that was not started, too", async () => {
    await using setup = await setupAgent();
    await setup.direct.register({ agent_id: WORKER });
    const request = await setup.agent.request({ to: ASKER, body: "please" });
    const waiting = request.result();
    await setup.direct.rejectTask(request.taskId, { reason: "no time" });
    const { ok, state, text } = await waiting;
    assert.deepEqual({ ok, state, text }, { ok: false, state: "rejected", text: "no time" });
  });

  it("end with a question when there is one, and go on after its answer", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const request = await setup.agent.request({ to: ASKER, body: "book it" });
    await setup.direct.reportStatus(request.taskId, { state: "input-required", text: "which day?" });
    const question = await request.result();
    assert.deepEqual([question.state, question.text], ["input-required", "which day?"]);
    await setup.agent.send({ to: ASKER, body: "Monday", task_id: request.taskId });
    await setup.direct.completeTask(request.taskId, { text: "booked" });
    assert.equal((await request.result()).text, "booked");
  });

  it("end when their time is over, while the task goes on", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const request = await setup.agent.request({ to: ASKER, body: "slow" });
    await assert.rejects(request.result({ timeoutMs: 20 }), {
      code: "unavailable",
      message: /had no result within 20 ms; it goes on/,
    });
    const reason = new Error("never mind");
    const controller = new AbortController();
    const waiting = request.result(controller);
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    assert.equal((await setup.direct.task(request.taskId)).state, "submitted");
  });

  it("go through the absence of the relay", async () => {
    await using setup = await setupAgent();
    await setup.agent.start();
    const request = await setup.agent.request({ to: ASKER, body: "patience" });
    await setup.relay.wire.close();
    const waiting = request.result();
    await setup.direct.completeTask(request.taskId, { text: "rewarded" });
    await setup.relay.wire.open();
    assert.equal((await waiting).text, "rewarded");
  });
});
