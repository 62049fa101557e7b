import { POSTMASTER } from "@a2a-relay/protocol";
import type { Changes } from "../environment/relay-store.ts";
import type { EventDraft } from "../journal/event.ts";
import type { DeliveryRecord } from "../mailboxes/delivery-record.ts";
import { acknowledge } from "../mailboxes/delivery-state.ts";
import { deliveryEvent } from "../tasks/task-changes.ts";
import { afterFailure, CLOSED } from "./circuit.ts";
import { disabled } from "./push-endpoint.ts";
import { pushEvent } from "./push-event.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { PushEndpoint, PushRecord } from "./push-record.ts";
import { delivered, failedOnce } from "./push-round.ts";
import { nextAttemptAtMs } from "./push-schedule.ts";

/** What is on record at the time that an attempt has ended. */
export interface PushedMail {
  readonly push: PushRecord;
  readonly delivery: DeliveryRecord | undefined;
  readonly endpoint: PushEndpoint | undefined;
}

/**
 * The letter, or the notice of it, has arrived. Mail that somebody took meanwhile stays as it is. `sent` is the
 * endpoint as it was when the request went out: what was sent is what has arrived.
 */
export function arrivedChanges(
  { push, delivery, endpoint }: PushedMail,
  sent: PushEndpoint,
  nowMs: number,
): Partial<Changes> {
  const arrived = delivered(push);
  const data = { via: sent.mode, attempt: arrived.attempts };
  const type = sent.isNotice ? "message.noticed" : "message.delivered";
  const seen = delivery === undefined || sent.isNotice ? undefined : seenMail(delivery, sent, nowMs);
  return {
    pushes: [arrived],
    pushProgress: endpoint === undefined || !isTroubled(endpoint) ? [] : [{ ...endpoint, ...CLOSED }],
    deliveries: seen === undefined ? [] : [seen],
    events: [
      ...(delivery === undefined ? [] : [deliveryEvent(type, delivery, POSTMASTER, nowMs, data)]),
      ...(seen?.state === "acknowledged"
        ? [deliveryEvent("message.acknowledged", seen, seen.agentId, nowMs, { via: sent.mode })]
        : []),
    ],
  };
}

/** It is tried again later, or given up; a receiver that is gone is called no more. */
export function failedChanges(
  { push, delivery, endpoint }: PushedMail,
  outcome: Exclude<PushOutcome, { readonly kind: "delivered" }>,
  at: { readonly nowMs: number; readonly offsetsMs: readonly number[] },
): Partial<Changes> {
  const { nowMs, offsetsMs } = at;
  const { reason } = outcome;
  const attempt = push.attempts + 1 - push.attemptsBefore;
  const nextAtMs =
    outcome.kind === "gone"
      ? undefined
      : nextAttemptAtMs({ attempt, endedAtMs: nowMs, retryAfter: outcome.retryAfter }, offsetsMs);
  const failed = failedOnce(push, reason, nextAtMs);
  const events: EventDraft[] = [];
  if (failed.state === "failed" && delivery !== undefined) {
    const data = { via: endpoint?.mode, attempt: failed.attempts, reason };
    events.push(deliveryEvent("message.push_failed", delivery, POSTMASTER, nowMs, data));
  }
  if (endpoint?.state !== "active") return { pushes: [failed], events };
  if (outcome.kind === "gone") {
    events.push(pushEvent("push.disabled", endpoint, { actor: POSTMASTER, atMs: nowMs }, { reason }));
    return { pushes: [failed], pushEndpoints: [disabled(endpoint, reason)], events };
  }
  return { pushes: [failed], pushProgress: [{ ...endpoint, ...afterFailure(endpoint, nowMs) }], events };
}

/** Marked as delivered, or acknowledged where the agent chose that; undefined when nothing of it changes. */
function seenMail(
  delivery: DeliveryRecord,
  { acknowledges }: PushEndpoint,
  nowMs: number,
): DeliveryRecord | undefined {
  if (delivery.state !== "available") return undefined;
  const marked = { ...delivery, deliveredAtMs: delivery.deliveredAtMs ?? nowMs };
  if (acknowledges) return acknowledge(marked, undefined, nowMs);
  return delivery.deliveredAtMs === null ? marked : undefined;
}

function isTroubled({ state, failures, openUntilMs }: PushEndpoint): boolean {
  return state === "active" && (failures > 0 || openUntilMs !== null);
}
