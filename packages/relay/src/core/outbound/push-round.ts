import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { PushEndpoint, PushRecord } from "../ports/pushes.ts";

/**
 * The push of a message that is behind the endpoint's cursor; undefined when it stays unchanged. A message that
 * returned to the mailbox is pushed again, and so is one that failed before its endpoint was disabled and enabled.
 */
export function enqueued(
  before: PushRecord | undefined,
  delivery: DeliveryRecord,
  at: { readonly nowMs: number; readonly firstAtMs: number },
): PushRecord | undefined {
  if (before === undefined) return newPush(delivery, at);
  if (before.state === "pending") return undefined;
  // A message that returns to the mailbox loses `deliveredAtMs`, so this one only waits for its acknowledgement.
  if (before.state === "delivered" && delivery.deliveredAtMs !== null) return undefined;
  // It may have arrived: only a requeue or a replay sends it again.
  if (mayHaveArrived(before, delivery) && delivery.position <= before.position) return undefined;
  return nextRound(before, delivery, at.firstAtMs);
}

export function newPush(
  { tenant, messageId, agentId, position }: DeliveryRecord,
  at: { readonly nowMs: number; readonly firstAtMs: number },
): PushRecord {
  return {
    tenant,
    messageId,
    agentId,
    state: "pending",
    reason: null,
    attempts: 0,
    attemptsBefore: 0,
    createdAtMs: at.nowMs,
    position,
    nextAtMs: at.firstAtMs,
    sentAtMs: null,
    version: 0,
  };
}

/** A request to an A2A agent was made, its outcome is unknown, and the message must not arrive twice. */
export function mayHaveArrived({ sentAtMs }: PushRecord, { duplicateSafety }: DeliveryRecord): boolean {
  return sentAtMs !== null && duplicateSafety !== "idempotent";
}

/** Starts all attempts again. */
export function nextRound(push: PushRecord, { position }: DeliveryRecord, nextAtMs: number): PushRecord {
  const attemptsBefore = push.attempts;
  return { ...push, state: "pending", reason: null, attemptsBefore, position, nextAtMs, sentAtMs: null };
}

/** Why the relay no longer pushes the message; undefined while it is available in its mailbox. */
export function dropReason(delivery: DeliveryRecord | undefined, nowMs: number): string | undefined {
  if (delivery === undefined) return "the message is no longer kept";
  if (delivery.state !== "available") return `the message is ${delivery.state}`;
  return delivery.expiresAtMs <= nowMs ? "the message is expired" : undefined;
}

export function dropped(push: PushRecord, reason: string): PushRecord {
  return { ...push, state: "dropped", reason, nextAtMs: null };
}

/** An unknown outcome of a webhook does not matter: its receiver recognizes a repeated message by its id. */
export function repeatable(push: PushRecord, { mode }: PushEndpoint): PushRecord {
  return mode === "webhook" ? { ...push, sentAtMs: null } : push;
}

export function delivered(push: PushRecord): PushRecord {
  const attempts = push.attempts + 1;
  return { ...push, state: "delivered", reason: null, attempts, nextAtMs: null, sentAtMs: null };
}

/** After one more failed attempt. Without `nextAtMs` it was the last. */
export function failedOnce(push: PushRecord, reason: string, nextAtMs: number | undefined): PushRecord {
  const after = { ...push, attempts: push.attempts + 1, sentAtMs: null };
  return nextAtMs === undefined
    ? { ...after, state: "failed", reason, nextAtMs: null }
    : { ...after, reason, nextAtMs };
}

/** After an attempt with an unknown outcome: no more attempts, and `sentAtMs` stays. */
export function failedUnknown(push: PushRecord, reason: string, nowMs: number): PushRecord {
  return { ...failedOnce(push, reason, undefined), sentAtMs: push.sentAtMs ?? nowMs };
}
