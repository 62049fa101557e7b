import { type EventView, formatInstant, type ReceiptStage, type ReceiptStep } from "@a2a-relay/protocol";
import type { EventRecord, EventType } from "../ports/journal.ts";
import { eventDataOf, toStoredJson } from "../mechanisms/stored-json.ts";

/** Contains all that the hash covers, so that a reader can recompute the hash. */
export function viewEvent(event: EventRecord): EventView {
  return {
    seq: event.seq,
    type: event.type,
    at: formatInstant(event.atMs),
    tenant: event.tenant,
    actor: event.actor,
    ...(event.agentId === null ? {} : { agent: event.agentId }),
    ...(event.messageId === null ? {} : { message_id: event.messageId }),
    ...(event.taskId === null ? {} : { task_id: event.taskId }),
    ...(event.threadId === null ? {} : { thread_id: event.threadId }),
    data: eventDataOf(event),
    previous_hash: event.previousHash,
    hash: event.hash,
  };
}

/** The event of a view. JSON that was parsed and written again is the text that was hashed. */
export function eventOfView(view: EventView): EventRecord {
  return {
    tenant: view.tenant,
    seq: view.seq,
    // A newer relay may have more types; they hash in the same way.
    type: view.type as EventType,
    atMs: Date.parse(view.at),
    actor: view.actor,
    agentId: view.agent ?? null,
    messageId: view.message_id ?? null,
    taskId: view.task_id ?? null,
    threadId: view.thread_id ?? null,
    dataJson: toStoredJson(view.data),
    previousHash: view.previous_hash,
    hash: view.hash,
  };
}

/** The events that a receipt shows. A completed task counts as a reply. */
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

/** The relay derives receipts from events and does not store them. */
export function receiptsOf(events: readonly EventRecord[]): readonly ReceiptStep[] {
  return events.flatMap((event) => {
    const stage = STAGES[event.type];
    if (stage === undefined) return [];
    const data = eventDataOf(event) as { readonly reason?: string; readonly attempt?: number };
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
