import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { A2aEvents, type A2aStreamRequest } from "../support/a2a-events.ts";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { eventually } from "../support/eventually.ts";
import { userMessage } from "../support/sdk-client.ts";

const AGENT = "zhiwei";
const PATH = `/agents/${AGENT}/a2a`;
const STEPS = 60;
const FOLLOW_MS_MAX = 40_000;
/** Killed when the slowest follower has seen so many events. */
const KILLS = [5, 20, 40];

/** A relay that is killed and started again on its database; its clients ask it for the current address. */
class MortalRelay implements AsyncDisposable {
  readonly #directory: string;
  #child: ChildRelay;

  private constructor(directory: string, child: ChildRelay) {
    this.#directory = directory;
    this.#child = child;
  }

  static async open(): Promise<MortalRelay> {
    const directory = await mkdtemp(join(tmpdir(), "a2a-kill-"));
    return new MortalRelay(directory, await startChildRelay({ dataDirectory: join(directory, "data") }));
  }

  get url(): string {
    return this.#child.url;
  }

  async killAndStart(): Promise<void> {
    await this.#child.kill("SIGKILL");
    await this.#child[Symbol.asyncDispose]();
    this.#child = await startChildRelay({ dataDirectory: join(this.#directory, "data") });
  }

  /** Repeats the call until the relay answers. */
  async post<Body>(path: string, body: object): Promise<Body> {
    return eventually(
      () => this.#try<Body>(path, body),
      (answer) => answer !== undefined,
    ) as Promise<Body>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #try<Body>(path: string, body: object): Promise<Body | undefined> {
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${this.url}${path}`, request).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    if (response === undefined || text === undefined) return undefined;
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Body;
  }
}

/** Follows a task to its end, over as many connections as it takes, and keeps what it saw. */
class Follower {
  readonly ids: string[] = [];
  readonly steps: string[] = [];
  connections = 0;
  readonly #relay: MortalRelay;
  readonly #request: A2aStreamRequest;

  constructor(relay: MortalRelay, request: A2aStreamRequest) {
    this.#relay = relay;
    this.#request = request;
  }

  async toTheEnd(): Promise<void> {
    const endMs = performance.now() + FOLLOW_MS_MAX;
    while (!this.steps.includes("end")) {
      assert.ok(performance.now() < endMs, `it never ended; seen: ${this.ids.join(" ")}`);
      const headers = { "last-event-id": this.ids.at(-1) ?? "0" };
      const opened = A2aEvents.open(this.#relay.url, { ...this.#request, headers });
      await using stream = await opened.catch((reason: unknown) => {
        // Only a relay that is away; a refusal is a failure.
        if (reason instanceof TypeError) return undefined;
        throw reason;
      });
      if (stream === undefined) continue;
      this.connections += 1;
      for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
        this.ids.push(event.id ?? "");
        const text = JSON.stringify(event.data);
        this.steps.push(
          /"text":"(第\d+步)"/.exec(text)?.[1] ?? (/COMPLETED|completed/.test(text) ? "end" : "?"),
        );
      }
    }
  }
}

/** So far ahead of the next kill the agent waits for it: a fast one would be done before. */
const AHEAD = 15;

/** Every step is told until the relay has heard it: one that was cut off may be there twice, never none. */
async function work(
  relay: MortalRelay,
  held: { readonly lease_id: string; readonly taskId: string; readonly killed: readonly Promise<void>[] },
): Promise<void> {
  const { lease_id, taskId, killed } = held;
  for (let n = 1; n <= STEPS; n += 1) {
    await killed[KILLS.findIndex((seen) => n === seen + AHEAD)];
    await relay.post(`/tasks/${taskId}/status`, { state: "working", text: `第${n}步`, lease_id });
  }
  await relay.post(`/tasks/${taskId}/complete`, { text: "好了", lease_id });
}

it(
  "a relay that is killed in the middle of streams loses no event of them",
  { timeout: 60_000 },
  async () => {
    await using relay = await MortalRelay.open();
    await relay.post("/agents/register", { agent_id: AGENT });
    const asked = { ...userMessage("走六十步"), configuration: { returnImmediately: true } };
    const { task } = await relay.post<{ task: { id: string } }>(`${PATH}/message:send`, asked);
    const { messages } = await relay.post<{ messages: { lease: { id: string } }[] }>(
      `/mailbox/${AGENT}/lease`,
      {},
    );
    const body = { jsonrpc: "2.0", id: 1, method: "tasks/resubscribe", params: { id: task.id } };
    const followers = [
      new Follower(relay, { method: "GET", path: `${PATH}/tasks/${task.id}:subscribe` }),
      new Follower(relay, { method: "POST", path: PATH, body }),
    ];
    const following = Promise.all(followers.map((follower) => follower.toTheEnd()));
    const kills = KILLS.map(() => Promise.withResolvers<void>());
    const killed = kills.map(({ promise }) => promise);
    const working = work(relay, { lease_id: messages[0]?.lease.id ?? "", taskId: task.id, killed });
    for (const [index, seen] of KILLS.entries()) {
      const least = async (): Promise<number> => {
        await fetch(`${relay.url}/health`).catch(() => undefined);
        return Math.min(...followers.map(({ ids }) => ids.length));
      };
      await eventually(least, (count) => count >= seen);
      kills[index]?.resolve();
      await relay.killAndStart();
    }
    await Promise.all([working, following]);

    const log = new Follower(relay, { method: "GET", path: `${PATH}/tasks/${task.id}:subscribe` });
    await log.toTheEnd();
    const numbers = log.ids.map(Number);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
      "each number once, none left out",
    );
    for (const { ids, steps, connections } of followers) {
      assert.deepEqual(ids, log.ids);
      assert.deepEqual(steps, log.steps);
      assert.ok(connections > KILLS.length, `cut ${connections - 1} times`);
    }
    const told = [...new Set(log.steps)];
    assert.deepEqual(told, [...Array.from({ length: STEPS }, (_, index) => `第${index + 1}步`), "end"]);
  },
);
