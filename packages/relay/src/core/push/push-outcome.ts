import { HOW_TO_ALLOW } from "../environment/egress-policy.ts";
import type { OutboundAnswer, OutboundFailure } from "../environment/outbound.ts";

/** What an attempt came to. */
export type PushOutcome =
  | { readonly kind: "delivered" }
  /** Tried again later, or given up. */
  | { readonly kind: "failed"; readonly reason: string; readonly retryAfter: string | undefined }
  /** The receiver wants no more of it, ever. */
  | { readonly kind: "gone"; readonly reason: string };

/** By its status alone: what a receiver says beyond that is for people. */
export function outcomeOfAnswer({ status, headers }: OutboundAnswer): PushOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", reason: "the endpoint answered 410: it is gone" };
  const retryAfter = headers["retry-after"];
  if (status >= 300 && status < 400) {
    const reason = `the endpoint answered ${status}; redirects are not followed, register the new address`;
    return { kind: "failed", reason, retryAfter };
  }
  return { kind: "failed", reason: `the endpoint answered ${status}`, retryAfter };
}

/** Why there was no answer, in words that senders may read and the journal may keep: a URL may have a secret in it. */
export function outcomeOfFailure({
  code,
  message,
}: OutboundFailure): PushOutcome & { readonly kind: "failed" } {
  const reason = code === "blocked" ? BLOCKED : message;
  return { kind: "failed", reason, retryAfter: undefined };
}

const BLOCKED = `callback_url is at an address that the relay does not call; ${HOW_TO_ALLOW}`;
