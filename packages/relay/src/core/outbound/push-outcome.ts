import { POSTMASTER } from "@a2a-relay/protocol";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { FailedOutcome, PushReport, SentMessage } from "../ports/outbound.ts";
import type { PushEndpoint, PushRecord } from "../ports/pushes.ts";
import type { Changes } from "../ports/relay-store.ts";
import { disabled, isSameEndpoint, pushEvent, whyDropped } from "../registration/push-endpoint.ts";
import { afterFailure, type Circuit, CLOSED, openedUntil } from "../rules/circuit-breaker.ts";
import { acknowledge } from "../rules/delivery-state.ts";
import { deliveryEvent } from "../rules/task-changes.ts";
import { nextAttemptAtMs } from "./outbound-schedule.ts";
import { delivered, dropped, failedOnce, failedUnknown, nextRound } from "./push-round.ts";

/** Calls an agent in one push mode. */
export interface PushSender {
  /** Undefined when it was stopped before the request had an outcome: then it does not count as an attempt. */
  attempt(
    endpoint: PushEndpoint,
    message: MailboxMessage,
    options: AttemptOptions,
  ): Promise<AttemptReport | undefined>;
  /** What to commit with the attempt, beside the changes of the push and its delivery. */
  changesAfter?(recorded: RecordedAttempt): Promise<Partial<Changes>>;
}

export interface AttemptOptions {
  readonly nowMs: number;
  /**
   * Announces the request under the claim, before it is made: from now on the message may have arrived. False when the
   * message must no longer be sent.
   */
  readonly markSent: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface AttemptReport extends PushReport {
  /** What a remote agent answered, and at which of its interfaces. */
  readonly remote?: Pick<SentMessage, "at" | "reply">;
}

/** An attempt that is about to be committed. */
export interface RecordedAttempt {
  readonly report: AttemptReport;
  /** After the attempt. */
  readonly push: PushRecord;
  /** Before the attempt. */
  readonly delivery: DeliveryRecord | undefined;
  readonly nowMs: number;
}

/** The records at the end of an attempt. */
export interface PushedMessage {
  readonly push: PushRecord;
  readonly delivery: DeliveryRecord | undefined;
  readonly endpoint: PushEndpoint | undefined;
}

/**
 * The message, or the notice of it, arrived at `sent`: the endpoint as it was when the request was made. A delivery
 * that is no longer available stays unchanged.
 */
export function arrivedChanges(
  { push, delivery, endpoint }: PushedMessage,
  sent: PushEndpoint,
  nowMs: number,
): Partial<Changes> {
  const arrived = delivered(push);
  const data = { via: sent.mode, attempt: arrived.attempts };
  const type = sent.isNotice ? "message.noticed" : "message.delivered";
  const isHealed = endpoint !== undefined && isSameEndpoint(endpoint, sent) && hasFailures(endpoint);
  const changed =
    delivery === undefined || sent.isNotice ? undefined : deliveryAfterArrival(delivery, sent, nowMs);
  return {
    pushes: [arrived],
    pushProgress: isHealed ? [{ ...endpoint, ...CLOSED }] : [],
    deliveries: changed === undefined ? [] : [changed],
    events: [
      ...(delivery === undefined ? [] : [deliveryEvent(type, delivery, POSTMASTER, nowMs, data)]),
      ...(changed?.state === "acknowledged"
        ? [deliveryEvent("message.acknowledged", changed, changed.agentId, nowMs, { via: sent.mode })]
        : []),
    ],
  };
}

/**
 * Schedules the next attempt, or gives up; disables an endpoint that is gone. The answer of an endpoint that has
 * changed since the request (`sent`) neither changes the new endpoint nor ends the push.
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
  const retryAfterMs = outcome.kind === "unknown" ? 0 : outcome.retryAfterMs;
  const circuit = circuitAfter(endpoint, retryAfterMs, at.nowMs);
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
  const retryAfterMs = isSame && "retryAfterMs" in outcome ? outcome.retryAfterMs : 0;
  const isLast = isGone || (outcome.kind === "refused" && outcome.isFinal === true);
  const nextAtMs = isLast
    ? undefined
    : nextAttemptAtMs({ attempt, endedAtMs: nowMs, retryAfterMs }, offsetsMs);
  const isUnknown = outcome.kind === "unknown";
  const after = isUnknown
    ? failedUnknown(push, outcome.reason, nowMs)
    : failedOnce(push, outcome.reason, nextAtMs);
  if (endpoint?.state !== "active") {
    return after.state === "pending" ? dropped(after, whyDropped(endpoint)) : after;
  }
  if (after.state === "pending" || isGone || delivery === undefined) return after;
  const hasReturned = delivery.position > push.position;
  const isNextRound = hasReturned || (!isSame && !isUnknown);
  return isNextRound ? nextRound(after, delivery, nowMs + (offsetsMs[0] ?? 0)) : after;
}

function circuitAfter(endpoint: PushEndpoint, retryAfterMs: number, nowMs: number): Circuit {
  const circuit = afterFailure(endpoint, nowMs);
  return retryAfterMs === 0 ? circuit : openedUntil(circuit, nowMs + retryAfterMs);
}

/** Delivered, or acknowledged where the agent chose that; undefined when the delivery stays unchanged. */
function deliveryAfterArrival(
  delivery: DeliveryRecord,
  { acknowledges }: PushEndpoint,
  nowMs: number,
): DeliveryRecord | undefined {
  if (delivery.state !== "available") return undefined;
  const marked = { ...delivery, deliveredAtMs: delivery.deliveredAtMs ?? nowMs };
  if (acknowledges) return acknowledge(marked, undefined, nowMs);
  return delivery.deliveredAtMs === null ? marked : undefined;
}

function hasFailures({ state, failures, openUntilMs }: PushEndpoint): boolean {
  return state === "active" && (failures > 0 || openUntilMs !== null);
}
