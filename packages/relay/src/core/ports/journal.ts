import type { Anchor } from "./archive.ts";
import type { StoredJson } from "./stored-json.ts";

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

/** A fact about to be recorded. It carries digests, never bodies. */
export interface EventDraft {
  readonly type: EventType;
  readonly atMs: number;
  /** The actor: an agent, `operator`, or the postmaster. */
  readonly actor: string;
  /** The agent it happened to: whose mailbox, whose registration. */
  readonly agentId: string | null;
  readonly messageId: string | null;
  readonly taskId: string | null;
  readonly threadId: string | null;
  readonly data: EventData;
}

/** The subject fields of an event that concerns no agent, message or task. */
export const NO_SUBJECT = { agentId: null, messageId: null, taskId: null, threadId: null } as const;

/** A recorded fact with its position in the chain. `dataJson` is the exact text that was hashed. */
export interface EventRecord extends Omit<EventDraft, "data"> {
  readonly tenant: string;
  readonly seq: number;
  readonly dataJson: StoredJson;
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

export interface Chain {
  readonly head: ChainHead;
  /** The last event that retention archived, or the genesis. */
  readonly start: ChainHead;
  /** The last event that the table has, whatever the head says. */
  readonly lastSeq: number;
  /** The newest anchor that any relay on this store has kept outside it. */
  readonly newestAnchor: Anchor | undefined;
}

export interface EventFilter {
  readonly tenant: string;
  readonly afterSeq: number;
  readonly type: string | undefined;
  /** The actor, or the agent it happened to. */
  readonly agentId: string | undefined;
  readonly threadId: string | undefined;
  /** The store finds these without a scan, however far apart they are. */
  readonly taskId?: string | undefined;
  readonly limit: number;
  readonly scanRowsMax: number;
}

export interface EventPage {
  readonly events: readonly EventRecord[];
  /** The last event that was scanned, returned or not: the next page starts after it. */
  readonly lastSeq: number;
  readonly hasMore: boolean;
}

export interface RetirableMessage {
  readonly messageId: string;
  readonly line: Readonly<Record<string, unknown>>;
}

export interface JournalStore {
  events(filter: EventFilter): Promise<EventPage>;
  /** In the order of the chain. */
  ofMessages(tenant: string, messageIds: readonly string[]): Promise<readonly EventRecord[]>;
  chain(tenant: string): Promise<Chain>;
}

/** What retention archives and removes. */
export interface RetentionStore {
  /**
   * Messages settled before the time, whose task (if any) is finished too, oldest first. The age of a message to an
   * agent without a mailbox counts from its acceptance.
   */
  messages(tenant: string, settledBeforeMs: number, limit: number): Promise<readonly RetirableMessage[]>;
  /** The archive lines of these messages, whatever their age; unknown messages are left out. */
  archiveLines(tenant: string, messageIds: readonly string[]): Promise<readonly RetirableMessage[]>;
  /** Deletes messages, their deliveries and their tasks; starts the retention of their send keys; records `event`. */
  retireMessages(
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
    event?: EventDraft,
  ): Promise<void>;
  /** The oldest events before the time, in order. */
  events(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]>;
  /** Removes all events up to and including the anchor, and keeps the anchor. */
  retireEvents(tenant: string, anchor: ChainHead): Promise<void>;
  /** Removes what has expired, in every tenant. Answers how many rows. */
  forgetExpired(times: ExpiryTimes): Promise<number>;
}

export interface ExpiryTimes {
  /** Nonces, cached results and the signing secrets of keys that expired before it. The keys stay. */
  readonly nowMs: number;
  /** Send keys whose message was removed before it. */
  readonly sendKeysBeforeMs: number;
  /** Of a tenant; beyond it the oldest cached results go. */
  readonly cachedResultsMax: number;
}
