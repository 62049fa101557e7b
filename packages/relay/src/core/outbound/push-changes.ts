import { POSTMASTER } from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { acknowledge } from "../rules/delivery-state.ts";
import { deliveryEvent } from "../rules/task-changes.ts";
import { afterFailure, type Circuit, CLOSED, leftAlone } from "../rules/circuit-breaker.ts";
import { disabled, isSameEndpoint, whyDropped } from "../registration/push-endpoint.ts";
import { pushEvent } from "../registration/push-event.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { PushEndpoint, PushRecord } from "../ports/pushes.ts";
import { delivered, dropped, failedOnce, lost, nextRound } from "./push-round.ts";
import { nextAttemptAtMs, readRetryAfter } from "./push-schedule.ts";

type FailedOutcome = Exclude<PushOutcome, { readonly kind: "delivered" }>;

/** What is on record at the time that an attempt has ended. */
export interface PushedMessage {
  readonly push: PushRecord;
  readonly delivery: DeliveryRecord | undefined;
  readonly endpoint: PushEndpoint | undefined;
}

/**
 * The message, or the notice of it, has arrived. MailboxMessage that somebody took meanwhile stays as it is. `sent` is the
 * endpoint as it was when the request went out: what was sent is what has arrived.
 */
export function arrivedChanges(
  { push, delivery, endpoint }: PushedMessage,
  sent: PushEndpoint,
  nowMs: number,
): Partial<Changes> {
  const arrived = delivered(push);
  const data = { via: sent.mode, attempt: arrived.attempts };
  const type = sent.isNotice ? "message.noticed" : "message.delivered";
  const isHealed = endpoint !== undefined && isSameEndpoint(endpoint, sent) && isTroubled(endpoint);
  const seen = delivery === undefined || sent.isNotice ? undefined : seenMail(delivery, sent, nowMs);
  return {
    pushes: [arrived],
    pushProgress: isHealed ? [{ ...endpoint, ...CLOSED }] : [],
    deliveries: seen === undefined ? [] : [seen],
    events: [
      ...(delivery === undefined ? [] : [deliveryEvent(type, delivery, POSTMASTER, nowMs, data)]),
      ...(seen?.state === "acknowledged"
        ? [deliveryEvent("message.acknowledged", seen, seen.agentId, nowMs, { via: sent.mode })]
        : []),
    ],
  };
}

/**
 * It is tried again later, or given up; a receiver that is gone is called no more. `sent` is where the request went
 * to: what another address answers says nothing of the endpoint that there is now, and may not be the last word.
 */
export function failedChanges(
  pushed: PushedMessage,
  sent: PushEndpoint,
  outcome: FailedOutcome,
  at: { readonly nowMs: number; readonly offsetsMs: readonly number[] },
): Partial<Changes> {
  const { delivery, endpoint } = pushed;
  const isSame = endpoint !== undefined && isSameEndpoint(endpoint, sent);
  const push = pushAfterFailure(pushed, isSame, outcome, at);
  const events: EventDraft[] = [];
  if (push.state === "failed" && delivery !== undefined) {
    const data = { via: sent.mode, attempt: push.attempts, reason: outcome.reason };
    events.push(deliveryEvent("message.push_failed", delivery, POSTMASTER, at.nowMs, data));
  }
  if (endpoint?.state !== "active" || !isSame || outcome.kind === "refused")
    return { pushes: [push], events };
  if (outcome.kind === "gone") {
    const { reason } = outcome;
    events.push(pushEvent("push.disabled", endpoint, { actor: POSTMASTER, atMs: at.nowMs }, { reason }));
    return { pushes: [push], pushEndpoints: [disabled(endpoint, reason)], events };
  }
  const retryAfter = outcome.kind === "unknown" ? undefined : outcome.retryAfter;
  const circuit = circuitAfter(endpoint, retryAfter, at.nowMs);
  return { pushes: [push], pushProgress: [{ ...endpoint, ...circuit }], events };
}

function pushAfterFailure(
  { push, delivery, endpoint }: PushedMessage,
  isSame: boolean,
  outcome: FailedOutcome,
  { nowMs, offsetsMs }: { readonly nowMs: number; readonly offsetsMs: readonly number[] },
): PushRecord {
  const attempt = push.attempts + 1 - push.attemptsBefore;
  const isGone = isSame && outcome.kind === "gone";
  const retryAfter = isSame && "retryAfter" in outcome ? outcome.retryAfter : undefined;
  const isLast = isGone || (outcome.kind === "refused" && outcome.isFinal === true);
  const nextAtMs = isLast ? undefined : nextAttemptAtMs({ attempt, endedAtMs: nowMs, retryAfter }, offsetsMs);
  const isLost = outcome.kind === "unknown";
  const tried = isLost ? lost(push, outcome.reason, nowMs) : failedOnce(push, outcome.reason, nextAtMs);
  if (endpoint?.state !== "active") {
    return tried.state === "pending" ? dropped(tried, whyDropped(endpoint)) : tried;
  }
  if (tried.state === "pending" || isGone || delivery === undefined) return tried;
  const isBack = delivery.position > push.position;
  return isBack || (!isSame && !isLost) ? nextRound(tried, delivery, nowMs + (offsetsMs[0] ?? 0)) : tried;
}

function circuitAfter(endpoint: PushEndpoint, retryAfter: string | undefined, nowMs: number): Circuit {
  const patienceMs = readRetryAfter(retryAfter, nowMs) ?? 0;
  const circuit = afterFailure(endpoint, nowMs);
  return patienceMs === 0 ? circuit : leftAlone(circuit, nowMs + patienceMs);
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
