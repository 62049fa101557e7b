import type { OutboundAnswer, OutboundFailure, OutboundFailureCode } from "../ports/outbound-http.ts";
import type { PushOutcome, RetryAfter } from "../ports/pushes.ts";
import { HOW_TO_ALLOW } from "../rules/egress-policy.ts";

/** The 4xx that are about the receiver's state, not about the message. */
const TEMPORARY_STATUSES = new Set([408, 425, 429]);

/** What an answer to a push means. Decided by the status alone: the body is for people. */
export function outcomeOfAnswer({ status, headers }: OutboundAnswer): PushOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", reason: "the endpoint answered 410: it is gone" };
  const retryAfter = readRetryAfter(headers["retry-after"]);
  if (status >= 300 && status < 400) {
    const reason = `the endpoint answered ${status}; redirects are not followed, register the new address`;
    return { kind: "failed", reason, retryAfter };
  }
  const isRefused = status >= 400 && status < 500 && !TEMPORARY_STATUSES.has(status);
  return { kind: isRefused ? "refused" : "failed", reason: `the endpoint answered ${status}`, retryAfter };
}

/** For senders and the journal. They do not name the host: only the agent and operators may see it. */
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

/** For the agent and operators. It names the host and never the URL, which may contain a secret. */
export function errorOfFailure({ code, message }: OutboundFailure): string {
  return code === "blocked" ? REASONS.blocked : message;
}

/** The `Retry-After` header: seconds or an HTTP date. */
export function readRetryAfter(text: string | undefined): RetryAfter | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return { waitMs: Number(text) * 1_000 };
  const untilMs = readHttpDate(text);
  return Number.isNaN(untilMs) ? undefined : { untilMs };
}

/** HTTP dates are in GMT. `Date.parse` alone accepts much more, such as a bare year. */
const HTTP_DATE = /^[A-Z][a-z]+,? .+ (GMT|\d{4})$/;

function readHttpDate(text: string): number {
  const date = text.trim();
  if (!HTTP_DATE.test(date)) return Number.NaN;
  // The asctime form names no zone and means GMT.
  return Date.parse(date.endsWith("GMT") ? date : `${date} GMT`);
}

/** Percent-encodes the characters of an id that a header cannot carry. */
export function headerText(id: string): string {
  return id.replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}
