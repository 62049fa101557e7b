import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "../../testing/core-on-memory.ts";
import { DEFAULT_TENANT, operatorOf, rootOperator } from "../core/access/principal.ts";
import { CLAIM_MS } from "../core/mechanisms/own-claims.ts";
import { startBackgroundWork } from "./background-work.ts";

/** Runs nothing during a test. */
const NEVER = { sweepIntervalMs: 60_000, anchorIntervalMs: 60_000, retryScheduler: undefined };

function report(reason: unknown): void {
  assert.fail(String(reason));
}

/** Resolves after a sweep, which expires a message. */
async function swept(core: CoreOnMemory): Promise<void> {
  const { receipt } = await core.send({ expires_at: new Date(core.clock.nowMs() + 1_000).toISOString() });
  core.clock.advance(1_000);
  const query = { type: "message.expired", wait_ms: 30_000 };
  const { events } = await core.journal.events(core.operator, query);
  assert.equal(events[0]?.message_id, receipt.message_id);
}

describe("the background work", () => {
  it("sweeps: messages expire without a request", async () => {
    await using core = await coreOnMemory();
    await using _ = startBackgroundWork(core, { ...NEVER, sweepIntervalMs: 1 }, report);
    await swept(core);
  });

  it("keeps an anchor of every journal at once", async () => {
    await using core = await coreOnMemory();
    await using _ = startBackgroundWork(core, NEVER, report);
    await core.anchors.until((await core.store.journal.chain(DEFAULT_TENANT)).head.seq);
  });

  it("keeps an anchor of every journal that changed, at every interval", async () => {
    await using core = await coreOnMemory();
    await using _ = startBackgroundWork(core, { ...NEVER, anchorIntervalMs: 1 }, report);
    const before = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    await core.anchors.until(before.seq);
    const { receipt } = await core.send();
    await core.anchors.until(before.seq + 1);
    const [event] = await core.store.journal.ofMessages(DEFAULT_TENANT, [receipt.message_id]);
    assert.deepEqual(
      core.anchors.kept.map(({ hash }) => hash),
      [before.hash, event?.hash],
    );
  });

  it("renews its claims while it works", async (t) => {
    await using core = await coreOnMemory();
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let renewals = 0;
    const claims = { ...claimsOf(core), renew: async () => void (renewals += 1) };
    const working = { ...core, claims } as unknown as CoreOnMemory;
    await using _ = startBackgroundWork(working, NEVER, report);
    for (let renewal = 0; renewal < 3; renewal += 1) {
      t.mock.timers.tick(CLAIM_MS / 3);
      await core.clock.nextTurn();
    }
    assert.equal(renewals, 3);
  });

  it("retries no stale work unless the scheduler is switched on", async () => {
    await using core = await coreOnMemory();
    const messageId = await staleWork(core);
    {
      await using _ = startBackgroundWork(core, { ...NEVER, sweepIntervalMs: 1 }, report);
      await swept(core);
    }
    assert.equal((await core.delivery(messageId)).state, "leased");
    const waiting = core.mailboxes.lease(core.operator, ZHIWEI, { wait_ms: 30_000 });
    const policy = { min_lease_age_ms: 300_000, max_attempts: 3, max_requeues: 1, scan_limit: 100 };
    const retryScheduler = { intervalMs: 1, policy };
    await using _ = startBackgroundWork(core, { ...NEVER, retryScheduler }, report);
    assert.equal((await waiting).messages[0]?.lease.attempt, 2);
  });

  it("works in every tenant: it finishes removals and retries stale work", async () => {
    await using core = await coreOnMemory();
    const acme = operatorOf("acme");
    await core.keys.create(rootOperator(), { tenant: acme.tenant });
    for (const agent_id of ["lulu@kamac", "kames@桌面", ZHIWEI])
      await core.agents.register(acme, { agent_id });
    const message = { from: "lulu@kamac", to: ZHIWEI, body: "知微你好" };
    const idempotency = { duplicate_safety: "idempotent", key: "k1" };
    await core.messages.send(acme, { ...message, idempotency });
    await core.mailboxes.lease(acme, ZHIWEI, {});
    const { receipt } = await core.messages.send(acme, { ...message, to: "kames@桌面" });
    // As after a crash: the agent is removed, its messages are not withdrawn.
    const leaving = await core.store.agents.get(acme.tenant, "kames@桌面" as typeof ZHIWEI);
    assert.ok(leaving);
    const removed = { ...leaving.agent, removedAtMs: core.clock.nowMs() };
    await core.store.commit({ tenant: acme.tenant, agents: [removed], events: [] });
    core.clock.advance(300_000);
    const waiting = core.mailboxes.lease(acme, ZHIWEI, { wait_ms: 30_000 });
    const policy = { min_lease_age_ms: 300_000, max_attempts: 3, max_requeues: 1, scan_limit: 100 };
    const retryScheduler = { intervalMs: 1, policy };
    await using _ = startBackgroundWork(core, { ...NEVER, retryScheduler }, report);
    assert.equal((await waiting).messages[0]?.lease.attempt, 2);
    const query = { type: "message.withdrawn", wait_ms: 30_000 };
    const { events } = await core.journal.events(acme, query);
    assert.equal(events[0]?.message_id, receipt.message_id);
  });

  it("continues in one tenant when it fails in another", async () => {
    await using core = await coreOnMemory();
    await core.keys.create(rootOperator(), { tenant: "工作室" });
    const done = Promise.withResolvers<string>();
    const failures: unknown[] = [];
    const agents = {
      finishRemovals: async ({ tenant }: { readonly tenant: string }) => {
        if (tenant === DEFAULT_TENANT) throw new Error("the disk is full");
        done.resolve(tenant);
      },
    };
    const broken = { ...core, agents } as unknown as CoreOnMemory;
    await using _ = startBackgroundWork(broken, NEVER, (reason) => failures.push(reason));
    assert.equal(await done.promise, "工作室");
    assert.match(String(failures[0]), /disk is full/);
  });

  it("reports a failure and continues", async () => {
    await using core = await coreOnMemory();
    const failed = Promise.withResolvers<unknown>();
    const sweep = { step: () => Promise.reject(new Error("the disk is full")) };
    const broken = { ...core, sweep } as unknown as CoreOnMemory;
    await using _ = startBackgroundWork(broken, { ...NEVER, sweepIntervalMs: 1 }, failed.resolve);
    assert.match(String(await failed.promise), /disk is full/);
  });
});

function claimsOf({ claims }: CoreOnMemory): Pick<CoreOnMemory["claims"], "take" | "release"> {
  return { take: (units) => claims.take(units), release: (claim) => claims.release(claim) };
}

/** Idempotent work under a stale lease. */
async function staleWork(core: CoreOnMemory): Promise<string> {
  await core.send({ idempotency: { duplicate_safety: "idempotent", key: "k1" } });
  const { message_id } = await core.lease();
  core.clock.advance(300_000);
  return message_id;
}
