import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { ANY_ANSWER } from "../../testing/any-answer.ts";
import { type WireAnswer, type WireRequest, WireServer } from "../../testing/wire-server.ts";
import { RelayClient } from "./relay-client.ts";
import type { TaskQueueClient } from "./task-queue-client.ts";

const TASK = { id: "t1", sender: "lulu@kamac", recipient: "zhiwei@known-blocks1", intent_text: "翻译" };
const RESULT = { task_id: "t1", status: "ok" } as const;
const REPAIR = {
  task_id: "t1",
  reason: "r",
  command: { action: "requeue", duplicate_risk: "idempotent" },
} as const;

async function setup(respond: () => WireAnswer = () => ({ json: ANY_ANSWER })) {
  const server = await WireServer.start(respond);
  const { taskQueue } = new RelayClient({ url: server.url, retries: 2, retryDelayMs: 1 });
  return { server, taskQueue };
}

function line({ method, path, query }: WireRequest): string {
  return `${method} ${path}${query.size === 0 ? "" : `?${query}`}`;
}

type Act = (queue: TaskQueueClient) => Promise<unknown>;

describe("TaskQueueClient", () => {
  it("calls each route by its method and path, with what it was given", async () => {
    const { server, taskQueue } = await setup();
    await using _ = server;
    const ack = { message_id: "m1", lease_id: "l1" };
    const calls: readonly [Act, string, object][] = [
      [(queue) => queue.send(TASK), "POST /a2a/tasks", TASK],
      [(queue) => queue.next({ wait_ms: 5 }), "POST /a2a/tasks/next", { wait_ms: 5 }],
      [(queue) => queue.recent({ limit: 0 }), "GET /a2a/tasks/recent?limit=0", {}],
      [(queue) => queue.respond(RESULT), "POST /a2a/results", RESULT],
      [(queue) => queue.respond(RESULT, { agent: "a" }), "POST /a2a/results?agent=a", RESULT],
      [(queue) => queue.nextResult({ ack: "now" }), "POST /a2a/results/next", { ack: "now" }],
      [(queue) => queue.ackResult(ack), "POST /a2a/results/ack", ack],
      [(queue) => queue.recentResults({ agent: "a" }), "GET /a2a/results/recent?agent=a", {}],
      [(queue) => queue.queue({ state_filter: "queued" }), "GET /a2a/queue?state_filter=queued", {}],
      [(queue) => queue.repair(REPAIR), "POST /a2a/repair", REPAIR],
      [
        (queue) => queue.retryStale({ enabled: true }),
        "POST /a2a/retry-stale",
        { policy: { enabled: true } },
      ],
      [(queue) => queue.compact(), "POST /a2a/compact", {}],
    ];
    for (const [act] of calls) await act(taskQueue);
    assert.deepEqual(
      server.requests.map(line),
      calls.map(([, expected]) => expected),
    );
    assert.deepEqual(
      server.requests.map(({ body }) => body),
      calls.map(([, , body]) => body),
    );
  });

  it("reads errors in the shape they have here", async () => {
    const details = { expected: "l0", actual: "l1" };
    const { server, taskQueue } = await setup(() => ({
      status: 409,
      json: { kind: "error", message: "lease mismatch", code: "lease_lost", details },
    }));
    await using _ = server;
    await assert.rejects(taskQueue.repair(REPAIR), (reason) => {
      assert.ok(reason instanceof RelayError);
      assert.deepEqual(
        [reason.code, reason.message, reason.details],
        ["lease_lost", "lease mismatch", details],
      );
      return true;
    });
  });

  const afterLostReply: Readonly<Record<string, readonly [Act, isRepeated: boolean]>> = {
    "sends a task": [(queue) => queue.send(TASK), true],
    "posts a result": [(queue) => queue.respond(RESULT), true],
    "takes a result that comes back": [(queue) => queue.nextResult(), true],
    "takes a result for good": [(queue) => queue.nextResult({ ack: "now" }), false],
    "takes a task": [(queue) => queue.next(), false],
    repairs: [(queue) => queue.repair(REPAIR), false],
    "retries what is stale": [(queue) => queue.retryStale(), false],
  };
  for (const [name, [act, isRepeated]] of Object.entries(afterLostReply)) {
    it(`${name} ${isRepeated ? "again" : "once"} when the reply got lost`, async () => {
      const answers: WireAnswer[] = ["reset_midway", { json: ANY_ANSWER }];
      const { server, taskQueue } = await setup(() => answers.shift() ?? { json: ANY_ANSWER });
      await using _ = server;
      if (isRepeated) await act(taskQueue);
      else await assert.rejects(act(taskQueue), { code: "unavailable" });
      assert.equal(server.requests.length, isRepeated ? 2 : 1);
    });
  }
});
