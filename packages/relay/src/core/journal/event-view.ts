import { type EventView, formatInstant } from "@a2a-relay/protocol";
import type { EventRecord, EventType } from "../ports/journal.ts";

/** An event as it is shown. All that the hash covers is in it, so that anybody can recompute the hash. */
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
    data: JSON.parse(event.dataJson) as Readonly<Record<string, unknown>>,
    previous_hash: event.previousHash,
    hash: event.hash,
  };
}

/**
 * The event that a view shows. The hashed text of its data is the one that JSON makes of it: whatever
 * `JSON.stringify` wrote once, it writes again after `JSON.parse`.
 */
export function eventOfView(view: EventView): EventRecord {
  return {
    tenant: view.tenant,
    seq: view.seq,
    // Types that a newer relay knows are hashed like any other.
    type: view.type as EventType,
    atMs: Date.parse(view.at),
    actor: view.actor,
    agentId: view.agent ?? null,
    messageId: view.message_id ?? null,
    taskId: view.task_id ?? null,
    threadId: view.thread_id ?? null,
    dataJson: JSON.stringify(view.data),
    previousHash: view.previous_hash,
    hash: view.hash,
  };
}
