import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { RemoteFailure } from "./remote-failure.ts";

/** What becomes of a message that an agent elsewhere did not answer as it should. */
export function outcomeOf(
  { kind, reason, answer }: RemoteFailure,
  { duplicateSafety }: Pick<DeliveryRecord, "duplicateSafety">,
): PushOutcome {
  const retryAfter = answer?.headers["retry-after"];
  if (kind === "refused") return { kind: "refused", reason, retryAfter, isFinal: true };
  if (kind === "unknown" && duplicateSafety !== "idempotent") {
    return { kind: "unknown", reason: unknownReason(reason) };
  }
  return { kind: "failed", reason, retryAfter };
}

export function unknownReason(reason: string): string {
  return `${reason}; it may have arrived, and is not sent again by itself, as its sender did not call it idempotent`;
}
