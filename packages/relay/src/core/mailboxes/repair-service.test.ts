import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RetryStaleResponse } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const REQUEUE = { action: "requeue", duplicate_risk: "operator_accepted" };
const FORCE = { action: "force_error", message: "worker is lost" };

function safe(key: string) {
  return { idempotency: { duplicate_safety: "idempotent", key } } as const;
}

function reasons({ skipped }: RetryStaleResponse): readonly string[] {
  return skipped.map(({ reason }) => reason);
}

describe("requeue", () => {
  for (const duplicate_risk of ["idempotent", "operator_accepted"]) {
    it(`gives leased work back with the posture ${duplicate_risk}, and records it`, async () => {
      await using core = await coreOnMemory();
      await core.send();
      const { message_id, lease_id } = await core.lease();
      const command = { action: "requeue", duplicate_risk };
      const outcome = await core.repairs.repair(core.operator, { message_id, reason: "进程没了", command });
      assert.deepEqual(outcome, { message_id, action: "requeued", state: "available", attempt: 1 });
      const [event] = (await core.journal.events(core.operator, { type: "message.requeued" })).events;
      assert.deepEqual(
        [event?.actor, event?.data],
        ["operator", { reason: "进程没了", duplicate_risk, lease_id, attempt: 1 }],
      );
      assert.equal((await core.lease()).attempt, 2);
    });
  }

  it("puts work at the end of its mailbox", async () => {
    await using core = await coreOnMemory();
    await core.send({ body: "一" });
    await core.send({ body: "二" });
    const { message_id } = await core.lease();
    await core.repairs.repair(core.operator, { message_id, reason: "x", command: REQUEUE });
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message }) => message.body),
      ["二", "一"],
    );
  });

  it("finds the leased messages of a task", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const task_id = receipt.task_id ?? "";
    const request = { task_id, reason: "x", command: REQUEUE };
    await refused(
      core.repairs.repair(core.operator, request),
      "wrong_state",
      /none of its messages is leased/,
    );
    await core.lease();
    const outcome = await core.repairs.repair(core.operator, request);
    assert.deepEqual([outcome.message_id, outcome.task_id], [receipt.message_id, task_id]);
  });
});

describe("force_error", () => {
  it("ends the task with its words and makes one result for the requester", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const { message_id, lease_id } = await core.lease();
    const command = { ...FORCE, lease_id };
    const outcome = await core.repairs.repair(core.operator, { message_id, reason: "重启过", command });
    assert.deepEqual([outcome.action, outcome.state, outcome.attempt], ["forced_error", "dead", 1]);
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual(
      [task.state, task.result_status, task.status_text],
      ["failed", "error", "worker is lost"],
    );
    const inbox = await core.inboxOf(LULU);
    assert.deepEqual(
      inbox.map(({ message }) => [message.type, message.from, message.body, message["task_state"]]),
      [["reply", ZHIWEI, "worker is lost", "failed"]],
    );
    const [event] = (await core.journal.events(core.operator, { type: "message.dead" })).events;
    assert.deepEqual(event?.data, { reason: "worker is lost", repair_reason: "重启过", lease_id });
    await refused(core.tasks.complete(core.operator, task.id, { lease_id }), "lease_lost");
    await refused(core.tasks.complete(core.operator, task.id, {}), "task_finished");
  });

  it("on a note tells its sender by a notice", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id } = await core.lease();
    await core.repairs.repair(core.operator, { message_id, reason: "x", command: FORCE });
    const inbox = await core.inboxOf(LULU);
    assert.deepEqual(
      inbox.map(({ message }) => [message.type, message.from, message.reply_to]),
      [["status", "postmaster@relay", message_id]],
    );
  });
});

describe("a repair", () => {
  it("is refused when the lease is not the one that the operator saw", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease();
    for (const command of [REQUEUE, FORCE]) {
      const request = { message_id, reason: "x", command: { ...command, lease_id: "older" } };
      const error = await refused(core.repairs.repair(core.operator, request), "lease_lost");
      assert.deepEqual(error.details, { expected: "older", actual: lease_id });
    }
    assert.equal((await core.delivery(message_id)).state, "leased");
  });

  it("is refused for a message that is not leased", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    for (const command of [REQUEUE, FORCE]) {
      const request = { message_id: receipt.message_id, reason: "x", command };
      await refused(core.repairs.repair(core.operator, request), "wrong_state", /not leased/);
    }
  });

  const wrong: readonly [what: string, request: Readonly<Record<string, unknown>>][] = [
    ["no reason", { command: REQUEUE }],
    ["an empty reason", { reason: "", command: REQUEUE }],
    ["a blank reason", { reason: " \t\n", command: REQUEUE }],
    ["no command", { reason: "x" }],
    ["an unknown action", { reason: "x", command: { action: "delete" } }],
    ["no posture", { reason: "x", command: { action: "requeue" } }],
    ["another posture", { reason: "x", command: { ...REQUEUE, duplicate_risk: "unsafe" } }],
    ["no error message", { reason: "x", command: { action: "force_error" } }],
    ["a blank error message", { reason: "x", command: { ...FORCE, message: "  " } }],
    ["an empty lease id", { reason: "x", command: { ...REQUEUE, lease_id: "" } }],
  ];
  for (const [what, request] of wrong) {
    it(`is refused with ${what}`, async () => {
      await using core = await coreOnMemory();
      await core.send();
      const { message_id } = await core.lease();
      await refused(core.repairs.repair(core.operator, { message_id, ...request }), "invalid_argument");
      assert.equal((await core.delivery(message_id)).state, "leased");
    });
  }

  it("names one message or one task", async () => {
    await using core = await coreOnMemory();
    const request = { reason: "x", command: REQUEUE };
    const { repairs, operator } = core;
    await refused(repairs.repair(operator, request), "invalid_argument", /either/);
    await refused(
      repairs.repair(operator, { ...request, message_id: "m", task_id: "t" }),
      "invalid_argument",
    );
    await refused(repairs.repair(operator, { ...request, message_id: "m" }), "not_found");
    await refused(repairs.repair(operator, { ...request, task_id: "t" }), "not_found");
  });
});

describe("retry-stale", () => {
  /** One lease on each of the messages, all as old as `ageMs`. */
  async function leasedFor(
    core: CoreOnMemory,
    ageMs: number,
    messages: readonly object[],
  ): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const message of messages) {
      await core.send(message);
      ids.push((await core.lease()).message_id);
    }
    core.clock.advance(ageMs);
    return ids;
  }

  it("by itself only reports, with the defaults of its policy", async () => {
    await using core = await coreOnMemory();
    const [messageId] = await leasedFor(core, 400_000, [safe("k1")]);
    for (const request of [undefined, {}]) {
      const report = await core.repairs.retryStale(core.operator, request);
      assert.deepEqual(report, {
        policy: {
          enabled: false,
          min_lease_age_ms: 300_000,
          max_attempts: 3,
          max_requeues: 1,
          scan_limit: 100,
        },
        considered: 1,
        requeued: [],
        skipped: [{ message_id: messageId, reason: "disabled", attempt: 1, lease_age_ms: 400_000 }],
      });
    }
    assert.equal((await core.delivery(messageId ?? "")).state, "leased");
  });

  it("requeues stale idempotent work and says what it was", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", ...safe("k1") });
    const { message_id, lease_id } = await core.lease();
    core.clock.advance(300_000);
    const report = await core.repairs.retryStale(core.operator, { enabled: true });
    assert.deepEqual(report.requeued, [
      { message_id, task_id: receipt.task_id, attempt: 1, lease_id, idempotency_key: "k1" },
    ]);
    assert.deepEqual(report.skipped, []);
    assert.equal((await core.delivery(message_id)).state, "available");
    const [event] = (await core.journal.events(core.operator, { type: "message.requeued" })).events;
    assert.match(String(event?.data["reason"]), /automatic retry policy/);
    assert.equal(event?.data["duplicate_risk"], "idempotent");
  });

  it("takes a lease that is exactly as old as asked for, and none a millisecond younger", async () => {
    await using core = await coreOnMemory();
    await leasedFor(core, 299_999, [safe("k1")]);
    assert.deepEqual(reasons(await core.repairs.retryStale(core.operator, { enabled: true })), [
      "lease_too_young",
    ]);
    core.clock.advance(1);
    assert.equal((await core.repairs.retryStale(core.operator, { enabled: true })).requeued.length, 1);
  });

  it("gives the first reason that applies, in the order in which a person would ask", async () => {
    await using core = await coreOnMemory();
    const unsafe = { idempotency: { duplicate_safety: "unsafe", key: "k2" } };
    await leasedFor(core, 300_000, [{}, unsafe, { idempotency_key: "k3" }, safe("k4")]);
    await leasedFor(core, 1_000, [safe("k5")]);
    const policy = { enabled: true, max_attempts: 1, max_requeues: 0 };
    assert.deepEqual(reasons(await core.repairs.retryStale(core.operator, policy)), [
      "missing_idempotency",
      "unsafe_duplicate_safety",
      "unsafe_duplicate_safety",
      "max_attempts_reached",
      "lease_too_young",
    ]);
    const none = { enabled: true, max_requeues: 0 };
    assert.equal(reasons(await core.repairs.retryStale(core.operator, none))[3], "limit_reached");
    const report = await core.repairs.retryStale(core.operator, { ...policy, enabled: false });
    assert.deepEqual(new Set(reasons(report)), new Set(["disabled"]));
  });

  it("requeues at most as many as allowed, the oldest lease first", async () => {
    await using core = await coreOnMemory();
    const [old] = await leasedFor(core, 10, [safe("k1")]);
    const [newer] = await leasedFor(core, 300_000, [safe("k2")]);
    const first = await core.repairs.retryStale(core.operator, { enabled: true });
    assert.deepEqual(
      first.requeued.map(({ message_id }) => message_id),
      [old],
    );
    assert.deepEqual(reasons(first), ["limit_reached"]);
    const second = await core.repairs.retryStale(core.operator, { enabled: true });
    assert.deepEqual(
      second.requeued.map(({ message_id }) => message_id),
      [newer],
    );
  });

  it("scans leases only, however many messages wait, and no more than its limit", async () => {
    await using core = await coreOnMemory();
    await leasedFor(core, 300_000, [safe("a"), safe("b"), safe("c")]);
    for (let index = 0; index < 120; index += 1) await core.send();
    const report = await core.repairs.retryStale(core.operator, {
      enabled: true,
      scan_limit: 2,
      max_requeues: 5,
    });
    assert.deepEqual([report.considered, report.requeued.length], [2, 2]);
  });

  it("is refused with a policy that makes no sense", async () => {
    await using core = await coreOnMemory();
    const wrong = [
      { enabled: "yes" },
      { min_lease_age_ms: -1 },
      { max_attempts: 0 },
      { max_requeues: -1 },
      { scan_limit: 0 },
      { scan_limit: 1_001 },
      { min_lease_age_ms: 0.5 },
      [],
      "enabled",
    ];
    for (const policy of wrong)
      await refused(core.repairs.retryStale(core.operator, policy), "invalid_argument");
  });

  it("on a schedule leaves a record when it found leases", async () => {
    await using core = await coreOnMemory();
    const policy = { min_lease_age_ms: 300_000, max_attempts: 3, max_requeues: 1, scan_limit: 100 };
    await core.repairs.retryOnSchedule(core.operator, policy);
    const scans = async () => (await core.journal.events(core.operator, { type: "retry.scanned" })).events;
    assert.equal((await scans()).length, 0);
    await leasedFor(core, 300_000, [safe("k1"), {}]);
    await core.repairs.retryOnSchedule(core.operator, policy);
    const [scan] = await scans();
    assert.deepEqual(
      [scan?.actor, scan?.data],
      ["postmaster@relay", { considered: 2, requeued: 1, skipped: 1, policy }],
    );
  });
});

describe("the queue", () => {
  it("shows open messages with its lease and its age, and counts all of it", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({
      type: "request",
      subject: "看看",
      deadline_ms: core.clock.nowMs() + 9_000,
    });
    await core.send({ from: ZHIWEI, to: LULU });
    const { message_id, lease_id } = await core.lease({ worker: "w1" });
    core.clock.advance(1_500);
    const { entries, totals } = await core.repairs.queue(core.operator, { state: "leased" });
    assert.deepEqual(entries, [
      {
        message_id,
        task_id: receipt.task_id,
        recipient: ZHIWEI,
        sender: LULU,
        kind: "request",
        subject: "看看",
        state: "leased",
        attempt: 1,
        duplicate_safety: "unsafe",
        accepted_at: "2026-05-08T12:00:00.000Z",
        deadline_ms: core.clock.nowMs() + 7_500,
        lease: { id: lease_id, attempt: 1, worker: "w1", leased_at: "2026-05-08T12:00:00.000Z" },
        lease_age_ms: 1_500,
      },
    ]);
    assert.deepEqual(totals, { held: 0, available: 1, leased: 1 });
  });

  it("is shown to an agent as far as it is its own mailbox, and counted as far", async () => {
    await using core = await coreOnMemory();
    await core.send({ from: ZHIWEI, to: LULU });
    const { receipt } = await core.send();
    await core.send();
    await core.lease({ worker: "w1" });
    const { entries, totals } = await core.repairs.queue(core.zhiwei, { agent: "zhiwei", state: "leased" });
    assert.deepEqual([entries.length, entries[0]?.message_id], [1, receipt.message_id]);
    assert.deepEqual(totals, { held: 0, available: 1, leased: 1 });
    await refused(core.repairs.queue(core.zhiwei, {}), "permission_denied", /for itself only/);
    await refused(core.repairs.queue(core.zhiwei, { agent: LULU }), "permission_denied", /for itself only/);
  });

  it("shows an agent nothing of an earlier owner of its id", async () => {
    await using core = await coreOnMemory();
    await core.send({ subject: "给以前的人" });
    await core.agents.remove(core.operator, ZHIWEI);
    core.clock.advance(1_000);
    await core.agents.register(core.operator, { agent_id: ZHIWEI });
    const query = { agent: ZHIWEI, state: "withdrawn" };
    assert.equal((await core.repairs.queue(core.operator, query)).entries.length, 1);
    assert.deepEqual((await core.repairs.queue(core.zhiwei, query)).entries, []);
  });

  it("is narrowed by state, agent, age of the lease and deadline", async () => {
    await using core = await coreOnMemory();
    await core.send({ body: "租出" });
    await core.lease();
    await core.send({ type: "request", body: "有期限", deadline_ms: core.clock.nowMs() + 5_000 });
    await core.send({ from: ZHIWEI, to: LULU, body: "给露露" });
    const bodies = async (query: object): Promise<readonly string[]> =>
      (await core.repairs.queue(core.operator, query)).entries.map(({ subject }) => subject).toSorted();
    assert.deepEqual(await bodies({}), ["有期限", "租出", "给露露"].toSorted());
    assert.deepEqual(await bodies({ state: "available" }), ["有期限", "给露露"].toSorted());
    assert.deepEqual(await bodies({ agent: "lulu" }), ["给露露"]);
    assert.deepEqual(await bodies({ min_lease_age_ms: 1 }), ["有期限", "给露露"].toSorted());
    assert.deepEqual(await bodies({ min_lease_age_ms: 0 }), ["有期限", "租出", "给露露"].toSorted());
    assert.deepEqual(await bodies({ deadline_within_ms: 5_000 }), ["有期限"]);
    assert.deepEqual(await bodies({ deadline_within_ms: 4_999 }), []);
    assert.deepEqual(await bodies({ limit: 1 }).then(({ length }) => length), 1);
    assert.deepEqual(await bodies({ state: "dead" }), []);
  });

  it("is refused with a filter that makes no sense", async () => {
    await using core = await coreOnMemory();
    const wrong = [
      { state: "queued" },
      { limit: 0 },
      { min_lease_age_ms: -1 },
      { deadline_within_ms: "soon" },
    ];
    for (const query of wrong) await refused(core.repairs.queue(core.operator, query), "invalid_argument");
    await refused(core.repairs.queue(core.operator, { agent: "stranger" }), "unknown_agent");
  });
});
