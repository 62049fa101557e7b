import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { aSharedTask, type CoreWithQueue, coreWithQueue } from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";

const REQUEUE = { action: "requeue", duplicate_risk: "operator_accepted" } as const;
const FORCE = { action: "force_error", message: "请周一再问" } as const;
const AGE_MS = 300_000;

async function setup(): Promise<CoreWithQueue & { readonly id: string; readonly leaseId: string }> {
  const core = await coreWithQueue();
  const id = await core.queueTask();
  const { leaseId } = await core.takeTask();
  return { ...core, id, leaseId };
}

describe("the repair of a task", () => {
  it("puts it back into the queue with its count, and the next lease counts on", async () => {
    await using core = await setup();
    const repair = { task_id: core.id, reason: "worker lost", command: REQUEUE };
    assert.deepEqual(await core.taskQueue.repair(core.operator, repair), {
      kind: "a2a_repaired",
      outcome: { task_id: core.id, action: "requeued", state: "queued", attempt: 1 },
    });
    const { tasks } = await core.taskQueue.queue(core.lulu, {});
    assert.deepEqual([tasks[0]?.state, tasks[0]?.attempt, tasks[0]?.lease_id], ["queued", 1, undefined]);
    const next = await core.takeTask();
    assert.deepEqual([next.id, next.attempt], [core.id, 2]);
    assert.notEqual(next.leaseId, core.leaseId);
    const { events } = await core.journal.events(core.operator, { type: "message.requeued" });
    assert.deepEqual(events[0]?.data, {
      reason: "worker lost",
      duplicate_risk: "operator_accepted",
      lease_id: core.leaseId,
      attempt: 1,
    });
  });

  it("ends it with an error that its sender drains", async () => {
    await using core = await setup();
    const command = { ...FORCE, lease_id: core.leaseId };
    const { outcome } = await core.taskQueue.repair(core.operator, {
      task_id: core.id,
      reason: "gone",
      command,
    });
    const result = { task_id: core.id, status: "error", content: [], error_message: "请周一再问" };
    assert.deepEqual(outcome, {
      task_id: core.id,
      action: "forced_error",
      state: "result_pending",
      attempt: 1,
      result,
    });
    assert.deepEqual((await core.taskQueue.queue(core.operator, {})).tasks, []);
    assert.deepEqual((await core.taskQueue.nextResult(core.lulu, {}, "now")).result, result);
  });

  it("needs a reason, and a message where one is sent, that say something", async () => {
    await using core = await setup();
    for (const reason of ["", "  "]) {
      await refused(
        core.taskQueue.repair(core.operator, { task_id: core.id, reason, command: REQUEUE }),
        "invalid_argument",
        /^invalid repair request: reason must not be empty$/,
      );
      const command = { ...FORCE, message: reason };
      await refused(
        core.taskQueue.repair(core.operator, { task_id: core.id, reason: "r", command }),
        "invalid_argument",
        /force_error message must not be empty$/,
      );
    }
  });

  it("is guarded by the named lease, where one is given", async () => {
    await using core = await setup();
    const repair = (command: object): Promise<unknown> =>
      core.taskQueue.repair(core.operator, { task_id: core.id, reason: "r", command });
    for (const command of [REQUEUE, FORCE]) {
      await refused(
        repair({ ...command, lease_id: "other" }),
        "lease_lost",
        new RegExp(`^lease mismatch for task ${core.id}: expected other, actual ${core.leaseId}`),
      );
    }
    const { tasks } = await core.taskQueue.queue(core.lulu, {});
    assert.deepEqual([tasks[0]?.state, tasks[0]?.lease_id], ["in_flight", core.leaseId]);
    await repair({ ...REQUEUE, lease_id: null });
  });

  it("needs a task in flight", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const repair = (command: object): Promise<unknown> =>
      core.taskQueue.repair(core.operator, { task_id: id, reason: "r", command });
    const words = new RegExp(`task ${id} is not currently in flight`);
    await refused(repair(REQUEUE), "wrong_state", words);
    await refused(repair({ ...FORCE, lease_id: "l1" }), "wrong_state", words);
    await core.finishTask();
    await refused(repair(REQUEUE), "wrong_state", words);
    // A leased result is not the work.
    await core.taskQueue.nextResult(core.lulu, {}, "explicit");
    await refused(repair(REQUEUE), "wrong_state", words);
  });

  it("needs leased work: other leased messages about a task do not count", async () => {
    await using core = await coreWithQueue();
    const { receipt } = await core.send({ type: "request", body: "写诗" });
    await core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids: [receipt.message_id] });
    await core.send({ task_id: receipt.task_id ?? "", body: "七言的" });
    await core.lease();
    const repair = { task_id: receipt.task_id, reason: "r", command: REQUEUE };
    await refused(core.taskQueue.repair(core.operator, repair), "wrong_state", /is not currently in flight/);
  });

  it("refuses unknown tasks and unknown members", async () => {
    await using core = await setup();
    const repair = { task_id: "nothing", reason: "r", command: REQUEUE };
    await refused(
      core.taskQueue.repair(core.operator, repair),
      "not_found",
      /^a2a repair rejected: task nothing is not visible to the authenticated peer or is no longer queued$/,
    );
    for (const command of [
      { action: "requeue" },
      { action: "forcedError", message: "x" },
      { action: "ForcedError", message: "x" },
      { action: "Requeue", duplicate_risk: "idempotent" },
      { action: "requeue", duplicate_risk: "Idempotent" },
    ]) {
      await refused(
        core.taskQueue.repair(core.operator, { ...repair, task_id: core.id, command }),
        "invalid_argument",
      );
    }
  });

  it("is refused to all agents without a capability", async () => {
    await using core = await setup();
    const repair = { task_id: core.id, reason: "r", command: REQUEUE };
    for (const caller of [core.lulu, core.zhiwei, core.kames]) {
      await refused(core.taskQueue.repair(caller, repair), "permission_denied");
    }
    assert.equal((await core.taskQueue.queue(core.lulu, {})).tasks[0]?.lease_id, core.leaseId);
    await refused(core.taskQueue.retryStale(core.lulu, { enabled: true }), "permission_denied");
    await refused(core.taskQueue.compact(core.lulu), "permission_denied");
  });
});

describe("retrying what is stale", () => {
  /** One task that may be repeated, and one that may not, both taken a while ago. */
  async function stale(): Promise<CoreWithQueue & { readonly safe: string; readonly unsafe: string }> {
    const core = await coreWithQueue();
    const unsafe = await core.queueTask();
    const task = aSharedTask("k-1");
    await core.taskQueue.sendTask(core.lulu, task);
    for (const _ of [1, 2]) await core.takeTask();
    core.clock.advance(AGE_MS);
    return { ...core, safe: task.id, unsafe };
  }

  it("only reports unless it is enabled, with what it would have considered", async () => {
    await using core = await stale();
    const before = (await core.store.journal.chain("default")).head;
    for (const input of [undefined, {}, { policy: {} }]) {
      const { kind, report } = await core.taskQueue.retryStale(core.operator, input);
      assert.equal(kind, "a2a_auto_retried");
      assert.deepEqual(report.policy, {
        enabled: false,
        min_lease_age_ms: 300_000,
        max_attempts: 3,
        max_requeues: 1,
        scan_limit: 100,
      });
      const skipped = { reason: "disabled", attempt: 1, lease_age_ms: AGE_MS };
      assert.deepEqual(report.skipped, [
        { task_id: core.unsafe, ...skipped },
        { task_id: core.safe, ...skipped },
      ]);
      assert.deepEqual([report.considered, report.requeued], [2, []]);
    }
    assert.deepEqual((await core.store.journal.chain("default")).head, before);
  });

  it("requeues only what may be repeated, at the very age, on record", async () => {
    await using core = await stale();
    const { tasks } = await core.taskQueue.queue(core.lulu, { state_filter: "in_flight" });
    const lease_id = tasks.find(({ task }) => task.id === core.safe)?.lease_id;
    const { report } = await core.taskQueue.retryStale(core.operator, { policy: { enabled: true } });
    assert.deepEqual(report.requeued, [{ task_id: core.safe, lease_id, attempt: 1, idempotency_key: "k-1" }]);
    assert.deepEqual(
      report.skipped.map(({ task_id, reason }) => [task_id, reason]),
      [[core.unsafe, "missing_idempotency"]],
    );
    const { events } = await core.journal.events(core.operator, { type: "message.requeued" });
    assert.equal(events[0]?.data["reason"], "automatic retry policy requeued stale idempotent lease");
    assert.equal((await core.takeTask()).attempt, 2);
  });

  it("leaves what is a moment too young", async () => {
    await using core = await stale();
    const policy = { enabled: true, min_lease_age_ms: AGE_MS + 1 };
    const { report } = await core.taskQueue.retryStale(core.operator, policy);
    assert.deepEqual(
      report.skipped.map(({ reason }) => reason),
      ["lease_too_young", "lease_too_young"],
    );
  });

  it("considers leased work and no other leased messages", async () => {
    await using core = await stale();
    await core.send({
      from: LULU,
      body: "闲聊",
      idempotency: { duplicate_safety: "idempotent", key: "note" },
    });
    await core.lease();
    core.clock.advance(AGE_MS);
    const { report } = await core.taskQueue.retryStale(core.operator, { enabled: true, max_requeues: 10 });
    assert.deepEqual([report.considered, report.requeued.length], [2, 1]);
  });

  it("takes its policy in one of two forms, not in both", async () => {
    await using core = await coreWithQueue();
    await refused(
      core.taskQueue.retryStale(core.operator, { policy: {}, enabled: true }),
      "invalid_argument",
      /not both/,
    );
    await refused(core.taskQueue.retryStale(core.operator, { policy: { enable: true } }), "invalid_argument");
  });
});
