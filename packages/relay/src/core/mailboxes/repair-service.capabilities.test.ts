import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { type GatedCore, gatedCore, KAMES } from "../../../testing/gated-core.ts";
import { refused } from "../../../testing/refusal.ts";
import type { Principal } from "../access/principal.ts";

const REQUEUE = "a2a.repair.requeue";
const FORCE = "a2a.repair.force_error";

interface Stuck {
  readonly core: GatedCore;
  readonly message_id: string;
  readonly task_id: string;
  readonly lease_id: string;
}

/** A request from lulu that zhiwei took and does not finish. */
async function stuck(message: object = {}): Promise<Stuck> {
  const core = await gatedCore();
  await core.letAsk();
  const { receipt } = await core.ask(message);
  const { message_id, lease_id } = await core.lease();
  await core.checks();
  return { core, message_id, task_id: receipt.task_id ?? "", lease_id };
}

function repair(
  { core, task_id }: Stuck,
  by: Principal,
  command: object = {},
  more: object = {},
): Promise<unknown> {
  const requeue = { action: "requeue", duplicate_risk: "operator_accepted" };
  const request = { task_id, reason: "卡住了", command: { ...requeue, ...command }, ...more };
  return core.repairs.repair(by, request);
}

function forceError({ core, task_id }: Stuck, by: Principal, command: object = {}): Promise<unknown> {
  const force = { action: "force_error", message: "没做完", ...command };
  return core.repairs.repair(by, { task_id, reason: "卡住了", command: force });
}

async function isUntouched({ core, message_id, lease_id }: Stuck): Promise<void> {
  assert.equal((await core.delivery(message_id)).lease?.id, lease_id);
}

describe("an agent that repairs", () => {
  it("needs the capability for what it does, and is told before anything is read", async () => {
    const work = await stuck();
    await using core = work.core;
    await refused(
      repair(work, core.lulu),
      "permission_denied",
      /^a2a repair of \S+ requires capability "a2a\.repair\.requeue"\. Grant it with/,
    );
    await refused(repair(work, core.kames), "permission_denied", /requires capability/);
    await refused(repair(work, core.lulu, {}, { task_id: "nothing" }), "permission_denied", /requires/);
    await core.grant(LULU, REQUEUE);
    await refused(forceError(work, core.lulu), "permission_denied", /a2a\.repair\.force_error/);
    const checks = await core.checks();
    assert.deepEqual(
      checks.map(({ actor, data }) => [actor, data["agent_id"], data["passed"], data["missing_actions"]]),
      [
        [LULU, `a2a-repair:${work.task_id}`, false, [REQUEUE]],
        [KAMES, `a2a-repair:${work.task_id}`, false, [REQUEUE]],
        [LULU, "a2a-repair:nothing", false, [REQUEUE]],
        [LULU, `a2a-repair:${work.task_id}`, false, [FORCE]],
      ],
    );
    await isUntouched(work);
  });

  for (const who of ["lulu", "zhiwei"] as const) {
    it(`repairs what it takes part in (${who}), the check and the repair in one commit`, async () => {
      const work = await stuck();
      await using core = work.core;
      const { id } = await core.grant(core[who].agentId, REQUEUE);
      await repair(work, core[who]);
      assert.equal((await core.delivery(work.message_id)).state, "available");
      const { events } = await core.journal.events(core.operator, {});
      const [check, requeued] = events.slice(-2);
      assert.deepEqual(
        [check?.type, check?.data["agent_id"], check?.data["passed"], check?.task_id],
        ["capability_check", `a2a-repair:${work.task_id}`, true, work.task_id],
      );
      assert.deepEqual(check?.data["authorized_by"], [id]);
      assert.deepEqual([requeued?.type, requeued?.actor], ["message.requeued", core[who].agentId]);
    });
  }

  it("ends work with an error where it may", async () => {
    const work = await stuck();
    await using core = work.core;
    await core.grant(LULU, FORCE);
    await forceError(work, core.lulu);
    assert.equal((await core.tasks.get(core.lulu, work.task_id)).state, "failed");
  });

  it("sees neither what is between others nor what is not there, and cannot tell them apart", async () => {
    const work = await stuck();
    await using core = work.core;
    await core.grant(KAMES, REQUEUE);
    const hidden = await refused(
      repair(work, core.kames),
      "not_found",
      /^a2a repair rejected: task \S+ is not visible to the authenticated peer or is no longer queued$/,
    );
    const absent = await refused(repair(work, core.kames, {}, { task_id: "nothing" }), "not_found");
    assert.equal(hidden.message.replace(work.task_id, "nothing"), absent.message);
    await refused(
      core.repairs.repair(core.kames, {
        message_id: work.message_id,
        reason: "x",
        command: { action: "requeue", duplicate_risk: "idempotent" },
      }),
      "not_found",
      /message \S+ is not visible/,
    );
    const checks = await core.checks();
    assert.deepEqual(
      checks.map(({ data }) => data["passed"]),
      [false, false, false],
    );
    await isUntouched(work);
    // The refusals change nothing for those who may.
    await core.grant(LULU, REQUEUE);
    await repair(work, core.lulu);
  });

  const narrow: readonly (readonly [what: string, scope: (work: Stuck) => Promise<object>])[] = [
    ["another peer", async ({ core }) => ({ peer_pubkey_b58: await core.keyOf(KAMES) })],
    ["itself as peer", async ({ core }) => ({ peer_pubkey_b58: await core.keyOf(LULU) })],
    ["another task", async () => ({ task_id: "another" })],
    ["another lease", async () => ({ lease_id: "another" })],
    ["a lease that the request does not name", async ({ lease_id }) => ({ lease_id })],
    ["another posture", async () => ({ duplicate_risk: "idempotent" })],
  ];
  for (const [what, scopeOf] of narrow) {
    it(`is refused by a scope of ${what}; the work stays where it is`, async () => {
      const work = await stuck();
      await using core = work.core;
      await core.grant(LULU, REQUEUE, { scope: await scopeOf(work) });
      await refused(repair(work, core.lulu), "permission_denied", /rejected by capability scope: /);
      const [check] = await core.checks();
      assert.deepEqual([check?.data["passed"], typeof check?.data["reason"]], [false, "string"]);
      await isUntouched(work);
    });
  }

  it("is admitted by a scope of just this", async () => {
    const work = await stuck();
    await using core = work.core;
    const scope = {
      peer_pubkey_b58: await core.keyOf(ZHIWEI),
      task_id: work.task_id,
      lease_id: work.lease_id,
      duplicate_risk: "operator-accepted" as const,
    };
    await core.grant(LULU, REQUEUE, { scope });
    await core.grant(LULU, FORCE, { scope });
    const { lease_id } = work;
    // A posture is about doing it again, which ending it does not.
    await refused(forceError(work, core.lulu, { lease_id }), "permission_denied", /duplicate_risk/);
    await repair(work, core.lulu, { lease_id });
  });

  it("hears of the state before the scope, and of the scope before the lease", async () => {
    const work = await stuck();
    await using core = work.core;
    const { id } = await core.grant(LULU, REQUEUE, { scope: { task_id: "another" } });
    await refused(repair(work, core.lulu, { lease_id: "older" }), "permission_denied", /scope/);
    await core.repairs.repair(core.operator, {
      task_id: work.task_id,
      reason: "x",
      command: { action: "requeue", duplicate_risk: "idempotent" },
    });
    await refused(repair(work, core.lulu), "wrong_state", /is not currently in flight/);
    await core.capabilities.revoke(core.operator, { id });
    const { lease_id } = await core.lease();
    await core.grant(LULU, REQUEUE);
    await refused(
      repair(work, core.lulu, { lease_id: "older" }),
      "lease_lost",
      new RegExp(`lease mismatch for task \\S+: expected older, actual ${lease_id}`),
    );
  });

  it("spends a use for each repair", async () => {
    const work = await stuck();
    await using core = work.core;
    const { id } = await core.grant(LULU, REQUEUE, { scope: { max_uses: 1 } });
    await repair(work, core.lulu);
    assert.equal((await core.row(id)).used, 1);
    await core.lease();
    await refused(repair(work, core.lulu), "permission_denied", /is spent: 1 of 1 uses/);
  });
});

describe("an agent that retries stale work", () => {
  const message = { idempotency: { duplicate_safety: "idempotent", key: "k1" } };
  const policy = { enabled: true, min_lease_age_ms: 0, max_requeues: 10 };

  it("needs the capability, and scans its own only", async () => {
    const work = await stuck(message);
    await using core = work.core;
    await refused(
      core.repairs.retryStale(core.lulu, policy),
      "permission_denied",
      /a2a retry-stale requires/,
    );
    for (const agent of [LULU, KAMES]) await core.grant(agent, REQUEUE);
    const none = await core.repairs.retryStale(core.kames, policy);
    assert.deepEqual([none.considered, none.requeued], [0, []]);
    const report = await core.repairs.retryStale(core.lulu, policy);
    assert.deepEqual(
      report.requeued.map(({ task_id }) => task_id),
      [work.task_id],
    );
    const checks = await core.checks();
    assert.deepEqual(
      checks.map(({ actor, data }) => [actor, data["agent_id"], data["passed"]]),
      [
        [LULU, "a2a-auto-retry", false],
        [KAMES, "a2a-auto-retry", true],
        [LULU, "a2a-auto-retry", true],
        [LULU, `a2a-repair:${work.task_id}`, true],
      ],
    );
  });

  it("leaves what its scope does not cover, and says so", async () => {
    const work = await stuck(message);
    await using core = work.core;
    await core.grant(LULU, REQUEUE, { scope: { task_id: "another" } });
    const report = await core.repairs.retryStale(core.lulu, policy);
    assert.deepEqual(
      report.skipped.map(({ reason }) => reason),
      ["capability_scope_mismatch"],
    );
    await isUntouched(work);
  });

  it("spends a use for what it requeues, not for scanning", async () => {
    const work = await stuck(message);
    await using core = work.core;
    const { id } = await core.grant(LULU, REQUEUE, { scope: { max_uses: 1 } });
    await core.repairs.retryStale(core.lulu, {});
    assert.equal((await core.row(id)).used, 0);
    await core.repairs.retryStale(core.lulu, policy);
    assert.equal((await core.row(id)).used, 1);
    await refused(core.repairs.retryStale(core.lulu, policy), "permission_denied", /is spent/);
  });

  it("is the operator when the clock does it, with a check beside the scan", async () => {
    const work = await stuck(message);
    await using core = work.core;
    const bounds = { min_lease_age_ms: 0, max_attempts: 3, max_requeues: 1, scan_limit: 10 };
    await core.repairs.retryOnSchedule(core.operator, bounds);
    assert.equal((await core.delivery(work.message_id)).state, "available");
    const checks = await core.checks();
    assert.deepEqual(
      checks.map(({ actor, data }) => [actor, data["agent_id"], data["passed"]]),
      [
        ["operator", `a2a-repair:${work.task_id}`, true],
        ["operator", "a2a-auto-retry", true],
      ],
    );
    await core.repairs.retryOnSchedule(core.operator, bounds);
    assert.deepEqual(await core.checks(), []);
  });
});
