import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { QueueSnapshot } from "@a2a-relay/protocol";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import {
  anOkResult,
  aQueueTask,
  type CoreWithQueue,
  coreWithQueue,
  KAMES,
} from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";

const U64_MAX = 18_446_744_073_709_551_615n;

function states({ tasks }: QueueSnapshot): readonly string[] {
  return tasks.map(({ state, task }) => `${state} ${task.intent_text}`);
}

/** Two tasks in flight, taken a minute apart, then one in the queue; and one result that waits. */
async function setup(): Promise<CoreWithQueue> {
  const core = await coreWithQueue();
  await core.queueTask({ intent_text: "done" });
  await core.finishTask();
  for (const intent_text of ["first", "second", "third"]) await core.queueTask({ intent_text });
  await core.takeTask();
  core.clock.advance(60_000);
  await core.takeTask();
  return core;
}

describe("the queue", () => {
  it("contains queued tasks, then leased ones, then results, with the filters that were applied", async () => {
    await using core = await setup();
    const queue = await core.taskQueue.queue(core.zhiwei, {});
    assert.deepEqual(states(queue), ["queued third", "in_flight first", "in_flight second"]);
    const { tasks, ...rest } = queue;
    assert.deepEqual(rest, {
      kind: "a2a_queue",
      limit: 10,
      min_lease_age_ms: null,
      deadline_within_ms: null,
      state_filter: null,
      results: [],
    });
    const [, leased] = tasks;
    assert.deepEqual(Object.keys(leased ?? {}), [
      "state",
      "task",
      "lease_id",
      "leased_to",
      "leased_at_ms",
      "attempt",
    ]);
    assert.deepEqual([leased?.leased_to, leased?.attempt], [leased?.task.recipient, 1]);
    assert.equal(leased?.leased_at_ms, core.clock.nowMs() - 60_000);
    assert.equal((await core.taskQueue.queue(core.lulu, {})).results.length, 1);
    assert.equal((await core.taskQueue.queue(core.operator, {})).results.length, 1);
  });

  it("is not changed by reading it", async () => {
    await using core = await setup();
    const before = (await core.store.journal.chain("default")).head;
    const [one, two] = [await core.taskQueue.queue(core.lulu, {}), await core.taskQueue.queue(core.lulu, {})];
    assert.deepEqual(one, two);
    assert.deepEqual((await core.store.journal.chain("default")).head, before);
  });

  it("is empty for an agent that is no party", async () => {
    await using core = await setup();
    const { tasks, results } = await core.taskQueue.queue(core.kames, {});
    assert.deepEqual([tasks, results], [[], []]);
    await refused(core.taskQueue.queue(core.kames, { agent: ZHIWEI }), "permission_denied");
    const named = await core.taskQueue.queue(core.operator, { agent: KAMES });
    assert.deepEqual(named.tasks, []);
  });

  it("hides young leases and nothing else", async () => {
    await using core = await setup();
    const read = (min_lease_age_ms: number): Promise<QueueSnapshot> =>
      core.taskQueue.queue(core.lulu, { min_lease_age_ms });
    assert.deepEqual(states(await read(60_000)), ["queued third", "in_flight first"]);
    assert.deepEqual(states(await read(60_001)), ["queued third"]);
    assert.deepEqual(states(await read(0)), ["queued third", "in_flight first", "in_flight second"]);
    const oldest = await read(Number(U64_MAX));
    assert.deepEqual([states(oldest), oldest.results.length], [["queued third"], 1]);
    assert.equal(oldest.min_lease_age_ms, Number(U64_MAX));
  });

  it("shows only what is due in time when it is asked to", async () => {
    await using core = await coreWithQueue();
    const nowMs = core.clock.nowMs();
    await core.queueTask({ intent_text: "no deadline" });
    await core.queueTask({ intent_text: "later", deadline_ms: nowMs + 60_000 });
    await core.queueTask({ intent_text: "soon", deadline_ms: nowMs + 1_000 });
    const read = async (deadline_within_ms: number): Promise<readonly string[]> =>
      states(await core.taskQueue.queue(core.lulu, { deadline_within_ms }));
    assert.deepEqual(await read(999), []);
    assert.deepEqual(await read(1_000), ["queued soon"]);
    assert.deepEqual(await read(60_000), ["queued later", "queued soon"]);
    core.clock.advance(2_000);
    assert.deepEqual(await read(0), ["queued soon"]);
    assert.deepEqual(await read(Number(U64_MAX)), ["queued later", "queued soon"]);
  });

  it("can be filtered by state, and refuses an unknown state", async () => {
    await using core = await setup();
    const read = (state_filter: string): Promise<QueueSnapshot> =>
      core.taskQueue.queue(core.lulu, { state_filter });
    const queued = await read("queued");
    assert.deepEqual([states(queued), queued.state_filter], [["queued third"], "queued"]);
    assert.deepEqual(states(await read("in_flight")), ["in_flight first", "in_flight second"]);
    for (const typo of ["in-flight", "Queued", "inFlight", ""]) {
      await refused(read(typo), "invalid_argument", /^state_filter: must be one of queued, in_flight/);
    }
  });

  it("filters before it counts, and all filters at once", async () => {
    await using core = await setup();
    for (let count = 0; count < 20; count += 1) {
      await core.taskQueue.sendTask(core.kames, aQueueTask({ sender: KAMES }));
    }
    const query = { state_filter: "in_flight", min_lease_age_ms: 60_000, limit: 1 };
    assert.deepEqual(states(await core.taskQueue.queue(core.lulu, query)), ["in_flight first"]);
    const due = { ...query, deadline_within_ms: 1_000 };
    assert.deepEqual(states(await core.taskQueue.queue(core.lulu, due)), []);
    assert.equal((await core.taskQueue.queue(core.lulu, { limit: 1 })).results.length, 1);
    const none = await core.taskQueue.queue(core.lulu, { limit: 0 });
    assert.deepEqual([none.tasks, none.results, none.limit], [[], [], 0]);
  });

  it("orders tasks of all agents by position, requeued ones last", async () => {
    await using core = await coreWithQueue();
    const send = (intent_text: string, recipient: string): Promise<unknown> =>
      core.taskQueue.sendTask(core.lulu, aQueueTask({ intent_text, recipient }));
    await send("1", ZHIWEI);
    await send("2", KAMES);
    await send("3", ZHIWEI);
    await send("4", KAMES);
    assert.deepEqual(states(await core.taskQueue.queue(core.operator, { limit: 3 })), [
      "queued 1",
      "queued 2",
      "queued 3",
    ]);
    const { id } = await core.takeTask();
    const command = { action: "requeue", duplicate_risk: "operator_accepted" };
    await core.taskQueue.repair(core.operator, { task_id: id, reason: "again", command });
    const queue = await core.taskQueue.queue(core.lulu, {});
    assert.deepEqual(states(queue), ["queued 2", "queued 3", "queued 4", "queued 1"]);
    assert.equal(queue.tasks.at(-1)?.attempt, 1);
  });

  it("contains work of every wire, and no other messages", async () => {
    await using core = await coreWithQueue();
    await core.send({ body: "闲聊" });
    const { receipt } = await core.send({ type: "request", body: "从信里来" });
    const { task } = await core.taskQueue.nextTask(core.zhiwei, {});
    assert.equal(task?.id, receipt.task_id);
    assert.deepEqual(states(await core.taskQueue.queue(core.operator, {})), ["in_flight 从信里来"]);
    await core.taskQueue.postResult(core.zhiwei, anOkResult(task?.id ?? ""));
    assert.deepEqual(states(await core.taskQueue.queue(core.operator, {})), []);
  });

  it("contains leased results as unacknowledged", async () => {
    await using core = await setup();
    await core.taskQueue.nextResult(core.lulu, {}, "explicit");
    assert.equal((await core.taskQueue.queue(core.lulu, {})).results.length, 1);
  });
});
