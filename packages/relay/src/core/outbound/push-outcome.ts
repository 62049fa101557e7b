import { HOW_TO_ALLOW } from "../rules/egress-policy.ts";
import type { OutboundAnswer, OutboundFailure, OutboundFailureCode } from "../ports/outbound-http.ts";

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
