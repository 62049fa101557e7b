import type { ChainHead, EventDraft, EventRecord } from "../rules/event.ts";

export interface EventFilter {
  readonly tenant: string;
  readonly afterSeq: number;
  readonly type: string | undefined;
  /** The actor, or the agent it happened to. */
  readonly agentId: string | undefined;
  readonly threadId: string | undefined;
  /** Found without a walk, however far apart they lie. */
  readonly taskId?: string | undefined;
  readonly limit: number;
  readonly scanRowsMax: number;
}

export interface EventPage {
  readonly events: readonly EventRecord[];
  /** The last event looked at, returned or not: where the next page starts. */
  readonly lastSeq: number;
  readonly hasMore: boolean;
}

export interface RetirableMessage {
  readonly messageId: string;
  readonly line: Readonly<Record<string, unknown>>;
}

export interface JournalStore {
  events(filter: EventFilter): Promise<EventPage>;
  eventsOfMessage(tenant: string, messageId: string): Promise<readonly EventRecord[]>;
  chainHead(tenant: string): Promise<ChainHead>;
  /** What retention left behind: the last event that was archived, or the genesis. */
  chainAnchor(tenant: string): Promise<ChainHead>;

  /**
   * MailboxMessage settled before the time, whose task (if any) is finished too, oldest first. A message to somebody
   * without a mailbox is as old as its acceptance.
   */
  retirableMessages(tenant: string, settledBeforeMs: number, limit: number): Promise<readonly RetirableMessage[]>;
  /** What the archive keeps of these messages, whatever their age; those that are gone are left out. */
  archiveLines(tenant: string, messageIds: readonly string[]): Promise<readonly RetirableMessage[]>;
  /** Forgets mail, its delivery, and the task it began; starts the clock of its send keys; records `event`. */
  retireMessages(tenant: string, messageIds: readonly string[], nowMs: number, event?: EventDraft): Promise<void>;
  /** The last event that is really there, whatever the head says. */
  lastEventSeq(tenant: string): Promise<number>;
  /** The oldest events before the time, in order. */
  retirableEvents(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]>;
  /** Forgets all events up to and including the anchor, and remembers it. */
  retireEvents(tenant: string, anchor: ChainHead): Promise<void>;
  /** Send keys whose message went before the time. Answers how many were forgotten. */
  forgetSendKeys(goneBeforeMs: number): Promise<number>;
}
