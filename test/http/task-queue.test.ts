import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type {
  QueueAutoRetried,
  QueueSnapshot,
  QueueResultOption,
  QueueTaskOption,
  QueueErrorBody,
  RelayErrorCode,
} from "@a2a-relay/protocol";
import {
  type CallOptions,
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";
import { HTTP_STATUS } from "../../packages/relay/src/transports/http/http-error.ts";

interface Agents {
  readonly lulu: CallOptions;
  readonly zhiwei: CallOptions;
}

/** Keys for both agents. */
async function agentsOf(relay: HttpRelay): Promise<Agents> {
  const optionsFor = async (agent_id: string): Promise<CallOptions> => {
    const { json, text } = await relay.post("/keys", { agent_id });
    assert.ok(json.key, text);
    return { headers: { authorization: `Bearer ${json.key}` } };
  };
  return { lulu: await optionsFor(LULU), zhiwei: await optionsFor(ZHIWEI) };
}

function aTask(said: object = {}): { readonly id: string } & Readonly<Record<string, unknown>> {
  return { id: randomUUID(), sender: LULU, recipient: ZHIWEI, intent_text: "把报告翻译成中文", ...said };
}

function read({ status, text }: HttpAnswer): unknown {
  assert.equal(status, 200, text);
  return JSON.parse(text) as unknown;
}

/** Refused in this wire's shape, with the status of the one table. */
async function refused(
  answer: Promise<HttpAnswer>,
  code: RelayErrorCode,
  words?: RegExp,
): Promise<QueueErrorBody> {
  const { status, text } = await answer;
  const body = JSON.parse(text) as QueueErrorBody;
  assert.deepEqual([body.kind, body.code, status], ["error", code, HTTP_STATUS[code]], text);
  if (words !== undefined) assert.match(body.message, words);
  return body;
}

describe("the task-queue wire", () => {
  let relay: HttpRelay;
  let lulu: CallOptions;
  let zhiwei: CallOptions;
  before(async () => {
    relay = await openHttpRelay();
    ({ lulu, zhiwei } = await agentsOf(relay));
  });
  after(() => relay[Symbol.asyncDispose]());

  it("carries a task there and its result back, with every kind as it was promised", async () => {
    const task = aTask({ task_kind: "translate" });
    assert.deepEqual(read(await relay.post("/a2a/tasks", task, lulu)), {
      kind: "a2a_task_queued",
      task_id: task.id,
    });
    const recent = read(await relay.get("/a2a/tasks/recent?limit=5", lulu)) as {
      kind: string;
      tasks: readonly { id: string }[];
    };
    assert.deepEqual([recent.kind, recent.tasks.map(({ id }) => id)], ["a2a_tasks", [task.id]]);
    const taken = read(await relay.get("/a2a/tasks/next", zhiwei)) as QueueTaskOption;
    assert.deepEqual([taken.kind, taken.task?.id, taken.lease?.attempt], ["a2a_task_opt", task.id, 1]);
    assert.deepEqual(read(await relay.get("/a2a/tasks/next", zhiwei)), { kind: "a2a_task_opt", task: null });
    const queue = read(await relay.get("/a2a/queue?state_filter=in_flight&limit=3", lulu)) as QueueSnapshot;
    assert.deepEqual([queue.kind, queue.limit, queue.state_filter], ["a2a_queue", 3, "in_flight"]);
    assert.deepEqual([queue.min_lease_age_ms, queue.deadline_within_ms], [null, null]);
    assert.equal(queue.tasks[0]?.lease_id, taken.lease?.lease_id);
    const result = { task_id: task.id, status: "ok", content: [{ type: "json", value: { 页: [1, null] } }] };
    const posted = { kind: "a2a_result_posted", task_id: task.id };
    assert.deepEqual(read(await relay.post("/a2a/results", result, zhiwei)), posted);
    assert.deepEqual(read(await relay.post("/a2a/results", result, zhiwei)), posted);
    assert.deepEqual(read(await relay.get("/a2a/results/recent", lulu)), {
      kind: "a2a_results",
      results: [result],
    });
    assert.deepEqual(read(await relay.get("/a2a/results/next", lulu)), { kind: "a2a_result_opt", result });
    assert.deepEqual(read(await relay.get("/a2a/results/next", lulu)), {
      kind: "a2a_result_opt",
      result: null,
    });
    const compacted = read(await relay.post("/a2a/compact")) as { kind: string; dropped: number };
    assert.deepEqual(compacted, { kind: "a2a_compacted", dropped: 2 });
  });

  it("hands out a result until it is acknowledged, where that is asked for", async () => {
    const task = aTask();
    await relay.post("/a2a/tasks", task, lulu);
    await relay.post("/a2a/tasks/next", undefined, zhiwei);
    await relay.post("/a2a/results", { task_id: task.id, status: "ok" }, zhiwei);
    const { result, lease } = read(await relay.post("/a2a/results/next", {}, lulu)) as QueueResultOption;
    assert.deepEqual(result, { task_id: task.id, status: "ok", content: [] });
    const none = { kind: "a2a_result_opt", result: null };
    assert.deepEqual(read(await relay.get("/a2a/results/next?ack=explicit", lulu)), none);
    assert.equal((read(await relay.get("/a2a/queue", lulu)) as QueueSnapshot).results.length, 1);
    const ref = { message_id: lease?.message_id, lease_id: lease?.lease_id };
    await refused(relay.post("/a2a/results/ack", { ...ref, lease_id: "other" }, lulu), "lease_lost");
    const acked = { kind: "a2a_result_acked", task_id: task.id };
    assert.deepEqual(read(await relay.post("/a2a/results/ack", ref, lulu)), acked);
    assert.equal((read(await relay.get("/a2a/queue", lulu)) as QueueSnapshot).results.length, 0);
  });

  it("sees the tasks of the other wire, and the other wire sees its tasks", async () => {
    const { task_id } = await relay.send({ type: "request", body: "从信里来" });
    const { task } = read(await relay.get("/a2a/tasks/next", zhiwei)) as QueueTaskOption;
    assert.deepEqual([task?.id, task?.intent_text], [task_id, "从信里来"]);
    const content = [{ type: "text", text: "从队列里回" }];
    await relay.post("/a2a/results", { task_id, status: "ok", content }, zhiwei);
    assert.equal((await relay.get(`/tasks/${task_id}`)).json.task.state, "completed");
    const { json } = await relay.get(`/mailbox/${LULU}`, lulu);
    assert.equal(json.messages.at(-1)?.message.body, "从队列里回");
    await relay.post(`/mailbox/${LULU}/ack`, { message_ids: [json.messages.at(-1)?.message_id] }, lulu);

    const other = aTask({ intent_text: "从队列里来" });
    await relay.post("/a2a/tasks", other, lulu);
    const leased = await relay.post(`/mailbox/${ZHIWEI}/lease`, {}, zhiwei);
    const [item] = leased.json.messages;
    assert.equal(item?.message.body, "从队列里来");
    const done = { text: "从信里回", lease_id: item?.lease.id };
    assert.equal((await relay.post(`/tasks/${item?.task_id}/complete`, done, zhiwei)).status, 200);
    const { result } = read(await relay.get("/a2a/results/next", lulu)) as QueueResultOption;
    assert.deepEqual(result, {
      task_id: other.id,
      status: "ok",
      content: [{ type: "text", text: "从信里回" }],
    });
  });

  it("wakes a waiting worker, with GET and with POST", async () => {
    const task = aTask();
    const waiting = relay.get("/a2a/tasks/next?wait_ms=60000", zhiwei);
    await relay.post("/a2a/tasks", task, lulu);
    assert.equal((read(await waiting) as QueueTaskOption).task?.id, task.id);
    const result = relay.post("/a2a/results/next", { wait_ms: 60_000, ack: "now" }, lulu);
    await relay.post("/a2a/results", { task_id: task.id, status: "ok" }, zhiwei);
    const answer = read(await result) as QueueResultOption;
    assert.deepEqual([answer.result?.task_id, answer.lease], [task.id, undefined]);
  });

  it("serves an operator for the agent that it names, and the oldest task of all where it names none", async () => {
    const [first, second] = [aTask(), aTask()];
    for (const task of [first, second]) await relay.post("/a2a/tasks", task);
    const named = read(await relay.get(`/a2a/tasks/next?agent=${ZHIWEI}`)) as QueueTaskOption;
    assert.equal(named.task?.id, first.id);
    assert.equal((read(await relay.post("/a2a/tasks/next")) as QueueTaskOption).task?.id, second.id);
    await relay.post(`/a2a/results?agent=${ZHIWEI}`, { task_id: first.id, status: "ok" });
    await relay.post("/a2a/results", { task_id: second.id, status: "ok" });
    const drained = read(await relay.get("/a2a/results/next?agent=lulu")) as QueueResultOption;
    assert.equal(drained.result?.task_id, first.id);
    assert.equal(
      (read(await relay.get("/a2a/results/next")) as QueueResultOption).result?.task_id,
      second.id,
    );
  });

  it("repairs what is stuck, and retries what is stale", async () => {
    const idempotency = { duplicate_safety: "idempotent", key: randomUUID() };
    const task = aTask({ idempotency });
    await relay.post("/a2a/tasks", task, lulu);
    const { lease } = read(await relay.get("/a2a/tasks/next", zhiwei)) as QueueTaskOption;
    const command = { action: "requeue", duplicate_risk: "operator_accepted", lease_id: lease?.lease_id };
    const repair = { task_id: task.id, reason: "worker lost", command };
    await refused(relay.post("/a2a/repair", repair, zhiwei), "permission_denied");
    await refused(
      relay.post("/a2a/repair", { ...repair, reason: " " }),
      "invalid_argument",
      /^invalid repair request: reason must not be empty$/,
    );
    await refused(
      relay.post("/a2a/repair", { ...repair, command: { ...command, lease_id: "other" } }),
      "lease_lost",
      /^lease mismatch for task .*: expected other, actual /,
    );
    assert.deepEqual(read(await relay.post("/a2a/repair", repair)), {
      kind: "a2a_repaired",
      outcome: { task_id: task.id, action: "requeued", state: "queued", attempt: 1 },
    });
    await refused(relay.post("/a2a/repair", repair), "wrong_state", /is not currently in flight/);
    await relay.get("/a2a/tasks/next", zhiwei);
    const policy = { enabled: true, min_lease_age_ms: 0 };
    const { kind, report } = read(await relay.post("/a2a/retry-stale", { policy })) as QueueAutoRetried;
    assert.deepEqual([kind, report.requeued.map(({ task_id }) => task_id)], ["a2a_auto_retried", [task.id]]);
    assert.equal(
      (read(await relay.post("/a2a/retry-stale")) as QueueAutoRetried).report.policy.enabled,
      false,
    );
  });

  it("says what is wrong in one shape, with the status that it means", async () => {
    const task = aTask();
    await refused(relay.get("/a2a/nothing"), "not_found", /there is no GET \/a2a\/nothing here/);
    await refused(relay.call("DELETE", "/a2a/tasks"), "not_found");
    await refused(relay.post("/a2a/tasks", "{"), "invalid_argument", /is not valid JSON/);
    await refused(
      relay.post("/a2a/tasks", "x=1", { headers: { "content-type": "text/plain" } }),
      "unsupported_media_type",
    );
    await refused(relay.post("/a2a/tasks", { ...task, intent_text: "x".repeat(2_000_000) }), "too_large");
    await refused(relay.post("/a2a/tasks", {}), "invalid_argument", /is missing/);
    await refused(
      relay.post("/a2a/tasks", { ...task, sender: ZHIWEI }, lulu),
      "permission_denied",
      /does not match/,
    );
    await refused(
      relay.get("/a2a/queue?state_filter=Queued"),
      "invalid_argument",
      /^state_filter: must be one of/,
    );
    await refused(relay.get("/a2a/queue?limit=-1"), "invalid_argument");
    await refused(relay.get("/a2a/queue?unknown=1"), "invalid_argument");
    const unknown = { task_id: "T", status: "ok" };
    const words = /^a2a respond rejected: task_id T was never dispatched through this daemon$/;
    await refused(relay.post("/a2a/results", unknown, zhiwei), "not_found", words);
    const stranger = { headers: { authorization: "Bearer nothing" } };
    for (const path of ["/a2a/queue", "/a2a/tasks/next"])
      await refused(relay.get(path, stranger), "unauthenticated");
    const foreign = { headers: { host: "evil.example" } };
    await refused(relay.get("/a2a/queue", foreign), "permission_denied");
  });

  it("accepts the largest age", async () => {
    const oldest = "18446744073709551615";
    const queue = read(await relay.get(`/a2a/queue?min_lease_age_ms=${oldest}`)) as QueueSnapshot;
    assert.equal(queue.min_lease_age_ms, Number(oldest));
  });

  it("lets no link on another site take messages", async () => {
    const link = { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" } };
    for (const path of ["/a2a/tasks/next", "/a2a/results/next"]) {
      await refused(relay.get(path, link), "permission_denied", /with a link; use POST/);
    }
    assert.equal((await relay.get("/a2a/queue", link)).status, 200);
    const typed = { headers: { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" } };
    assert.equal((await relay.get("/a2a/tasks/next", typed)).status, 200);
  });

  it("is described with the shape of its errors", async () => {
    const { paths, components } = JSON.parse((await relay.get("/openapi.json")).text) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
      readonly components: { readonly schemas: Readonly<Record<string, object>> };
    };
    assert.ok("TaskQueueError" in components.schemas);
    const own = Object.keys(paths).filter((path) => path.startsWith("/a2a/"));
    assert.equal(own.length, 11);
    for (const path of own) assert.match(JSON.stringify(paths[path]), /schemas\/TaskQueueError/);
    assert.match((await relay.get("/docs")).text, /Task queue/);
  });

  it("has no other tenant's tasks in it", async () => {
    const { json } = await relay.post("/keys", { tenant: "other" });
    const other = { headers: { authorization: `Bearer ${json.key}` } };
    const task = aTask();
    await relay.post("/a2a/tasks", task);
    const queue = read(await relay.get("/a2a/queue", other)) as QueueSnapshot;
    assert.deepEqual([queue.tasks, queue.results], [[], []]);
    assert.equal((read(await relay.get("/a2a/tasks/next", other)) as QueueTaskOption).task, null);
    await refused(relay.post("/a2a/results", { task_id: task.id, status: "ok" }, other), "not_found");
  });
});
