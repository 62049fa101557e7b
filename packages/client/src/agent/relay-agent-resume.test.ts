import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { gate, setupAgent, WORKER } from "../../testing/agent-setup.ts";
import type { AgentTask } from "./agent-task.ts";
import { RelayAgent } from "./relay-agent.ts";
import type { RelayAgentOptions } from "./relay-agent-options.ts";

/** As short as it may be: so long a killed process counts as alive. */
const LEASE_MS = 100;
const CHECKS_MS_MAX = 20_000;

/** What a killed process leaves behind: a message under its lease, which no process holds. */
async function killedAt(setup: Awaited<ReturnType<typeof setupAgent>>, worker: string): Promise<string> {
  await setup.direct.register({ agent_id: WORKER });
  const taskId = await setup.ask("半途");
  const { messages } = await setup.direct.lease(WORKER, { lease_ms: LEASE_MS, worker });
  assert.equal(messages.length, 1);
  return taskId;
}

describe("an agent with a worker name", () => {
  it("resumes what it had begun when it was killed, also work that may not be done twice", async () => {
    await using setup = await setupAgent({ worker: "甲" });
    const taskId = await killedAt(setup, "甲");
    const attempts: number[] = [];
    setup.agent.onTask((task) => {
      attempts.push(task.attempt);
      return "whole";
    });
    await setup.agent.start();
    await setup.reaches(taskId, "completed");
    assert.deepEqual(attempts, [2]);
    assert.deepEqual(setup.errors, []);
  });

  it("resumes at once what was leased to it without its knowledge, before the lease expires", async () => {
    await using setup = await setupAgent({ worker: "甲", leaseMs: 600_000 });
    setup.agent.onTask((task) => `attempt ${task.attempt}`);
    setup.relay.once(({ path }) => path.endsWith("/lease"), "lose_reply");
    await setup.direct.register({ agent_id: WORKER });
    const taskId = await setup.ask("没听见");
    await setup.agent.start();
    assert.equal((await setup.reaches(taskId, "completed")).status_text, "attempt 2");
  });

  it("leaves alone what a process of the same name works on, however often it checks", async () => {
    await using setup = await setupAgent({ worker: "甲", leaseMs: 1_500 });
    const [begun, enough, checked] = [gate(), gate(), gate()];
    const attempts: number[] = [];
    const handler = async (task: AgentTask): Promise<string> => {
      attempts.push(task.attempt);
      begun.open();
      await enough.passed;
      return "whole";
    };
    await setup.agent.onTask(handler).start();
    const taskId = await setup.ask("滚动重启");
    await begun.passed;
    let checks = 0;
    setup.relay.fault = ({ path }) => {
      checks += Number(path.startsWith("/queue"));
      if (checks === 3) checked.open();
      return undefined;
    };
    const { url } = setup.relay.wire;
    const twin = new RelayAgent({ url, id: WORKER, worker: "甲", leaseMs: 1_500, transport: "poll" });
    await twin.onTask(handler).start();
    await Promise.race([checked.passed, pause(CHECKS_MS_MAX, undefined, { ref: false })]);
    enough.open();
    await setup.reaches(taskId, "completed");
    await twin.stop({ timeoutMs: 0 });
    assert.ok(checks >= 3, `it checked ${checks} times`);
    assert.deepEqual(attempts, [1]);
    assert.deepEqual(setup.errors, []);
  });

  it("leaves alone what another process of the same agent works on", async () => {
    await using setup = await setupAgent({ worker: "甲" });
    const taskId = await killedAt(setup, "乙");
    setup.agent.onTask((task) => task.text);
    await setup.agent.start();
    await setup.reaches(await setup.ask("后来的"), "completed");
    assert.equal((await setup.direct.task(taskId)).state, "submitted");
  });

  it("gives back what it could not finish before it was stopped, and does it after the next start", async () => {
    await using setup = await setupAgent({ worker: "甲", drainMs: 0 });
    const begun = gate();
    setup.agent.onTask(async ({ signal }) => {
      begun.open();
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error)),
      );
    });
    await setup.agent.start();
    const taskId = await setup.ask("长的");
    await begun.passed;
    await setup.agent.stop();
    const options: RelayAgentOptions = {
      url: setup.relay.wire.url,
      id: WORKER,
      worker: "甲",
      transport: "poll",
    };
    const again = new RelayAgent(options).onTask((task) => `attempt ${task.attempt}`);
    await again.start();
    const task = await setup.reaches(taskId, "completed");
    await again.stop({ timeoutMs: 0 });
    assert.equal(task.status_text, "attempt 2");
  });

  it("gives up on work at which it was killed again and again", async () => {
    await using setup = await setupAgent({ worker: "甲" });
    const taskId = await killedAt(setup, "甲");
    for (let attempt = 2; attempt <= 10; attempt += 1) {
      const { entries } = await setup.direct.queue({ agent: WORKER, state: "leased" });
      const leases = entries.map(({ message_id, lease }) => ({ message_id, lease_id: lease?.id ?? "" }));
      await setup.direct.release(WORKER, { leases });
      await setup.direct.lease(WORKER, { lease_ms: LEASE_MS, worker: "甲" });
    }
    let runs = 0;
    setup.agent.onTask(() => {
      runs += 1;
    });
    await setup.agent.start();
    const task = await setup.reaches(taskId, "failed");
    assert.equal(task.status_text, "the agent was ended in the middle of this work 10 times");
    assert.equal(runs, 0);
  });

  it("is refused without a usable name", () => {
    const make = () => new RelayAgent({ url: "http://127.0.0.1:1", id: WORKER, worker: "" });
    assert.throws(make, { code: "invalid_argument", message: /^worker: expected a name/ });
  });
});
