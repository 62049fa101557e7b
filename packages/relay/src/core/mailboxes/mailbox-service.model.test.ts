import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, isSettled, type MailboxItem, RelayError } from "@a2a-relay/protocol";
import fc from "fast-check";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { DeliveryModel, type ModelDelivery, type Outcome } from "../../../testing/delivery-model.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

/** One step of a history. Numbers pick among what is there, counted from the newest. */
type Act =
  | {
      readonly act: "send";
      readonly agent: Agent;
      readonly kind: Kind;
      readonly safe: boolean;
      readonly ttlMs: number;
    }
  | { readonly act: "resend"; readonly pick: number }
  | { readonly act: "read"; readonly agent: Agent; readonly limit: number }
  | {
      readonly act: "lease";
      readonly agent: Agent;
      readonly max: number;
      readonly leaseMs: number | undefined;
    }
  | { readonly act: "ack" | "fail"; readonly pick: number; readonly bare: boolean }
  | { readonly act: "release" | "renew"; readonly pick: number }
  | {
      readonly act: "requeue" | "forceError";
      readonly pick: number;
      readonly guard: Guard;
      readonly guardPick: number;
    }
  | {
      readonly act: "retryStale";
      readonly minAgeMs: number;
      readonly attempts: number;
      readonly requeues: number;
    }
  | { readonly act: "advance"; readonly ms: number }
  | { readonly act: "sweep" };

type Agent = AgentId;
type Kind = "note" | "alert" | "request" | "status";
type Guard = "none" | "current" | "any";

const agent = fc.constantFrom<Agent>(ZHIWEI, ZHIWEI, LULU);
const pick = fc.nat({ max: 5 });
const leaseMs = fc.constantFrom(undefined, 1_000, 2_000);

const ACT: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant("send" as const),
      agent,
      kind: fc.constantFrom<Kind>("note", "request", "alert", "status"),
      safe: fc.boolean(),
      ttlMs: fc.constantFrom(DAY_MS, DAY_MS, 1_500),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("resend" as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant("read" as const), agent, limit: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant("lease" as const),
      agent,
      max: fc.integer({ min: 1, max: 2 }),
      leaseMs,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constantFrom("ack" as const, "fail" as const), pick, bare: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constantFrom("release" as const, "renew" as const), pick }) },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom("requeue" as const, "requeue" as const, "forceError" as const),
      pick,
      guard: fc.constantFrom<Guard>("none", "current", "any"),
      guardPick: pick,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("retryStale" as const),
      minAgeMs: fc.constantFrom(0, 1_000),
      attempts: fc.integer({ min: 1, max: 3 }),
      requeues: fc.integer({ min: 0, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant("advance" as const), ms: fc.constantFrom(1, 500, 999, 1_000) }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant("sweep" as const) }) },
);

interface Grant {
  readonly messageId: string;
  readonly leaseId: string;
}

interface Sent {
  readonly message: Readonly<Record<string, unknown>>;
  readonly id: string;
}

/** A real core and the model beside it, fed the same acts. */
class History {
  readonly #core: CoreOnMemory;
  readonly #model: DeliveryModel;
  readonly #grants: Grant[] = [];
  readonly #sent: Sent[] = [];

  constructor(core: CoreOnMemory) {
    this.#core = core;
    this.#model = new DeliveryModel(core.clock.nowMs());
  }

  async perform(act: Act): Promise<void> {
    this.#model.beginAct();
    await this.#perform(act);
    await this.#compare();
  }

  async #perform(act: Act): Promise<void> {
    const core = this.#core;
    switch (act.act) {
      case "send":
        return this.#send(act.agent, act.kind, act.safe, act.ttlMs);
      case "resend":
        return this.#resend(act.pick);
      case "read": {
        const expected = this.#model.read(act.agent, act.limit);
        const { messages } = await core.mailboxes.read(core.operator, act.agent, { limit: act.limit });
        return assert.deepEqual(idsOf(messages), expected);
      }
      case "lease":
        return this.#lease(act.agent, act.max, act.leaseMs);
      case "ack":
      case "fail":
        return this.#finish(act.act, this.#grant(act.pick), act.bare);
      case "release":
      case "renew":
        return this.#hold(act.act, this.#grant(act.pick));
      case "requeue":
      case "forceError":
        return this.#repair(act.act, this.#grant(act.pick), act.guard, this.#grant(act.guardPick));
      case "retryStale":
        return this.#retryStale(act.minAgeMs, act.attempts, act.requeues);
      case "advance":
        core.clock.advance(act.ms);
        this.#model.nowMs = core.clock.nowMs();
        return;
      case "sweep":
        this.#model.sweep();
        await core.sweep.step();
    }
  }

  async #send(to: Agent, kind: Kind, safe: boolean, ttlMs: number): Promise<void> {
    const from = to === LULU ? ZHIWEI : LULU;
    const expiresAtMs = this.#model.nowMs + ttlMs;
    const key = `key-${this.#sent.length}`;
    const message = {
      from,
      to,
      type: kind,
      body: "知微你好",
      expires_at: new Date(expiresAtMs).toISOString(),
      ...(safe ? { idempotency: { duplicate_safety: "idempotent", key } } : { idempotency_key: key }),
    };
    const { created, receipt } = await this.#core.messages.send(this.#core.operator, message);
    assert.equal(created, true);
    const id = receipt.message_id;
    this.#sent.push({ message, id });
    const traits = { purpose: kind === "request" ? "work" : "mail", quiet: kind === "status" } as const;
    this.#model.add({ id, agent: to, sender: from, ...traits, idempotent: safe, keyed: true, expiresAtMs });
  }

  async #resend(index: number): Promise<void> {
    const sent = fromNewest(this.#sent, index);
    if (sent === undefined) return;
    const answer = await this.#core.messages.send(this.#core.operator, sent.message);
    assert.deepEqual([answer.created, answer.receipt.message_id], [false, sent.id]);
  }

  async #lease(to: Agent, max: number, ms: number | undefined): Promise<void> {
    const { mailboxes, operator } = this.#core;
    const expected = this.#model.lease(to, max);
    const { messages } = await mailboxes.lease(operator, to, {
      max,
      ...(ms === undefined ? {} : { lease_ms: ms }),
    });
    assert.deepEqual(
      idsOf(messages),
      expected.map(({ id }) => id),
    );
    for (const { message_id: messageId, lease } of messages) {
      this.#model.leased(this.#model.get(messageId), lease.id, ms);
      this.#grants.push({ messageId, leaseId: lease.id });
    }
  }

  async #finish(act: "ack" | "fail", grant: Grant | undefined, bare: boolean): Promise<void> {
    if (grant === undefined) return;
    const { mailboxes, operator } = this.#core;
    const inbox = this.#model.get(grant.messageId);
    const leaseId = bare ? undefined : grant.leaseId;
    const ref = { message_id: inbox.id, ...(leaseId === undefined ? {} : { lease_id: leaseId }) };
    if (act === "fail") {
      const expected = this.#model.fail(inbox, leaseId);
      const done = mailboxes.fail(operator, inbox.agent, { ...ref, reason: "cannot be done" });
      return assert.equal(await outcomeOf(done), expected);
    }
    const counted = inbox.state === "acknowledged" ? 0 : 1;
    const expected = this.#model.acknowledge(inbox, leaseId);
    const request = leaseId === undefined ? { message_ids: [inbox.id] } : { leases: [ref] };
    const { acknowledged, results } = await mailboxes.ack(operator, inbox.agent, request);
    assert.equal(outcomeOfItem(results[0]), expected);
    assert.equal(acknowledged, expected === "ok" ? counted : 0);
  }

  async #hold(act: "release" | "renew", grant: Grant | undefined): Promise<void> {
    if (grant === undefined) return;
    const { mailboxes, operator } = this.#core;
    const inbox = this.#model.get(grant.messageId);
    const leases = [{ message_id: inbox.id, lease_id: grant.leaseId }];
    if (act === "release") {
      const expected = this.#model.release(inbox, grant.leaseId);
      const { results } = await mailboxes.release(operator, inbox.agent, { leases });
      return assert.equal(outcomeOfItem(results[0]), expected);
    }
    const expected = this.#model.renew(inbox, grant.leaseId, 1_000);
    const { results } = await mailboxes.renew(operator, inbox.agent, { leases, lease_ms: 1_000 });
    assert.equal(outcomeOfItem(results[0]), expected);
  }

  async #repair(
    act: "requeue" | "forceError",
    grant: Grant | undefined,
    guard: Guard,
    other: Grant | undefined,
  ): Promise<void> {
    if (grant === undefined) return;
    const { repairs, operator } = this.#core;
    const inbox = this.#model.get(grant.messageId);
    const observed = { none: undefined, current: inbox.leaseId, any: other?.leaseId }[guard];
    const expected =
      act === "requeue" ? this.#model.requeue(inbox, observed) : this.#model.forceError(inbox, observed);
    const lease = observed === undefined ? {} : { lease_id: observed };
    const command =
      act === "requeue"
        ? { action: "requeue", duplicate_risk: "operator_accepted", ...lease }
        : { action: "force_error", message: "the worker is lost", ...lease };
    const done = repairs.repair(operator, { message_id: inbox.id, reason: "it hangs", command });
    assert.equal(await outcomeOf(done), expected);
  }

  async #retryStale(minAgeMs: number, attempts: number, requeues: number): Promise<void> {
    const { repairs, operator } = this.#core;
    const expected = this.#model.retryStale({ minAgeMs, attempts, requeues });
    const policy = {
      enabled: true,
      min_lease_age_ms: minAgeMs,
      max_attempts: attempts,
      max_requeues: requeues,
    };
    const report = await repairs.retryStale(operator, policy);
    assert.deepEqual(
      report.requeued.map(({ message_id }) => message_id),
      expected,
    );
  }

  #grant(index: number): Grant | undefined {
    return fromNewest(this.#grants, index);
  }

  /** Everything the store shows must be what the model says. */
  async #compare(): Promise<void> {
    for (const owner of [LULU, ZHIWEI]) {
      const seen = await this.#core.inboxOf(owner);
      for (const item of seen) if (!this.#model.delivery.has(item.message_id)) this.#meet(owner, item);
      this.#model.settleOrder(owner, idsOf(seen));
      assert.deepEqual(
        idsOf(seen),
        this.#model.readable(owner).map(({ id }) => id),
      );
    }
    assert.deepEqual([...this.#model.effects.untold], [], "a sender was not told");
    for (const delivery of this.#model.delivery.values()) await this.#compareDelivery(delivery);
  }

  /** A message that no act sent must be the one that tells a sender about this act. */
  #meet(owner: string, item: MailboxItem): void {
    const about = item.message.reply_to ?? "";
    assert.ok(
      this.#model.effects.untold.delete(about),
      `an unexpected message: ${JSON.stringify(item.message)}`,
    );
    const original = this.#model.get(about);
    assert.equal(original.sender, owner);
    const expiresAtMs = this.#model.nowMs + 7 * DAY_MS;
    this.#model.tell(original, { id: item.message_id, sender: item.sender_agent_id, expiresAtMs });
  }

  async #compareDelivery(expected: ModelDelivery): Promise<void> {
    const [delivery] = await this.#core.store.deliveries.get(DEFAULT_TENANT, [expected.id]);
    assert.deepEqual(
      [delivery?.state, delivery?.attempt, delivery?.leaseId ?? undefined, delivery?.deliveredAtMs != null],
      [expected.state, expected.attempt, expected.leaseId, expected.delivered],
      expected.id,
    );
    assert.equal(delivery?.settledAtMs != null, isSettled(expected.state));
  }
}

describe("a history of deliveries", () => {
  it("is what the model says, whatever is done in whatever order", async () => {
    const histories = fc.array(ACT, { minLength: 40, maxLength: 140, size: "max" });
    await fc.assert(
      fc.asyncProperty(histories, async (acts) => {
        await using core = await coreOnMemory();
        const history = new History(core);
        for (const act of acts) await history.perform(act);
        await assertJournalHolds(core);
      }),
      { numRuns: 60, plugins: [fc.interruptAfterTimeLimit(8_000)] },
    );
  });
});

/** The same promises once more, read from the journal alone. */
async function assertJournalHolds(core: CoreOnMemory): Promise<void> {
  const { events } = await core.store.journal.events({
    tenant: DEFAULT_TENANT,
    afterSeq: 0,
    type: undefined,
    agentId: undefined,
    threadId: undefined,
    limit: 100_000,
    scanRowsMax: 100_000,
  });
  const attempts = new Map<string, number>();
  const settled = new Set<string>();
  for (const { type, messageId, actor, dataJson } of events) {
    if (messageId === null || !type.startsWith("message.")) continue;
    assert.ok(!settled.has(messageId), `${type} of ${messageId}, which was settled`);
    if (type === "message.leased") {
      const { attempt } = JSON.parse(dataJson) as { readonly attempt: number };
      assert.equal(attempt, (attempts.get(messageId) ?? 0) + 1);
      attempts.set(messageId, attempt);
    }
    if (type === "message.requeued" && actor !== "operator") {
      const [delivery] = await core.store.deliveries.get(DEFAULT_TENANT, [messageId]);
      assert.equal(delivery?.duplicateSafety, "idempotent", "unsafe work was redelivered by itself");
    }
    if (/acknowledged|expired|withdrawn|dead/.test(type)) settled.add(messageId);
  }
  assert.deepEqual((await core.journal.verify(core.operator)).problem, undefined);
}

async function outcomeOf(done: Promise<unknown>): Promise<Outcome> {
  try {
    await done;
    return "ok";
  } catch (reason) {
    if (reason instanceof RelayError) return reason.code;
    throw reason;
  }
}

function outcomeOfItem(
  item:
    | { readonly ok: true }
    | { readonly ok: false; readonly error: { readonly code: Outcome } }
    | undefined,
): Outcome | undefined {
  if (item === undefined) return undefined;
  return item.ok ? "ok" : item.error.code;
}

function idsOf(items: readonly { readonly message_id: string }[]): readonly string[] {
  return items.map(({ message_id }) => message_id);
}

function fromNewest<Item>(items: readonly Item[], index: number): Item | undefined {
  return items.length === 0 ? undefined : items[items.length - 1 - (index % items.length)];
}
