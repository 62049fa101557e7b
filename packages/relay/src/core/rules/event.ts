import { hash } from "node:crypto";
import type { ChainHead, EventDraft, EventRecord } from "../ports/journal.ts";

/** How many events are not there, for a sentence about it. */
export function missingEventsText(count: number): string {
  return count === 1 ? "1 event is missing" : `${count} events are missing`;
}

export const GENESIS: ChainHead = { seq: 0, hash: "0".repeat(64) };

/** Places a fact behind the head. Stores call it inside the commit that writes the change itself. */
export function sealEvent(tenant: string, head: ChainHead, draft: EventDraft): EventRecord {
  const { data, ...fields } = draft;
  const event = {
    ...fields,
    tenant,
    seq: head.seq + 1,
    dataJson: JSON.stringify(data),
    previousHash: head.hash,
  };
  return { ...event, hash: eventHash(event) };
}

/** Every column takes part, so that no edit of any of them goes unseen. */
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
  return hash("sha256", JSON.stringify(fields), "hex");
}
