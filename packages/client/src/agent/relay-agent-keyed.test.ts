import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ASKER, WORKER } from "../../testing/agent-setup.ts";
import { ProxiedRelay } from "../../testing/proxied-relay.ts";
import { RelayAgent } from "./relay-agent.ts";
import type { InboxTransportChoice, RelayAgentOptions } from "./relay-agent-options.ts";

const MESSAGES = 12;

interface Setup extends AsyncDisposable {
  readonly relay: ProxiedRelay;
  readonly agent: RelayAgent;
  /** How often each message was leased, in the order in which they were handled. */
  readonly attempts: number[];
  /** Asks the agent for something; resolves with the id of the task. */
  ask(body: string): Promise<string>;
  /** Resolves once the agent has answered. */
  done(taskId: string): Promise<void>;
}

/** An agent with its own key, behind a proxy, and a relay that requires a key. */
async function setup(
  transport: InboxTransportChoice,
  options: Partial<RelayAgentOptions> = {},
): Promise<Setup> {
  const relay = await ProxiedRelay.start({ A2A_RELAY_API_KEY: "operator-key-of-this-test" });
  const { direct } = relay;
  for (const agent_id of [ASKER, WORKER]) await direct.register({ agent_id });
  const { key: apiKey } = await direct.createKey({ agent_id: WORKER });
  const delays = { retryDelayMs: 5, retryDelayMsMax: 40 };
  const onError = (): void => {};
  const agent = new RelayAgent({
    url: relay.url,
    apiKey,
    id: WORKER,
    transport,
    ...delays,
    onError,
    ...options,
  });
  const attempts: number[] = [];
  agent.onTask((task) => {
    attempts.push(task.attempt);
    return `done: ${task.text}`;
  });
  return {
    relay,
    agent,
    attempts,
    async ask(body) {
      return (await direct.send({ from: ASKER, to: WORKER, type: "request", body })).receipt.task_id ?? "";
    },
    async done(taskId) {
      for (let since: string | undefined; (await direct.task(taskId)).state !== "completed";) {
        since = (await direct.events({ wait_ms: 1_000, ...(since === undefined ? {} : { since }) })).cursor;
      }
    },
    async [Symbol.asyncDispose]() {
      await agent.stop({ timeoutMs: 0 });
      await relay[Symbol.asyncDispose]();
    },
  };
}

for (const transport of ["websocket", "sse", "poll"] as const) {
  describe(`an agent with its own key, by ${transport}`, () => {
    it("handles every message although each answer to a lease gets lost the first time", async () => {
      await using all = await setup(transport);
      await all.agent.start();
      for (let index = 0; index < MESSAGES; index += 1) {
        all.relay.losesLease = true;
        await all.done(await all.ask(`第${index}封`));
        assert.equal(all.relay.losesLease, false);
      }
      assert.deepEqual(
        all.attempts,
        Array.from({ length: MESSAGES }, () => 2),
      );
      await all.agent.stop();
      assert.deepEqual((await all.relay.direct.queue({ agent: WORKER })).entries, []);
    });

    it("handles every message although connections are cut again and again", async () => {
      await using all = await setup(transport, { concurrency: 3, waitMs: 500 });
      await all.agent.start();
      const tasks: string[] = [];
      for (let index = 0; index < MESSAGES; index += 1) {
        tasks.push(await all.ask(`第${index}封`));
        // Somewhere in the middle of what that set off.
        if (index % 2 === 0) await all.relay.came(() => true, all.relay.seen.length + 1);
        all.relay.cut();
      }
      for (const task of tasks) await all.done(task);
      assert.equal(all.attempts.length, MESSAGES);
    });
  });
}

for (const transport of ["websocket", "poll"] as const) {
  it(`by ${transport}, an agent checks again for leases that the relay granted late`, async () => {
    let checks = 0;
    const options: Partial<RelayAgentOptions> = {
      waitMs: 300,
      // The first check finds nothing, as if the relay leased only afterwards.
      fetch: (url, init) => {
        const isFirst = new URL(url).pathname === "/queue" && (checks += 1) === 1;
        return isFirst ? Promise.resolve(Response.json({ entries: [], totals: {} })) : fetch(url, init);
      },
    };
    await using all = await setup(transport, options);
    all.relay.losesLease = true;
    await all.agent.start();
    await all.done(await all.ask("迟到的租约"));
    assert.deepEqual(all.attempts, [2]);
    assert.equal(checks, 2);
  });
}
