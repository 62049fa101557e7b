import { type DeliveryState, isSettled, LIMITS, RelayError } from "@a2a-relay/protocol";
import type { DeliveryRecord, LeaseGrant } from "../ports/deliveries.ts";

export const DELIVERY_ACTS = [
  "approve",
  "deny",
  "lease",
  "release",
  "requeue",
  "acknowledge",
  "fail",
  "expire",
  "withdraw",
] as const;
export type DeliveryAct = (typeof DELIVERY_ACTS)[number];

/** The whole machine: an act that is not listed for a state is refused. Settled mail never comes back. */
export const DELIVERY_TRANSITIONS: Readonly<
  Record<DeliveryState, Readonly<Partial<Record<DeliveryAct, DeliveryState>>>>
> = {
  held: { approve: "available", deny: "dead", expire: "expired", withdraw: "withdrawn" },
  available: {
    lease: "leased",
    acknowledge: "acknowledged",
    fail: "dead",
    expire: "expired",
    withdraw: "withdrawn",
  },
  leased: {
    release: "available",
    requeue: "available",
    acknowledge: "acknowledged",
    fail: "dead",
    withdraw: "withdrawn",
  },
  acknowledged: {},
  expired: {},
  withdrawn: {},
  dead: {},
};

/** The reason kept on mail whose task was canceled; its lease holder is told so by name. */
export const CANCELED_REASON = "the task was canceled";

/** Held mail may be taken from now on. */
export function approve(delivery: DeliveryRecord): DeliveryRecord {
  return { ...moved(delivery, "approve"), reason: null };
}

/** What a store does to each delivery it leases, in the one statement that also picks it. */
export function lease(delivery: DeliveryRecord, grant: LeaseGrant): DeliveryRecord {
  return { ...moved(delivery, "lease"), ...grant, attempt: delivery.attempt + 1 };
}

/** Settles mail as done. Undefined when it already was, by the same right: acknowledging twice is harmless. */
export function acknowledge(
  delivery: DeliveryRecord,
  leaseId: string | undefined,
  nowMs: number,
): DeliveryRecord | undefined {
  if (delivery.state === "acknowledged" && (leaseId === undefined || leaseId === delivery.leaseId)) {
    return undefined;
  }
  assertMayFinish(delivery, leaseId);
  return settled(moved(delivery, "acknowledge"), null, nowMs);
}

export function fail(
  delivery: DeliveryRecord,
  leaseId: string | undefined,
  reason: string,
  nowMs: number,
): DeliveryRecord {
  assertMayFinish(delivery, leaseId);
  return settled(moved(delivery, "fail"), reason, nowMs);
}

/** The holder gives the mail back unfinished. */
export function release(delivery: DeliveryRecord, leaseId: string): DeliveryRecord {
  assertMayFinish(delivery, leaseId);
  return freed(moved(delivery, "release"));
}

/** An operator takes the lease away. `observedLeaseId` guards against a newer lease than was looked at. */
export function requeue(delivery: DeliveryRecord, observedLeaseId: string | undefined): DeliveryRecord {
  assertLeased(delivery);
  assertObserved(delivery, observedLeaseId);
  return { ...freed(moved(delivery, "requeue")), leaseId: null };
}

export function forceError(
  delivery: DeliveryRecord,
  observedLeaseId: string | undefined,
  reason: string,
  nowMs: number,
): DeliveryRecord {
  assertLeased(delivery);
  assertObserved(delivery, observedLeaseId);
  return { ...settled(moved(delivery, "fail"), reason, nowMs), leaseId: null };
}

/** An operator ended its last lease: the holder must not finish. A lease that merely ran out keeps its id. */
export function isRevoked({ attempt, leaseId, state }: DeliveryRecord): boolean {
  return attempt > 0 && leaseId === null && state !== "leased";
}

export function expire(delivery: DeliveryRecord, nowMs: number): DeliveryRecord {
  const reason = `not taken before it expired at ${new Date(delivery.expiresAtMs).toISOString()}`;
  return settled(moved(delivery, "expire"), reason, nowMs);
}

export function withdraw(delivery: DeliveryRecord, reason: string, nowMs: number): DeliveryRecord {
  return settled(moved(delivery, "withdraw"), reason, nowMs);
}

/**
 * What the clock alone may do to a lease: only work that its sender declared idempotent, leased for a finite
 * time, goes back by itself, and only while attempts remain.
 */
export function timeOut(
  delivery: DeliveryRecord,
  nowMs: number,
  attemptsMax: number = LIMITS.leaseAttemptsMax,
): DeliveryRecord | undefined {
  if (delivery.state !== "leased" || delivery.duplicateSafety !== "idempotent") return undefined;
  if (delivery.leaseExpiresAtMs === null || delivery.leaseExpiresAtMs > nowMs) return undefined;
  if (delivery.attempt < attemptsMax) return freed(moved(delivery, "requeue"));
  const reason = `its lease ran out without an answer at attempt ${delivery.attempt} of ${attemptsMax}`;
  return settled(moved(delivery, "fail"), reason, nowMs);
}

/**
 * Fencing: leased mail is finished only under its current lease. MailboxMessage that went back and that nobody took
 * over may still be finished by the last holder.
 */
export function assertMayFinish(delivery: DeliveryRecord, leaseId: string | undefined): void {
  const { messageId, state } = delivery;
  if (isSettled(state)) throw settledError(delivery, leaseId);
  if (leaseId === undefined) {
    if (state !== "leased") return;
    throw new RelayError(
      "lease_required",
      `message ${messageId} is leased (attempt ${delivery.attempt}); pass its lease_id to act on it`,
    );
  }
  if (leaseId === delivery.leaseId) return;
  throw new RelayError(
    "lease_lost",
    `lease ${leaseId} on message ${messageId} is not the current one; whatever it did must not be finished`,
    { details: { message_id: messageId, attempt: delivery.attempt } },
  );
}

function settledError(delivery: DeliveryRecord, leaseId: string | undefined): RelayError {
  const { messageId, state, reason } = delivery;
  const details = { message_id: messageId, state };
  if (state === "withdrawn" && reason === CANCELED_REASON) {
    return new RelayError("task_canceled", `the task of message ${messageId} was canceled`, { details });
  }
  if (leaseId !== undefined && leaseId !== delivery.leaseId) {
    return new RelayError("lease_lost", `message ${messageId} was finished under another lease`, { details });
  }
  return new RelayError("wrong_state", `message ${messageId} is already ${state}`, { details });
}

function assertLeased(delivery: DeliveryRecord): void {
  if (delivery.state === "leased") return;
  throw new RelayError(
    "wrong_state",
    `message ${delivery.messageId} is ${delivery.state}, not leased; only leased mail can be repaired`,
    { details: { state: delivery.state } },
  );
}

function assertObserved(delivery: DeliveryRecord, observedLeaseId: string | undefined): void {
  if (observedLeaseId === undefined || observedLeaseId === delivery.leaseId) return;
  throw new RelayError(
    "lease_lost",
    `message ${delivery.messageId} is under lease ${String(delivery.leaseId)}, not ${observedLeaseId}; look again`,
    { details: { expected: observedLeaseId, actual: delivery.leaseId } },
  );
}

function moved(delivery: DeliveryRecord, act: DeliveryAct): DeliveryRecord {
  const state = DELIVERY_TRANSITIONS[delivery.state][act];
  if (state !== undefined) return { ...delivery, state };
  throw new RelayError("wrong_state", `message ${delivery.messageId} is ${delivery.state}: cannot ${act}`);
}

function settled(delivery: DeliveryRecord, reason: string | null, nowMs: number): DeliveryRecord {
  return { ...delivery, reason, settledAtMs: nowMs, leaseExpiresAtMs: null };
}

/** Back in the mailbox. The last lease id stays: its holder may finish until somebody takes over. */
function freed(delivery: DeliveryRecord): DeliveryRecord {
  return {
    ...delivery,
    deliveredAtMs: null,
    worker: null,
    leasedAtMs: null,
    leaseExpiresAtMs: null,
    reservedFor: null,
  };
}
