import { hash } from "node:crypto";
import type { ChainHead, EventDraft, EventRecord } from "../ports/journal.ts";
import { toStoredJson } from "../mechanisms/stored-json.ts";

/** For an error text. */
export function missingEventsText(count: number): string {
  return count === 1 ? "1 event is missing" : `${count} events are missing`;
}

export const GENESIS: ChainHead = { seq: 0, hash: "0".repeat(64) };

/** Appends a fact to the chain. Stores call it inside the commit that writes the change itself. */
export function sealEvent(tenant: string, head: ChainHead, draft: EventDraft): EventRecord {
  const event = {
    tenant,
    seq: head.seq + 1,
    type: draft.type,
    atMs: draft.atMs,
    actor: draft.actor,
    agentId: draft.agentId,
    messageId: draft.messageId,
    taskId: draft.taskId,
    threadId: draft.threadId,
    dataJson: toStoredJson(draft.data),
    previousHash: head.hash,
  };
  return { ...event, hash: eventHash(event) };
}

/** Covers every column, so that an edit of any of them is found. */
export function eventHash(event: Omit<EventRecord, "hash">): string {
  const fields = [
    event.previousHash,
    event.tenant,
    event.seq,
    event.type,
    event.atMs,
    event.actor,
    event.agentId,
    event.messageId,
    event.taskId,
    event.threadId,
    event.dataJson,
  ];
  return hash("sha256", toStoredJson(fields), "hex");
}
