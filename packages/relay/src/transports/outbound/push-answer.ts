import type { PushOutcome, PushReport } from "../../core/ports/outbound.ts";
import { HOW_TO_ALLOW } from "../../core/rules/egress-policy.ts";
import { OutboundFailure, type OutboundFailureCode } from "../egress/http-client.ts";
import type { TimedAnswer } from "./outbound-exchange.ts";

/** The 4xx that are about the receiver's state, not about the request. */
export const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/** For senders and the journal. They do not name the host: only the agent and operators may see it. */
export const REASONS: Readonly<Record<OutboundFailureCode, string>> = {
  blocked: `callback_url is at an address that the relay does not call; ${HOW_TO_ALLOW}`,
  unreachable: "there was no connection to the endpoint",
  tls: "TLS with the endpoint failed",
  timeout: "the endpoint gave no whole answer in time",
  protocol: "the endpoint gave no whole HTTP answer",
  aborted: "the request to the endpoint was given up",
};

/** Undefined when the relay stopped it: then it does not count as an attempt. */
export async function reportOf(
  request: Promise<TimedAnswer>,
  signal: AbortSignal,
): Promise<PushReport | undefined> {
  try {
    const answer = await request;
    return { status: answer.status, error: null, answer: answer.text, outcome: outcomeOfAnswer(answer) };
  } catch (reason) {
    if (!(reason instanceof OutboundFailure)) throw reason;
    if (reason.code === "aborted" && signal.aborted) return undefined;
    const outcome = { kind: "failed", reason: REASONS[reason.code], retryAfterMs: 0 } as const;
    return { status: null, error: errorOfFailure(reason), answer: null, outcome };
  }
}

/** Decided by the status alone: the body is for people. */
export function outcomeOfAnswer({
  status,
  retryAfterMs,
}: Pick<TimedAnswer, "status" | "retryAfterMs">): PushOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", reason: "the endpoint answered 410: it is gone" };
  if (status >= 300 && status < 400) {
    const reason = `the endpoint answered ${status}; redirects are not followed, register the new address`;
    return { kind: "failed", reason, retryAfterMs };
  }
  const kind = isRefusal(status) ? "refused" : "failed";
  return { kind, reason: `the endpoint answered ${status}`, retryAfterMs };
}

export function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && !TEMPORARY_STATUSES.has(status);
}

/** For the agent and operators. It names the host and never the URL, which may contain a secret. */
export function errorOfFailure({ code, message }: OutboundFailure): string {
  return code === "blocked" ? REASONS.blocked : message;
}
