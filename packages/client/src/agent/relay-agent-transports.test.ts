import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ASKER, WORKER } from "../../testing/agent-setup.ts";
import { ProxiedRelay } from "../../testing/proxied-relay.ts";
import { RelayAgent } from "./relay-agent.ts";
import type { InboxTransportChoice, RelayAgentOptions } from "./relay-agent-options.ts";

interface Setup extends AsyncDisposable {
  readonly relay: ProxiedRelay;
  readonly agent: RelayAgent;
  /** The bodies of what was handled, in order, each as often as a handler ran for it. */
  readonly handled: string[];
  readonly errors: string[];
  /** Asks the agent for something; resolves with the id of the task. */
  ask(body: string): Promise<string>;
  /** Resolves once the relay knows the agent. */
  registered(): Promise<void>;
  /** Resolves once the agent has answered all of these. */
  done(taskIds: readonly string[]): Promise<void>;
}

async function setup(
  transport: InboxTransportChoice,
  options: Partial<RelayAgentOptions> = {},
): Promise<Setup> {
  const relay = await ProxiedRelay.start();
  await relay.direct.register({ agent_id: ASKER });
  const handled: string[] = [];
  const errors: string[] = [];
  const agent = new RelayAgent({
    url: relay.url,
    id: WORKER,
    transport,
    retryDelayMs: 5,
    retryDelayMsMax: 40,
    onError: (error, activity) => {
      errors.push(`${activity} ${"code" in error ? String(error.code) : error.message}`);
    },
    ...options,
  });
  agent.onTask(({ text }) => {
    handled.push(text);
    return `done: ${text}`;
  });
  return {
    relay,
    agent,
    handled,
    errors,
    async ask(body) {
      const { receipt } = await relay.direct.send({ from: ASKER, to: WORKER, type: "request", body });
      return receipt.task_id ?? "";
    },
    registered: () =>
      until(relay, async () =>
        (await relay.direct.agents()).agents.some(({ agent_id }) => agent_id === WORKER),
      ),
    async done(taskIds) {
      for (const taskId of taskIds) {
        await until(relay, async () => (await relay.direct.task(taskId)).state === "completed");
      }
    },
    async [Symbol.asyncDispose]() {
      await agent.stop({ timeoutMs: 0 });
      await relay[Symbol.asyncDispose]();
    },
  };
}

/** Checks again after each event of the journal. */
async function until({ direct }: ProxiedRelay, isSo: () => Promise<boolean>): Promise<void> {
  for (let since: string | undefined; !(await isSo());) {
    since = (await direct.events({ wait_ms: 1_000, ...(since === undefined ? {} : { since }) })).cursor;
  }
}

const LEASE = `POST /mailbox/${encodeURIComponent(WORKER)}/lease`;
const STREAM = `GET /mailbox/${encodeURIComponent(WORKER)}/stream`;
const SOCKET = `upgrade /mailbox/${encodeURIComponent(WORKER)}/ws`;

/** Which transports were used. */
function ways({ relay }: Setup): readonly string[] {
  return [SOCKET, STREAM, LEASE].filter((way) => relay.seen.includes(way));
}

describe("an agent gets its messages", () => {
  const cases: readonly [InboxTransportChoice, readonly string[]][] = [
    ["auto", [SOCKET]],
    ["websocket", [SOCKET]],
    ["sse", [STREAM, LEASE]],
    ["poll", [LEASE]],
  ];
  for (const [transport, expected] of cases) {
    it(`by ${transport}, what waited and what comes, once each`, async () => {
      await using all = await setup(transport);
      await all.relay.direct.register({ agent_id: WORKER });
      const before = await all.ask("之前");
      await all.agent.start();
      await all.done([before]);
      const after = await Promise.all(["一", "二", "三"].map((body) => all.ask(body)));
      await all.done(after);
      assert.deepEqual(all.handled.toSorted(), ["一", "三", "二", "之前"].toSorted());
      assert.deepEqual(ways(all), expected);
      assert.deepEqual(all.errors, []);
    });
  }

  it("by server-sent events where no socket can be opened", async () => {
    await using all = await setup("auto");
    all.relay.sockets = "refuse";
    await all.agent.start();
    await all.done([await all.ask("over the stream")]);
    assert.deepEqual(ways(all), [SOCKET, STREAM, LEASE]);
    assert.deepEqual(all.errors, []);
  });

  it("by long polls where streams do not come through either", async () => {
    await using all = await setup("auto", { waitMs: 5_000 });
    all.relay.sockets = "refuse";
    all.relay.streams = "refuse";
    await all.agent.start();
    await all.done([await all.ask("over long polls"), await all.ask("again")]);
    assert.deepEqual(ways(all), [SOCKET, STREAM, LEASE]);
    assert.equal(all.relay.seen.filter((line) => line === STREAM).length, 1);
    assert.deepEqual(all.errors, []);
  });

  it("without a socket of the runtime's own, through the fetch it was given", async () => {
    const { WebSocket } = globalThis;
    // As in Node 20.
    Reflect.deleteProperty(globalThis, "WebSocket");
    try {
      const fetched: string[] = [];
      await using all = await setup("auto", {
        fetch: (url, init) => {
          fetched.push(new URL(url).pathname);
          return fetch(url, init);
        },
      });
      await all.agent.start();
      await all.done([await all.ask("no socket")]);
      assert.deepEqual(ways(all), [STREAM, LEASE]);
      assert.ok(fetched.some((path) => path.endsWith("/stream")));
    } finally {
      globalThis.WebSocket = WebSocket;
    }
  });
});

for (const transport of ["websocket", "sse", "poll", "auto"] as const) {
  const isSocket = transport === "websocket" || transport === "auto";

  describe(`an agent by ${transport}, when things break`, () => {
    it("goes on after the relay was restarted, and nothing is handled twice or lost", async () => {
      await using all = await setup(transport);
      await all.agent.start();
      const tasks = [await all.ask("before")];
      await all.done(tasks);
      for (const run of ["second", "third"]) {
        await all.relay.stopRelay();
        await all.relay.startRelay();
        tasks.push(await all.ask(`${run}, at once`));
        await all.done(tasks);
        tasks.push(await all.ask(`${run}, later`));
        await all.done(tasks);
      }
      assert.deepEqual(all.handled, [
        "before",
        "second, at once",
        "second, later",
        "third, at once",
        "third, later",
      ]);
    });

    it("goes on after the connection was cut, again and again, and nothing is handled twice or lost", async () => {
      await using all = await setup(transport, { concurrency: 3 });
      await all.agent.start();
      const tasks: string[] = [];
      for (let index = 0; index < 20; index += 1) {
        tasks.push(await all.ask(String(index)));
        // Somewhere in the middle of what that set off.
        if (index % 2 === 0) await all.relay.came(() => true, all.relay.seen.length + 1);
        all.relay.cut();
      }
      await all.done(tasks);
      assert.deepEqual(
        all.handled.toSorted((a, b) => Number(a) - Number(b)),
        tasks.map((_, index) => String(index)),
      );
      await all.agent.stop();
      assert.deepEqual((await all.relay.direct.queue({ agent: WORKER })).entries, []);
    });

    it("gives back messages whose lease it never heard of, and then handles them", async () => {
      await using all = await setup(transport);
      const attempts: number[] = [];
      all.agent.onTask((task) => {
        attempts.push(task.attempt);
        return "handled";
      });
      all.relay.losesLease = true;
      await all.agent.start();
      await all.done([await all.ask("its lease gets lost")]);
      assert.equal(all.relay.losesLease, false);
      assert.deepEqual(attempts, [2]);
      assert.deepEqual(all.errors, ["lease unavailable"]);
    });

    it("registers again with a relay that does not know it any more", async () => {
      await using all = await setup(transport);
      await all.agent.start();
      await all.done([await all.ask("known")]);
      await all.relay.direct.deregister(WORKER);
      all.relay.cut();
      await all.registered();
      await all.done([await all.ask("known again")]);
      assert.deepEqual(all.handled, ["known", "known again"]);
    });

    it("stops while it waits, and leaves nothing behind that is leased", async () => {
      await using all = await setup(transport);
      await all.agent.start();
      await all.done([await all.ask("one")]);
      const stopped = all.agent.stop();
      const late = await all.ask("too late");
      await stopped;
      const { entries } = await all.relay.direct.queue({ agent: WORKER });
      const handled = all.handled.includes("too late");
      assert.deepEqual(
        entries.map(({ task_id, state }) => [task_id, state]),
        handled ? [] : [[late, "available"]],
      );
      const count = all.relay.seen.length;
      await all.agent.stop();
      assert.equal(all.relay.seen.length, count);
    });

    it("waits for a relay that goes away while nothing happens, and says so", async () => {
      await using all = await setup(transport, { timeoutMs: 200, waitMs: 60_000 });
      await all.agent.start();
      // It waits for messages from now on.
      const way = transport === "sse" ? `answered ${LEASE}` : LEASE;
      await all.relay.came((line) => line === (isSocket ? SOCKET : way));
      await all.relay.stopRelay();
      all.relay.cut();
      while (all.errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(new Set(all.errors), new Set(["lease unavailable"]));
      await all.relay.startRelay();
      await all.done([await all.ask("back again")]);
      assert.deepEqual(all.handled, ["back again"]);
    });
  });
}
