import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { ASKER, gate, setupAgent, WORKER } from "../../testing/agent-setup.ts";
import { to } from "../../testing/faulty-relay.ts";
import { RelayAgent } from "./relay-agent.ts";

describe("an agent on a bad wire", () => {
  it("goes on after the relay was away", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask(({ text }) => text);
    await setup.agent.start();
    await setup.reaches(await setup.ask("before"), "completed");
    await setup.relay.wire.close();
    const taskId = await setup.ask("meanwhile");
    while (!setup.errors.includes("lease unavailable"))
      await new Promise((resolve) => setTimeout(resolve, 1));
    await setup.relay.wire.open();
    await setup.reaches(taskId, "completed");
  });

  it("registers again with a relay that lost its data", async () => {
    await using setup = await setupAgent({ displayName: "翻译" });
    setup.agent.onTask(({ text }) => text);
    await setup.agent.start();
    const registered = setup.relay.wire.next(to("/agents/register"));
    await setup.relay.loseAllData();
    await registered;
    await setup.relay.direct.register({ agent_id: ASKER });
    await setup.relay.wire.next(to("/lease"));
    await setup.reaches(await setup.ask("again"), "completed");
    assert.equal((await setup.relay.direct.agent(WORKER)).display_name, "翻译");
  });

  for (const fault of ["reset", "lose_reply", "reset_midway"] as const) {
    it(`completes a task once when the completion meets ${fault}`, async () => {
      await using setup = await setupAgent({ retries: 0 });
      let runs = 0;
      setup.agent.onTask(() => {
        runs += 1;
        return { text: "once", artifacts: [{ parts: [{ text: "x" }] }] };
      });
      await setup.agent.start();
      setup.relay.once(to("/complete"), fault);
      setup.relay.once(to("/complete"), fault);
      const task = await setup.reaches(await setup.ask("please"), "completed");
      await setup.agent.stop();
      assert.equal(runs, 1);
      assert.equal(task.artifacts.length, 1);
      assert.deepEqual(setup.errors, ["settle unavailable", "settle unavailable"]);
    });
  }

  it("tells the outcome again, and does not work again, when an acknowledgement got lost", async () => {
    await using setup = await setupAgent({ retries: 0, leaseMs: 100, retryDelayMs: 20, retryDelayMsMax: 20 });
    let runs = 0;
    const done = gate();
    setup.agent.onTask(() => {
      runs += 1;
      done.open();
      return "only once";
    });
    await setup.agent.start();
    // Nothing about this work reaches the relay, so after the lease's time it thinks the worker is dead.
    setup.relay.fault = ({ path }) => (/\/(complete|renew)$/.test(path) ? "reset" : undefined);
    const idempotency = { duplicate_safety: "idempotent", key: "k1" };
    const taskId = await setup.ask("please", { idempotency });
    await done.passed;
    while ((await attempts(setup.direct, taskId)) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    setup.relay.fault = () => undefined;
    const task = await setup.reaches(taskId, "completed");
    assert.equal(task.status_text, "only once");
    await setup.agent.stop();
    assert.equal(runs, 1);
  });

  it("does not handle a message again that comes back while its handler still runs", async () => {
    await using setup = await setupAgent({ leaseMs: 100, retries: 0 });
    let runs = 0;
    const mayEnd = gate();
    setup.agent.onTask(async () => {
      runs += 1;
      await mayEnd.passed;
      return "only once";
    });
    await setup.agent.start();
    setup.relay.fault = ({ path }) => (path.endsWith("/renew") ? "reset" : undefined);
    const idempotency = { duplicate_safety: "idempotent", key: "k1" };
    const taskId = await setup.ask("please", { idempotency });
    while ((await attempts(setup.direct, taskId)) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    setup.relay.fault = () => undefined;
    mayEnd.open();
    const task = await setup.reaches(taskId, "completed");
    assert.equal(task.status_text, "only once");
    assert.equal(runs, 1);
  });

  it("leaves lost leases to an operator where it may not read the queue", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask(() => "handled");
    setup.relay.fault = ({ path }) => (path === "/queue" ? { status: 404, text: "<html>No" } : undefined);
    setup.relay.once(to("/lease"), "lose_reply");
    await setup.agent.start();
    await setup.ask("this one is hidden");
    await setup.relay.wire.next(to("/queue"));
    await setup.reaches(await setup.ask("this one is not"), "completed");
    const reads = setup.relay.wire.requests.filter(({ path }) => path === "/queue");
    assert.ok(reads.length <= 6, `read ${reads.length} times`);
  });

  it("keeps a lease for as long as the handler needs, through lost renewals", async () => {
    await using setup = await setupAgent({ leaseMs: 300, retries: 0 });
    const renewed = gate();
    let renewals = 0;
    setup.agent.onTask(async () => {
      await renewed.passed;
      return "after several lease times";
    });
    await setup.agent.start();
    setup.relay.fault = ({ path }) => {
      if (!path.endsWith("/renew")) return undefined;
      renewals += 1;
      if (renewals === 8) renewed.open();
      return renewals % 3 === 0 ? "reset" : undefined;
    };
    const idempotency = { duplicate_safety: "idempotent", key: "k1" };
    const taskId = await setup.ask("take your time", { idempotency });
    await setup.reaches(taskId, "completed");
    assert.equal(await attempts(setup.direct, taskId), 1);
  });

  it("gives back messages whose lease it never heard of, and then handles them", async () => {
    await using setup = await setupAgent({ waitMs: 5_000 });
    const runs: number[] = [];
    setup.agent.onTask((task) => {
      runs.push(task.attempt);
      return "handled";
    });
    // The relay leases the message, and the answer gets lost. Its sender did not declare it safe to repeat.
    setup.relay.once(to("/lease"), "lose_reply");
    await setup.agent.start();
    const taskId = await setup.ask("please");
    await setup.reaches(taskId, "completed");
    assert.deepEqual(runs, [2]);
    assert.deepEqual(setup.errors, ["lease unavailable"]);
  });

  it("gives back what arrives while it stops", async () => {
    await using setup = await setupAgent({ waitMs: 5_000 });
    let runs = 0;
    setup.agent.onTask(() => {
      runs += 1;
    });
    const answered = gate();
    setup.relay.fault = async (request) => {
      if (!request.path.endsWith("/lease")) return undefined;
      // Held back until the agent has hung up: the relay has leased, and no worker knows.
      await setup.relay.direct.lease(WORKER, request.body).then(() => answered.open());
      return "silence";
    };
    await setup.agent.start();
    const taskId = await setup.ask("too late");
    await answered.passed;
    await setup.agent.stop();
    const { entries } = await setup.direct.queue({ agent: WORKER });
    assert.deepEqual(
      entries.map(({ task_id, state }) => [task_id, state]),
      [[taskId, "available"]],
    );
    assert.equal(runs, 0);
  });

  it("does not let a progress report that got lost stop the work", async () => {
    await using setup = await setupAgent({ retries: 0 });
    setup.agent.onTask(async (task) => {
      await task.working("half");
      return "whole";
    });
    await setup.agent.start();
    setup.relay.once(to("/status"), "reset");
    const task = await setup.reaches(await setup.ask("please"), "completed");
    assert.equal(task.status_text, "whole");
    assert.deepEqual(setup.errors, ["report unavailable"]);
  });

  it("asks a question once, whatever happens to the message and the acknowledgement", async () => {
    await using setup = await setupAgent({ retries: 0 });
    setup.agent.onTask((task) => task.askInput("which one?"));
    await setup.agent.start();
    setup.relay.once(to("/messages"), "lose_reply");
    setup.relay.once(to("/ack"), "lose_reply");
    const taskId = await setup.ask("please");
    await setup.reaches(taskId, "input-required");
    await setup.agent.stop();
    const { messages } = await setup.direct.readMailbox(ASKER);
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["which one?"],
    );
    assert.equal((await setup.direct.queue({ agent: WORKER })).entries.length, 0);
  });
});

describe("errors in the background", () => {
  it("are warned of once for each kind, until it works again", async () => {
    await using setup = await setupAgent();
    const warn = mock.method(console, "warn", () => {});
    const agent = new RelayAgent({
      url: setup.relay.wire.url,
      id: "quiet@demo",
      retries: 0,
      retryDelayMs: 1,
      retryDelayMsMax: 1,
    });
    await agent.start();
    for (const round of [1, 2]) {
      let refused = 0;
      const enough = gate();
      setup.relay.fault = ({ path }) => {
        if (!path.endsWith("/lease")) return undefined;
        refused += 1;
        if (refused === 5) enough.open();
        return "reset";
      };
      await setup.relay.wire.close();
      await setup.relay.wire.open();
      await enough.passed;
      setup.relay.fault = () => undefined;
      const { receipt } = await setup.direct.send({ from: ASKER, to: "quiet@demo", body: `round ${round}` });
      await setup.relay.wire.next(to("/ack"));
      assert.ok(receipt);
    }
    await agent.stop();
    const lease = warn.mock.calls.filter(({ arguments: [text] }) => /, lease: /.test(String(text)));
    assert.equal(lease.length, 2);
    assert.match(
      String(lease[0]?.arguments[0]),
      /^a2a-relay agent quiet@demo, lease: cannot reach the relay at/,
    );
    warn.mock.restore();
  });

  it("cannot be made worse by the callback", async () => {
    const warn = mock.method(console, "warn", () => {});
    await using setup = await setupAgent({
      onError: async ({ message }) => {
        throw new Error(`the callback failed over ${message}`);
      },
    });
    setup.agent.onTask(({ text }) => {
      throw new Error(text);
    });
    await setup.agent.start();
    await setup.reaches(await setup.ask("知微"), "failed");
    await setup.agent.stop();
    const texts = warn.mock.calls.map(({ arguments: [text] }) => String(text));
    assert.deepEqual(texts, [`a2a-relay agent ${WORKER}, report: the callback failed over 知微`]);
    warn.mock.restore();
  });
});

async function attempts(
  direct: Awaited<ReturnType<typeof setupAgent>>["direct"],
  taskId: string,
): Promise<number> {
  const { message_id: messageId } = await direct.task(taskId);
  return (await direct.message(messageId)).delivery?.attempt ?? 0;
}
