import { RelayError } from "@a2a-relay/protocol";
import type { SendOutcome } from "../src/core/messages/send-batch.ts";

/** What came of each message of a batch: "created", "seen" for one that was accepted before, or the error's code. */
export function outcomesOf(outcomes: readonly SendOutcome[]): readonly string[] {
  return outcomes.map((outcome) => {
    if (outcome instanceof RelayError) return outcome.code;
    return outcome.created ? "created" : "seen";
  });
}

export function messageIdOf(outcome: SendOutcome | undefined): string {
  return outcome === undefined || outcome instanceof RelayError ? "" : outcome.receipt.message_id;
}
