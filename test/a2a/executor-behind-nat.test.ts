import assert from "node:assert/strict";
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { describe, it } from "node:test";
import { childEnv } from "../support/child-env.ts";
import { GetTaskRequest, SendMessageRequest, StreamResponse, Task } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import { RelayClient } from "@a2a-relay/client";
import type { A2aStreamResponse, A2aTask } from "@a2a-relay/protocol";
import { startChildRelay } from "../support/child-relay.ts";

const TRANSLATOR = "translator@nat";
const PROGRAM = join(import.meta.dirname, "executor-process.ts");
const WAIT_MS_MAX = 30_000;

/** Those that still run; none may outlive this test. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The process of an agent; nothing reaches it but what it asks for itself. */
class ExecutorProcess implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<null, Readable, null>;

  constructor(...words: readonly string[]) {
    this.#child = spawn(process.execPath, ["--conditions=source", PROGRAM, ...words], {
      env: childEnv(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(this.#child);
    this.#child.once("close", () => running.delete(this.#child));
  }

  /** What it has open once it serves. */
  async serving(): Promise<readonly string[]> {
    const signal = AbortSignal.timeout(WAIT_MS_MAX);
    const [line] = (await once(this.#child.stdout, "data", { signal })) as [Buffer];
    return JSON.parse(line.toString()) as readonly string[];
  }

  /** Without a word of warning. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "close");
    if (this.#child.exitCode !== null || !this.#child.kill("SIGKILL")) return;
    await ended;
  }
}

/** Where the agent gets its material, for which it has to wait. */
async function openSource() {
  const waiting: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    waiting.push(response);
    server.emit("came");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    /** The request that came as the n-th, counted from 1. */
    async came(n: number): Promise<ServerResponse> {
      const signal = AbortSignal.timeout(WAIT_MS_MAX);
      while (waiting.length < n) await once(server, "came", { signal });
      return waiting[n - 1] ?? assert.fail("it has come");
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

describe("an SDK executor that serves A2A from behind a relay", { timeout: 120_000 }, () => {
  it("is killed in the middle of a task and started again: its caller gets one result, whole and once", async () => {
    await using relay = await startChildRelay();
    await using source = await openSource();
    const direct = new RelayClient({ url: relay.url });
    const words = [relay.url, TRANSLATOR, source.url];
    const events: A2aStreamResponse[] = [];
    let followed: Promise<void>;
    {
      await using first = new ExecutorProcess(...words);
      const resources = await first.serving();
      assert.ok(!resources.includes("TCPServerWrap"), `it listens: ${resources.join()}`);
      const client = await new ClientFactory().createFromUrl(`${relay.url}/agents/${TRANSLATOR}/`);
      const message = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "请翻译" }] };
      const stream = client.sendMessageStream(SendMessageRequest.fromJSON({ message }));
      const halfway = Promise.withResolvers<void>();
      followed = (async () => {
        for await (const event of stream) {
          events.push(StreamResponse.toJSON(event) as A2aStreamResponse);
          if (events.at(-1)?.artifactUpdate !== undefined) halfway.resolve();
        }
      })();
      await source.came(1);
      // It waits for the rest, and the caller has seen the first half.
      await Promise.race([halfway.promise, followed]);
    }
    await using _second = new ExecutorProcess(...words);
    const rest = await source.came(2);
    rest.end("下半");
    await followed;

    const taskId = events[0]?.task?.id ?? "";
    const ends = events.filter(({ statusUpdate }) => statusUpdate?.status.state === "TASK_STATE_COMPLETED");
    assert.equal(ends.length, 1);
    assert.equal(events.at(-1), ends[0]);
    const client = await new ClientFactory().createFromUrl(`${relay.url}/agents/${TRANSLATOR}/`);
    const got = await client.getTask(GetTaskRequest.fromJSON({ id: taskId }));
    const task = Task.toJSON(got) as A2aTask;
    assert.equal(task.status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(
      task.artifacts?.map(({ name, parts }) => [name, parts.map((part) => part["text"])]),
      [["译文", ["上半", "下半"]]],
    );
    const journal = await direct.events({ type: "task.completed" });
    assert.equal(journal.events.length, 1);
    const leased = (await direct.events({ type: "message.leased" })).events;
    assert.deepEqual(
      leased.map(({ data }) => data["attempt"]),
      [1, 2],
    );
  });
});
