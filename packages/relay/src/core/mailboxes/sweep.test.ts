import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const SAFE = { idempotency: { duplicate_safety: "idempotent", key: "k1" } } as const;

describe("expiry", () => {
  it("settles a message at its very millisecond, by default seven days after it came", async () => {
    await using core = await coreOnMemory();
    const week = (await core.send()).receipt.message_id;
    const soon = (await core.send({ expires_at: new Date(core.clock.nowMs() + 1_000).toISOString() })).receipt
      .message_id;
    core.clock.advance(999);
    assert.equal((await core.sweep.step()).expired, 0);
    core.clock.advance(1);
    assert.equal((await core.sweep.step()).expired, 1);
    assert.deepEqual(
      [(await core.delivery(soon)).state, (await core.delivery(week)).state],
      ["expired", "available"],
    );
    core.clock.advance(7 * DAY_MS - 1_001);
    assert.equal((await core.sweep.step()).expired, 0);
    core.clock.advance(1);
    await core.sweep.step();
    assert.equal((await core.delivery(week)).state, "expired");
  });

  it("settles messages that were read too, and never leased ones", async () => {
    await using core = await coreOnMemory();
    const read = (await core.send()).receipt.message_id;
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    await core.send();
    const held = await core.mailboxes.lease(core.operator, ZHIWEI, { max: 2 });
    const [first, second] = held.messages;
    await core.mailboxes.release(core.operator, ZHIWEI, {
      leases: [{ message_id: first?.message_id ?? "", lease_id: first?.lease.id ?? "" }],
    });
    core.clock.advance(8 * DAY_MS);
    await core.sweep.step();
    assert.equal((await core.delivery(read)).state, "expired");
    assert.equal((await core.delivery(second?.message_id ?? "")).state, "leased");
  });

  it("comes when the lease ends, for a message that expired meanwhile", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease();
    core.clock.advance(8 * DAY_MS);
    await core.mailboxes.release(core.operator, ZHIWEI, { leases: [{ message_id, lease_id }] });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
    await core.sweep.step();
    assert.equal((await core.delivery(message_id)).state, "expired");
  });

  it("of a request ends its task, and the result says so", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    core.clock.advance(7 * DAY_MS);
    await core.sweep.step();
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.equal(task.state, "failed");
    const [result] = await core.inboxOf(LULU);
    assert.deepEqual([result?.message.from, result?.message["task_state"]], ["postmaster@relay", "failed"]);
    assert.match(result?.message.body ?? "", /expired at 2026-05-15/);
  });
});

describe("a lease that runs out", () => {
  it("gives idempotent work back by itself, and says why", async () => {
    await using core = await coreOnMemory();
    await core.send(SAFE);
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000 });
    core.clock.advance(1_000);
    assert.equal((await core.sweep.step()).timedOut, 1);
    assert.equal((await core.delivery(message_id)).state, "available");
    const [event] = (await core.journal.events(core.operator, { type: "message.requeued" })).events;
    assert.deepEqual(
      [event?.actor, event?.data],
      [
        "postmaster@relay",
        { reason: "its lease ran out", duplicate_risk: "idempotent", lease_id, attempt: 1 },
      ],
    );
  });

  it("lets the late holder finish what no other worker took over", async () => {
    await using core = await coreOnMemory();
    await core.send(SAFE);
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000 });
    core.clock.advance(5_000);
    await core.sweep.step();
    const ack = { leases: [{ message_id, lease_id }] };
    assert.equal((await core.mailboxes.ack(core.operator, ZHIWEI, ack)).acknowledged, 1);
  });

  it("makes the message dead when its attempts are used up, and tells its sender", async () => {
    await using core = await coreOnMemory({ leaseAttemptsMax: 2 });
    const { receipt } = await core.send(SAFE);
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      assert.equal((await core.lease({ lease_ms: 1_000 })).attempt, attempt);
      core.clock.advance(1_000);
      await core.sweep.step();
    }
    const delivery = await core.delivery(receipt.message_id);
    assert.deepEqual([delivery.state, delivery.attempt], ["dead", 2]);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("never moves unsafe work, nor work leased without an end", async () => {
    await using core = await coreOnMemory();
    await core.send();
    await core.send({ idempotency_key: "short form" });
    await core.send(SAFE);
    await core.lease({ lease_ms: 1_000 });
    await core.lease({ lease_ms: 1_000 });
    await core.lease();
    core.clock.advance(100 * DAY_MS);
    assert.deepEqual(await core.sweep.step(), { expired: 0, timedOut: 0, overdue: 0, more: false });
    assert.equal((await core.repairs.queue(core.operator, { state: "leased" })).entries.length, 3);
  });
});

describe("a deadline", () => {
  it("fails the task at its very millisecond, withdraws its deliveries and tells the requester", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", deadline_ms: core.clock.nowMs() + 1_000 });
    const taskId = receipt.task_id ?? "";
    const { lease_id } = await core.lease();
    core.clock.advance(999);
    assert.equal((await core.sweep.step()).overdue, 0);
    await core.tasks.reportStatus(core.operator, taskId, { state: "working", lease_id });
    core.clock.advance(1);
    await refused(core.tasks.complete(core.operator, taskId, { lease_id }), "task_finished", /was due at/);
    assert.equal((await core.sweep.step()).overdue, 1);
    const task = await core.tasks.get(core.operator, taskId);
    assert.deepEqual([task.state, task.result_status], ["failed", "error"]);
    assert.match(task.status_text ?? "", /deadline, 2026-05-08T12:00:01.000Z/);
    assert.equal((await core.delivery(receipt.message_id)).state, "withdrawn");
    assert.equal((await core.inboxOf(LULU)).length, 1);
    assert.equal((await core.sweep.step()).overdue, 0);
  });

  it("does nothing to a task that is finished", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", deadline_ms: core.clock.nowMs() + 1_000 });
    await core.tasks.complete(core.operator, receipt.task_id ?? "", {});
    core.clock.advance(5_000);
    assert.equal((await core.sweep.step()).overdue, 0);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("may still be canceled before the relay has noticed it", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", deadline_ms: core.clock.nowMs() + 1_000 });
    core.clock.advance(5_000);
    assert.equal((await core.tasks.cancel(core.operator, receipt.task_id ?? "", {})).state, "canceled");
  });
});

describe("a sweep", () => {
  it("takes bounded steps and says when there is more", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 250; index += 1) await core.send();
    core.clock.advance(8 * DAY_MS);
    const first = await core.sweep.step();
    const second = await core.sweep.step();
    assert.deepEqual([first.expired, first.more, second.expired, second.more], [200, true, 50, false]);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });
});

describe("a sweep", () => {
  it("says what it could not settle, and settles all the rest, in this step and in the next", async () => {
    await using core = await coreOnMemory();
    const inASecond = (): number => core.clock.nowMs() + 1_000;
    const bad = (await core.send({ type: "request", deadline_ms: inASecond() })).receipt.task_id ?? "";
    const good = (await core.send({ type: "request", deadline_ms: inASecond() })).receipt.task_id ?? "";
    const old = await core.send({ expires_at: new Date(inASecond()).toISOString() });
    const artifacts = core.store.tasks.artifacts.bind(core.store.tasks);
    core.store.tasks.artifacts = async (tenant, taskId) => {
      if (taskId === bad) throw new Error("这一行坏了");
      return artifacts(tenant, taskId);
    };
    core.clock.advance(1_000);
    const failed = (reason: unknown): boolean =>
      reason instanceof AggregateError &&
      reason.errors.length === 1 &&
      /1 of its rows.*坏了/.test(reason.message);
    await assert.rejects(core.sweep.step(), failed);
    assert.equal((await core.tasks.get(core.operator, good)).state, "failed");
    assert.equal((await core.delivery(old.receipt.message_id)).state, "expired");
    await assert.rejects(core.sweep.step(), failed);
    core.store.tasks.artifacts = artifacts;
    assert.equal((await core.sweep.step()).overdue, 1);
    assert.equal((await core.tasks.get(core.operator, bad)).state, "failed");
  });
});
