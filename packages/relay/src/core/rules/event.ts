import { hash } from "node:crypto";

export const EVENT_TYPES = [
  "access.denied",
  "access.unauthenticated",
  "agent.registered",
  "agent.updated",
  "agent.removed",
  "capability.granted",
  "capability.revoked",
  "capability_check",
  "key.created",
  "key.revoked",
  "key.rotated",
  "message.accepted",
  "message.noticed",
  "message.delivered",
  "message.leased",
  "message.released",
  "message.requeued",
  "message.acknowledged",
  "message.replied",
  "message.proposal_accepted",
  "message.proposal_declined",
  "message.expired",
  "message.withdrawn",
  "message.dead",
  "message.push_failed",
  "task.working",
  "task.input-required",
  "task.auth-required",
  "task.handed_off",
  "task.completed",
  "task.failed",
  "task.canceled",
  "task.rejected",
  "task.replayed",
  "tenant.changed",
  "mail.retired",
  "push.configured",
  "push.disabled",
  "push.removed",
  "push.replayed",
  "push.rotated",
  "retry.scanned",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export type EventData = Readonly<Record<string, unknown>>;

/** What events have to say that happen again and again, written out once. */
export class RecurringData {
  readonly json: string;
  /** The same as a string within JSON. */
  readonly quoted: string;

  constructor(data: EventData) {
    this.json = JSON.stringify(data);
    this.quoted = JSON.stringify(this.json);
  }
}

/** A fact about to be recorded. It carries digests, never bodies. */
export interface EventDraft {
  readonly type: EventType;
  readonly atMs: number;
  /** Who did it: an agent, `operator`, or the postmaster. */
  readonly actor: string;
  /** The agent it happened to: whose mailbox, whose registration. */
  readonly agentId: string | null;
  readonly messageId: string | null;
  readonly taskId: string | null;
  readonly threadId: string | null;
  readonly data: EventData | RecurringData;
}

/** What a fact is about that concerns no agent, message or task in particular. */
export const NO_SUBJECT = { agentId: null, messageId: null, taskId: null, threadId: null } as const;

/** A recorded fact with its place in the chain. `dataJson` is the exact text that was hashed. */
export interface EventRecord extends Omit<EventDraft, "data"> {
  readonly tenant: string;
  readonly seq: number;
  readonly dataJson: string;
  /** The hash of the event before, so that a page of events can be checked by itself. */
  readonly previousHash: string;
  readonly hash: string;
}

/** How `mail.retired` names a message: its id, and the event that had accepted it. */
export type RetiredMessage = readonly [messageId: string, acceptedSeq: number];

/** The end of a tenant's chain: what the next event is hashed onto. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** How many events are not there, for a sentence about it. */
export function missingEventsText(count: number): string {
  return count === 1 ? "1 event is missing" : `${count} events are missing`;
}

export const GENESIS: ChainHead = { seq: 0, hash: "0".repeat(64) };

/** Places a fact behind the head. Stores call it inside the commit that writes the change itself. */
export function sealEvent(tenant: string, head: ChainHead, draft: EventDraft): EventRecord {
  const recurring = draft.data instanceof RecurringData ? draft.data : undefined;
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
    dataJson: recurring?.json ?? JSON.stringify(draft.data),
    previousHash: head.hash,
    hash: "",
  };
  event.hash = eventHash(event, recurring?.quoted);
  return event;
}

/** Every column takes part, so that no edit of any of them goes unseen. */
export function eventHash(event: Omit<EventRecord, "hash">, quotedData?: string): string {
  return hash("sha256", hashedText(event, quotedData), "hex");
}

/** One JSON array; its last item may be known already, as it stands there. */
function hashedText(event: Omit<EventRecord, "hash">, quotedData: string | undefined): string {
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
  ];
  if (quotedData === undefined) return JSON.stringify([...fields, event.dataJson]);
  return `${JSON.stringify(fields).slice(0, -1)},${quotedData}]`;
}
