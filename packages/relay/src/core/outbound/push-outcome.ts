import { POSTMASTER } from "@a2a-relay/protocol";
import { HOW_TO_ALLOW } from "../rules/egress-policy.ts";
import type { OutboundAnswer, OutboundFailure, OutboundFailureCode } from "../ports/outbound-http.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { RemoteReply } from "./remote-interface.ts";
import type { PushAttempt, PushEndpoint, PushRecord } from "../ports/pushes.ts";
import type { EventDraft } from "../ports/journal.ts";
import { acknowledge } from "../rules/delivery-state.ts";
import { deliveryEvent } from "../rules/task-changes.ts";
import { afterFailure, type Circuit, CLOSED, leftAlone } from "../rules/circuit-breaker.ts";
import { disabled, isSameEndpoint, pushEvent, whyDropped } from "../registration/push-endpoint.ts";
import { delivered, dropped, failedOnce, lost, nextRound } from "./push-round.ts";
import { nextAttemptAtMs, readRetryAfter } from "./outbound-schedule.ts";

/** What an attempt came to. */
export type PushOutcome =
  | { readonly kind: "delivered" }
  /** Tried again later, or given up. It is the endpoint that does not work, so it tells of all its messages. */
  | { readonly kind: "failed"; readonly reason: string; readonly retryAfter: string | undefined }
  /** The same, but the receiver works and does not take this message: it tells nothing of any other. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly retryAfter: string | undefined;
      /** It would not take it at any other time either. */
      readonly isFinal?: boolean;
    }
  /** It may have arrived, nobody knows, and it must not be sent twice. */
  | { readonly kind: "unknown"; readonly reason: string }
  /** The receiver wants no more of it, ever. */
  | { readonly kind: "gone"; readonly reason: string };

/** Of 4xx, those that are about the receiver and its time, and not about what it was sent. */
const TROUBLED = new Set([408, 425, 429]);

/** By its status alone: what a receiver says beyond that is for people. */
export function outcomeOfAnswer({ status, headers }: OutboundAnswer): PushOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", reason: "the endpoint answered 410: it is gone" };
  const retryAfter = headers["retry-after"];
  if (status >= 300 && status < 400) {
    const reason = `the endpoint answered ${status}; redirects are not followed, register the new address`;
    return { kind: "failed", reason, retryAfter };
  }
  const isRefused = status >= 400 && status < 500 && !TROUBLED.has(status);
  return { kind: isRefused ? "refused" : "failed", reason: `the endpoint answered ${status}`, retryAfter };
}

/** What senders may read and the journal may keep: where an agent is called is for itself and for operators. */
export const REASONS: Readonly<Record<OutboundFailureCode, string>> = {
  blocked: `callback_url is at an address that the relay does not call; ${HOW_TO_ALLOW}`,
  unreachable: "there was no connection to the endpoint",
  tls: "TLS with the endpoint failed",
  timeout: "the endpoint gave no whole answer in time",
  protocol: "the endpoint gave no whole HTTP answer",
  aborted: "the request to the endpoint was given up",
};

export function outcomeOfFailure({ code }: OutboundFailure): PushOutcome & { readonly kind: "failed" } {
  return { kind: "failed", reason: REASONS[code], retryAfter: undefined };
}

/** The same for the agent itself and for operators: it names the host, and never the URL, which may be a secret. */
export function errorOfFailure({ code, message }: OutboundFailure): string {
  return code === "blocked" ? REASONS.blocked : message;
}

/** One way of calling an agent. There is one for each mode of pushing. */
export interface PushSender {
  /** Undefined when it was stopped before anything came of it: then it counts as not tried. */
  attempt(endpoint: PushEndpoint, mail: MailboxMessage, how: AttemptOptions): Promise<Tried | undefined>;
  /** What is written together with the attempt, beyond what became of the push and of its mail. */
  changesAfter?(recorded: RecordedAttempt): Promise<Partial<Changes>>;
}

export interface AttemptOptions {
  readonly nowMs: number;
  /**
   * Puts on record that from here on the message may arrive, for a request that must not be made twice. False when the
   * message is not to be sent any more.
   */
  readonly announce: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** What came of an attempt. */
export interface Tried extends Pick<PushAttempt, "status" | "error" | "answer"> {
  readonly outcome: PushOutcome;
  /** What an agent elsewhere answered, and where. */
  readonly remote?: RemoteReply;
}

/** An attempt as it is about to be written. */
export interface RecordedAttempt {
  readonly tried: Tried;
  /** As it will be. */
  readonly push: PushRecord;
  /** As it was. */
  readonly delivery: DeliveryRecord | undefined;
  readonly nowMs: number;
}

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
