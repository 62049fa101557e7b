import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "../../testing/core-on-memory.ts";
import { startBackgroundWork } from "./background-work.ts";

function report(reason: unknown): void {
  assert.fail(String(reason));
}

/** Ends once the sweep has been by, which is seen by mail that it lets expire. */
async function swept(core: CoreOnMemory): Promise<void> {
  const { receipt } = await core.send({ expires_at: new Date(core.clock.nowMs() + 1_000).toISOString() });
  core.clock.advance(1_000);
  const query = { type: "message.expired", wait_ms: 30_000 };
  const { events } = await core.journal.events(core.operator, query);
  assert.equal(events[0]?.message_id, receipt.message_id);
}

describe("what runs by itself", () => {
  it("sweeps: mail expires without anybody asking", async () => {
    await using core = await coreOnMemory();
    await using _ = startBackgroundWork(core, { sweepIntervalMs: 1, retryScheduler: undefined }, report);
    await swept(core);
  });

  it("retries no stale work unless the scheduler is switched on", async () => {
    await using core = await coreOnMemory();
    const messageId = await staleWork(core);
    {
      await using _ = startBackgroundWork(core, { sweepIntervalMs: 1, retryScheduler: undefined }, report);
      await swept(core);
    }
    assert.equal((await core.delivery(messageId)).state, "leased");
    const waiting = core.mailboxes.lease(core.operator, ZHIWEI, { wait_ms: 30_000 });
    const policy = { min_lease_age_ms: 300_000, max_attempts: 3, max_requeues: 1, scan_limit: 100 };
    const retryScheduler = { intervalMs: 1, policy };
    await using _ = startBackgroundWork(core, { sweepIntervalMs: 60_000, retryScheduler }, report);
    assert.equal((await waiting).messages[0]?.lease.attempt, 2);
  });

  it("reports what fails and goes on", async () => {
    await using core = await coreOnMemory();
    const failed = Promise.withResolvers<unknown>();
    const sweep = { step: () => Promise.reject(new Error("the disk is full")) };
    const broken = { ...core, sweep } as unknown as CoreOnMemory;
    await using _ = startBackgroundWork(
      broken,
      { sweepIntervalMs: 1, retryScheduler: undefined },
      failed.resolve,
    );
    assert.match(String(await failed.promise), /disk is full/);
  });
});

/** Idempotent work under a lease that has long been silent. */
async function staleWork(core: CoreOnMemory): Promise<string> {
  await core.send({ idempotency: { duplicate_safety: "idempotent", key: "k1" } });
  const { message_id } = await core.lease();
  core.clock.advance(300_000);
  return message_id;
}
