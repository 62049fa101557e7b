import type { DeliveryRecord } from "../mailboxes/delivery-record.ts";
import type { PushRecord } from "./push-record.ts";

/**
 * What becomes of the push of mail that is found behind the cursor; undefined when it stays as it is. Mail that
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
    version: 0,
  };
}

/** All attempts again. */
export function nextRound(push: PushRecord, { position }: DeliveryRecord, nextAtMs: number): PushRecord {
  return { ...push, state: "pending", reason: null, attemptsBefore: push.attempts, position, nextAtMs };
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
  return { ...push, state: "delivered", reason: null, attempts: push.attempts + 1, nextAtMs: null };
}

/** After one more attempt that failed; without a next one it is given up. */
export function failedOnce(push: PushRecord, reason: string, nextAtMs: number | undefined): PushRecord {
  const tried = { ...push, attempts: push.attempts + 1 };
  return nextAtMs === undefined
    ? { ...tried, state: "failed", reason, nextAtMs: null }
    : { ...tried, reason, nextAtMs };
}
