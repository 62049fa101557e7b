import { formatInstant, type ReceiptStage, type ReceiptStep } from "@a2a-relay/protocol";
import type { EventRecord, EventType } from "../ports/journal.ts";

/** Which facts are steps of a message's way. A completed task is a message that was replied to. */
const STAGES: Partial<Record<EventType, ReceiptStage>> = {
  "message.accepted": "accepted",
  "message.noticed": "noticed",
  "message.delivered": "delivered",
  "message.leased": "leased",
  "message.released": "released",
  "message.requeued": "requeued",
  "message.acknowledged": "acknowledged",
  "message.replied": "replied",
  "message.proposal_accepted": "proposal_accepted",
  "message.proposal_declined": "proposal_declined",
  "message.expired": "expired",
  "message.withdrawn": "withdrawn",
  "message.dead": "dead",
  "message.push_failed": "push_failed",
  "task.working": "working",
  "task.input-required": "input-required",
  "task.auth-required": "auth-required",
  "task.handed_off": "handed_off",
  "task.completed": "replied",
  "task.replayed": "replied",
  "task.failed": "failed",
  "task.canceled": "canceled",
  "task.rejected": "rejected",
};

/** Receipts are derived, never stored twice. */
export function receiptsOf(events: readonly EventRecord[]): readonly ReceiptStep[] {
  return events.flatMap((event) => {
    const stage = STAGES[event.type];
    if (stage === undefined) return [];
    const data = JSON.parse(event.dataJson) as { readonly reason?: string; readonly attempt?: number };
    return [
      {
        stage,
        at: formatInstant(event.atMs),
        by: event.actor,
        ...(data.reason === undefined ? {} : { reason: data.reason }),
        ...(data.attempt === undefined ? {} : { attempt: data.attempt }),
      },
    ];
  });
}
