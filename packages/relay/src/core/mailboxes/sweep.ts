import { isTerminal, POSTMASTER } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { MessageDefaults } from "../rules/notices.ts";
import { deliveryEvent, freeReservations } from "../rules/task-changes.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { expire, timeOut } from "../rules/delivery-state.ts";
import { releasedChanges } from "../rules/shared-work.ts";
import { failedTaskChanges, GIVEN_UP_BY_RELAY, undeliveredChanges } from "../rules/undelivered.ts";

export interface SweepSettings {
  readonly messageTtlMs: number;
  readonly leaseAttemptsMax: number;
}

export interface SweepReport {
  readonly expired: number;
  readonly timedOut: number;
  readonly overdue: number;
  /** A full step was needed: there is probably more to do at once. */
  readonly more: boolean;
}

/** Rows handled in one step, so that a sweep never keeps requests waiting. */
const STEP_ROWS = 200;

/** What the clock does by itself: messages expire, leases run out, deadlines pass, held work is released. */
export class Sweep {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #settings: SweepSettings;
  /** Where the next scan of held work starts. */
  #lastHeld: DeliveryRecord | undefined;

  constructor(
    parts: { readonly store: RelayStore; readonly clock: Clock; readonly ids: Identifiers },
    settings: SweepSettings,
  ) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#settings = settings;
  }

  /** One bounded step of each. A row that cannot be settled stops no other: errors are thrown at the end. */
  async step(): Promise<SweepReport> {
    const nowMs = this.#clock.nowMs();
    const failures: unknown[] = [];
    const lapsed = await this.#store.sweeps.lapsed(nowMs, STEP_ROWS);
    const { overdueTasks, timedOut } = lapsed;
    await settleEach(overdueTasks, (task) => this.#fail(task.tenant, task.id), failures);
    await settleEach(timedOut, (delivery) => this.#timeOut(delivery), failures);
    // A message may have expired while it was leased.
    const { expired } = timedOut.length === 0 ? lapsed : await this.#store.sweeps.lapsed(nowMs, STEP_ROWS);
    await settleEach(expired, (delivery) => this.#expire(delivery), failures);
    await this.#releaseHeld(failures);
    if (failures.length > 0) throw unsettled(failures);
    const counts = { expired: expired.length, timedOut: timedOut.length, overdue: overdueTasks.length };
    return { ...counts, more: Object.values(counts).includes(STEP_ROWS) };
  }

  async #expire(observed: DeliveryRecord): Promise<void> {
    await this.#settle(observed, (delivery, { nowMs }) => {
      const open = delivery.state === "held" || delivery.state === "available";
      return open && delivery.expiresAtMs <= nowMs ? expire(delivery, nowMs) : undefined;
    });
  }

  async #timeOut(observed: DeliveryRecord): Promise<void> {
    await this.#settle(observed, (delivery, { nowMs }) => {
      // A result is kept for its requester, however many readers failed.
      const attemptsMax = delivery.purpose === "result" ? Infinity : this.#settings.leaseAttemptsMax;
      return timeOut(delivery, nowMs, attemptsMax);
    });
  }

  /** A bounded number a step, one after the other: each may wait for the one before it. */
  async #releaseHeld(failures: unknown[]): Promise<void> {
    const held = await this.#store.sweeps.heldWork(this.#lastHeld, STEP_ROWS);
    this.#lastHeld = held.length < STEP_ROWS ? undefined : held.at(-1);
    for (const each of held) await settleEach([each], (delivery) => this.#release(delivery), failures);
  }

  async #release({ tenant, messageId }: DeliveryRecord): Promise<void> {
    await decideAndCommit(this.#store, async () => {
      const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
      const parts =
        delivery === undefined ? [] : await releasedChanges(this.#store, this.#defaults(), delivery);
      return { changes: parts.length === 0 ? undefined : combine(tenant, parts), answer: undefined };
    });
  }

  async #settle(
    observed: DeliveryRecord,
    rule: (delivery: DeliveryRecord, defaults: MessageDefaults) => DeliveryRecord | undefined,
  ): Promise<void> {
    const { tenant, messageId } = observed;
    await decideAndCommit(this.#store, async () => {
      const defaults = this.#defaults();
      const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
      const next = delivery === undefined ? undefined : rule(delivery, defaults);
      if (delivery === undefined || next === undefined) return { changes: undefined, answer: undefined };
      if (next.state !== "available") {
        const parts = await undeliveredChanges(this.#store, defaults, next, GIVEN_UP_BY_RELAY);
        return { changes: combine(tenant, parts), answer: undefined };
      }
      const event = deliveryEvent("message.requeued", next, POSTMASTER, defaults.nowMs, {
        reason: "its lease ran out",
        duplicate_risk: "idempotent",
        lease_id: delivery.leaseId,
        attempt: delivery.attempt,
      });
      const freed = await freeReservations(this.#store, delivery);
      return {
        changes: combine(tenant, [{ deliveries: [next], events: [event] }, freed]),
        answer: undefined,
      };
    });
  }

  /** A task that is not finished by its deadline fails; its open deliveries are withdrawn. */
  async #fail(tenant: string, taskId: string): Promise<void> {
    await decideAndCommit(this.#store, async () => {
      const defaults = this.#defaults();
      const [task] = await this.#store.tasks.get(tenant, [taskId]);
      if (task === undefined || isTerminal(task.state) || task.deadlineMs === null) {
        return { changes: undefined, answer: undefined };
      }
      const reason = `not finished by its deadline, ${new Date(task.deadlineMs).toISOString()}`;
      const parts = await failedTaskChanges(this.#store, defaults, task, reason, GIVEN_UP_BY_RELAY);
      return { changes: combine(tenant, parts), answer: undefined };
    });
  }

  #defaults(): MessageDefaults {
    const { messageTtlMs } = this.#settings;
    return { ids: this.#ids, nowMs: this.#clock.nowMs(), messageTtlMs };
  }
}

/** Concurrently; a failure stops no other. */
async function settleEach<Row>(
  rows: readonly Row[],
  settle: (row: Row) => Promise<void>,
  failures: unknown[],
): Promise<void> {
  const outcomes = await Promise.allSettled(rows.map((row) => settle(row)));
  for (const outcome of outcomes) if (outcome.status === "rejected") failures.push(outcome.reason);
}

function unsettled(failures: readonly unknown[]): AggregateError {
  const [first] = failures;
  const why = first instanceof Error ? first.message : String(first);
  return new AggregateError(failures, `the sweep could not settle ${failures.length} of its rows: ${why}`);
}
