import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { PushRecord } from "../ports/pushes.ts";

/**
 * What becomes of the push of mail that is found behind the cursor; undefined when it stays as it is. MailboxMessage that
 * came back to the mailbox is pushed again, and so is what failed before its endpoint was disabled and enabled.
 */
export function takenUp(
  known: PushRecord | undefined,
  delivery: DeliveryRecord,
  at: { readonly nowMs: number; readonly firstAtMs: number },
): PushRecord | undefined {
  if (known === undefined) return newPush(delivery, at);
  if (known.state === "pending") return undefined;
  // The mark goes when mail comes back, so this is what was delivered and still waits to be acknowledged.
  if (known.state === "delivered" && delivery.deliveredAtMs !== null) return undefined;
  // It may have arrived: only somebody who puts the mail back, or asks for it to be pushed again, decides that it goes.
  if (isLost(known, delivery) && delivery.position <= known.position) return undefined;
  return nextRound(known, delivery, at.firstAtMs);
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

/** Nobody knows whether it has arrived, and it must not arrive twice. */
export function isLost({ sentAtMs }: PushRecord, { duplicateSafety }: DeliveryRecord): boolean {
  return sentAtMs !== null && duplicateSafety !== "idempotent";
}

/** All attempts again. */
export function nextRound(push: PushRecord, { position }: DeliveryRecord, nextAtMs: number): PushRecord {
  const attemptsBefore = push.attempts;
  return { ...push, state: "pending", reason: null, attemptsBefore, position, nextAtMs, sentAtMs: null };
}

/** Why mail is pushed no more; undefined while it waits in its mailbox. */
export function dropReason(delivery: DeliveryRecord | undefined, nowMs: number): string | undefined {
  if (delivery === undefined) return "the message is no longer kept";
  if (delivery.state !== "available") return `the message is ${delivery.state}`;
  return delivery.expiresAtMs <= nowMs ? "the message is expired" : undefined;
}

export function dropped(push: PushRecord, reason: string): PushRecord {
  return { ...push, state: "dropped", reason, nextAtMs: null };
}

export function delivered(push: PushRecord): PushRecord {
  const attempts = push.attempts + 1;
  return { ...push, state: "delivered", reason: null, attempts, nextAtMs: null, sentAtMs: null };
}

/** After one more attempt that failed; without a next one it is given up. */
export function failedOnce(push: PushRecord, reason: string, nextAtMs: number | undefined): PushRecord {
  const tried = { ...push, attempts: push.attempts + 1, sentAtMs: null };
  return nextAtMs === undefined
    ? { ...tried, state: "failed", reason, nextAtMs: null }
    : { ...tried, reason, nextAtMs };
}

/** After an attempt of which nobody knows whether it failed: it is given up, and stays marked. */
export function lost(push: PushRecord, reason: string, nowMs: number): PushRecord {
  return { ...failedOnce(push, reason, undefined), sentAtMs: push.sentAtMs ?? nowMs };
}
