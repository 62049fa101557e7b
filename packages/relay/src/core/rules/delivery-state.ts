import { type DeliveryState, isSettled, LIMITS, RelayError, formatInstant } from "@a2a-relay/protocol";
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

/** The whole state machine: an act that is not listed for a state is refused. Settled is final. */
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

/** The reason on deliveries of a canceled task: their lease holder is answered `task_canceled`. */
export const CANCELED_REASON = "the task was canceled";

/** A held delivery becomes available. */
export function approve(delivery: DeliveryRecord): DeliveryRecord {
  return { ...moved(delivery, "approve"), reason: null };
}

/** What a store does to each delivery that it leases. */
export function lease(delivery: DeliveryRecord, grant: LeaseGrant): DeliveryRecord {
  return { ...moved(delivery, "lease"), ...grant, attempt: delivery.attempt + 1 };
}

/** Settles a delivery as done. Undefined when the same holder did so before: acknowledging twice is harmless. */
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

/** The holder returns the delivery unfinished. */
export function release(delivery: DeliveryRecord, leaseId: string): DeliveryRecord {
  assertMayFinish(delivery, leaseId);
  return freed(moved(delivery, "release"));
}

/** An operator ends the lease. `observedLeaseId` guards against a newer lease than the operator saw. */
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
 * Ends a lease by the clock alone: only work that its sender declared idempotent, leased for a finite time, becomes
 * available again, and only while attempts remain.
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
 * Fencing: a leased delivery is finished only under its current lease. Once it is available again, its last holder
 * may still finish it while no other worker took over.
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
    `lease ${leaseId} on message ${messageId} is not the current one; its work must not be finished`,
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
    `message ${delivery.messageId} is ${delivery.state}, not leased; only leased messages can be repaired`,
    { details: { state: delivery.state } },
  );
}

function assertObserved(delivery: DeliveryRecord, observedLeaseId: string | undefined): void {
  if (observedLeaseId === undefined || observedLeaseId === delivery.leaseId) return;
  throw new RelayError(
    "lease_lost",
    `message ${delivery.messageId} is under lease ${String(delivery.leaseId)}, not ${observedLeaseId}; list the queue again`,
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

/** Available again. The last lease id stays: its holder may finish until another worker takes over. */
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

/** A delivery as the archive keeps it. */
export function archivedDelivery(delivery: DeliveryRecord): Readonly<Record<string, unknown>> {
  const at = (ms: number | null): string | undefined => (ms === null ? undefined : formatInstant(ms));
  // JSON leaves out what is undefined.
  return {
    recipient: delivery.agentId,
    sender: delivery.sender,
    task_id: delivery.taskId ?? undefined,
    state: delivery.state,
    reason: delivery.reason ?? undefined,
    attempt: delivery.attempt,
    lease_id: delivery.leaseId ?? undefined,
    worker: delivery.worker ?? undefined,
    leased_at: at(delivery.leasedAtMs),
    delivered_at: at(delivery.deliveredAtMs),
    expires_at: at(delivery.expiresAtMs),
    settled_at: at(delivery.settledAtMs),
    duplicate_safety: delivery.duplicateSafety,
    idempotency_key: delivery.idempotencyKey ?? undefined,
  };
}
