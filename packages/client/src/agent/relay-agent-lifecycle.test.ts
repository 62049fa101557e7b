import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aborted, gate, setupAgent, WORKER } from "../../testing/agent-setup.ts";

describe("starting and stopping", () => {
  it("waits for a relay that is away, and says so", async () => {
    await using setup = await setupAgent();
    await setup.relay.wire.close();
    const starting = setup.agent.onTask(() => "done").start();
    while (setup.errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.deepEqual(new Set(setup.errors), new Set(["register unavailable"]));
    await setup.relay.wire.open();
    await starting;
    await setup.reaches(await setup.ask("now"), "completed");
  });

  it("gives up waiting with the caller's signal, or when stopped", async () => {
    await using setup = await setupAgent();
    await setup.relay.wire.close();
    const reason = new Error("enough");
    await assert.rejects(setup.agent.start({ signal: AbortSignal.abort(reason) }), reason);
    const starting = setup.agent.start();
    const stopping = setup.agent.stop();
    await assert.rejects(starting, { code: "unavailable", message: "this agent is stopping" });
    await stopping;
    await assert.rejects(setup.agent.start(), { code: "wrong_state" });
  });

  it("rejects when the relay refuses the registration, and may be tried again", async () => {
    await using setup = await setupAgent({ aliases: ["the asker"] });
    await assert.rejects(setup.agent.start(), { code: "invalid_argument" });
    await assert.rejects(setup.agent.start(), { code: "invalid_argument" });
  });

  it("begins once, however often it is told to", async () => {
    await using setup = await setupAgent();
    await Promise.all([setup.agent.start(), setup.agent.start()]);
    const registrations = setup.relay.wire.requests.filter(({ path }) => path === "/agents/register");
    assert.equal(registrations.length, 1);
  });

  it("stops after the handlers at work, and takes nothing new meanwhile", async () => {
    await using setup = await setupAgent();
    const begun = gate();
    const mayEnd = gate();
    setup.agent.onTask(async () => {
      begun.open();
      await mayEnd.passed;
      return "in time";
    });
    await setup.agent.start();
    const first = await setup.ask("first");
    await begun.passed;
    const stopping = setup.agent.stop();
    const second = await setup.ask("second");
    mayEnd.open();
    await stopping;
    assert.equal((await setup.direct.task(first)).status_text, "in time");
    assert.equal((await setup.direct.task(second)).state, "submitted");
    const count = setup.relay.wire.requests.length;
    await setup.agent.stop();
    assert.equal(setup.relay.wire.requests.length, count);
    assert.deepEqual(setup.errors, []);
  });

  it("fails work that cannot end in time, and gives back what may be done twice", async () => {
    await using setup = await setupAgent({ drainMs: 0 });
    const begun = gate();
    let waiting = 2;
    setup.agent.onTask(async (task) => {
      waiting -= 1;
      if (waiting === 0) begun.open();
      assert.equal(await aborted(task), "unavailable");
      task.signal.throwIfAborted();
    });
    await setup.agent.start();
    const once = await setup.ask("once only");
    const idempotency = { duplicate_safety: "idempotent", key: "k1" };
    const again = await setup.ask("as often as you like", { idempotency });
    await begun.passed;
    await setup.agent.stop();
    assert.equal(
      (await setup.direct.task(once)).status_text,
      "the agent was stopped in the middle of this work",
    );
    assert.equal((await setup.direct.task(again)).state, "submitted");
    const { entries } = await setup.direct.queue({ agent: WORKER });
    assert.deepEqual(
      entries.map(({ task_id, state }) => [task_id, state]),
      [[again, "available"]],
    );
  });

  it("does not wait for ever for a handler that ignores its signal", async () => {
    await using setup = await setupAgent({ drainMs: 10 });
    const begun = gate();
    setup.agent.onTask(() => {
      begun.open();
      return new Promise(() => {});
    });
    await setup.agent.start();
    await setup.ask("for ever");
    await begun.passed;
    await setup.agent.stop();
  });

  it("has many handlers at work without a warning of a leak", async () => {
    await using setup = await setupAgent({ concurrency: 30 });
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    const all = gate();
    let running = 0;
    setup.agent.onTask(async (task) => {
      running += 1;
      if (running === 30) all.open();
      await all.passed;
      await task.working();
    });
    await setup.agent.start();
    const taskIds = await Promise.all(Array.from({ length: 30 }, (_, index) => setup.ask(`task ${index}`)));
    for (const taskId of taskIds) await setup.reaches(taskId, "completed");
    process.off("warning", warn);
    assert.deepEqual(warnings, []);
  });

  it("shows presence for as long as the agent runs", async () => {
    await using setup = await setupAgent({ ttlMs: 1_000 });
    const beat = setup.relay.wire.next(({ path }) => path.endsWith("/heartbeat"));
    await setup.agent.start();
    await beat;
    assert.equal((await setup.direct.agent(WORKER)).presence, "online");
  });
});
