import type { AgentId, DeliveryState, DuplicateSafety, MessageKind } from "@a2a-relay/protocol";
import type { EventDraft } from "./journal.ts";
import type { MessageRecord } from "./messages.ts";
import type { Changes, Clash } from "./relay-store.ts";

/** What a message is for: it asks for work, it brings the result of work, or neither ("mail"). */
export const DELIVERY_PURPOSES = ["work", "result", "mail"] as const;
export type DeliveryPurpose = (typeof DELIVERY_PURPOSES)[number];

/** One message in one mailbox. */
export interface DeliveryRecord {
  readonly tenant: string;
  readonly messageId: string;
  readonly agentId: AgentId;
  readonly sender: AgentId;
  readonly taskId: string | null;
  readonly purpose: DeliveryPurpose;
  readonly state: DeliveryState;
  /**
   * Its position in the mailbox, given in commit order each time it becomes available. The store fills it; 0 in a
   * draft.
   */
  readonly position: number;
  readonly deliveredAtMs: number | null;
  readonly attempt: number;
  /**
   * The current lease while leased, else the last one: its holder may still finish while no other worker took over.
   * Null with an attempt above 0: an operator ended the last lease.
   */
  readonly leaseId: string | null;
  readonly worker: string | null;
  readonly leasedAtMs: number | null;
  readonly leaseExpiresAtMs: number | null;
  /** A follow-up waits for the worker that holds the task. */
  readonly reservedFor: string | null;
  readonly expiresAtMs: number;
  readonly settledAtMs: number | null;
  readonly reason: string | null;
  readonly duplicateSafety: DuplicateSafety;
  readonly idempotencyKey: string | null;
  /** Notices, results, status and heartbeats never cause notices. */
  readonly quiet: boolean;
  readonly threadId: string;
  readonly version: number;
}

/** The lease that one worker is given on one delivery. */
export interface LeaseGrant {
  readonly leaseId: string;
  readonly worker: string | null;
  readonly leasedAtMs: number;
  readonly leaseExpiresAtMs: number | null;
}

/** A delivery together with the message it delivers. */
export interface MailboxMessage {
  readonly delivery: DeliveryRecord;
  readonly message: MessageRecord;
}

export interface MailboxReadQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly afterPosition: number;
  /** Absent: all purposes. */
  readonly purpose?: DeliveryPurpose | undefined;
  readonly limit: number;
  /** The limit for all messages of one answer, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
  readonly nowMs: number;
}

export interface MailboxLeaseQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly worker: string | null;
  /** Absent: all purposes. */
  readonly purpose?: DeliveryPurpose | undefined;
  /** One fresh id for each delivery that may be leased; its length is the most that is leased. */
  readonly leaseIds: readonly string[];
  /** The limit for all messages of one answer, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
  readonly nowMs: number;
  readonly leaseExpiresAtMs: number | null;
}

/** Which open or settled deliveries an operator lists. */
export interface QueueFilter {
  readonly tenant: string;
  readonly agentId: AgentId | undefined;
  /** Sender or recipient. */
  readonly party?: AgentId | undefined;
  /** Absent: all purposes. */
  readonly purpose?: DeliveryPurpose | undefined;
  readonly state: DeliveryState | undefined;
  /** Leaves out younger leases; deliveries that are not leased stay. */
  readonly leasedBeforeMs: number | undefined;
  /** Keeps only deliveries whose task is due by then. */
  readonly deadlineBeforeMs: number | undefined;
  /** Available deliveries of all agents in one list, in the order of their positions. */
  readonly isOneLine?: boolean;
  readonly limit: number;
}

/** A delivery with the few fields of its message that an operator sees. */
export interface QueuedDelivery {
  readonly delivery: DeliveryRecord;
  readonly kind: MessageKind;
  readonly subject: string;
  readonly acceptedAtMs: number;
  /** Of its task. */
  readonly deadlineMs: number | null;
}

/** The mark that a message was read, with its event. */
export interface DeliveredMark {
  readonly messageId: string;
  readonly event: EventDraft;
}

export type LeaseOutcome =
  | { readonly committed: true; readonly messages: readonly MailboxMessage[] }
  | { readonly committed: false; readonly clash: Clash };

export interface DeliveryStore {
  /**
   * Available, unexpired deliveries after the position, oldest first, up to the first message that does not fit.
   * Skipping expired deliveries in front of them is cheap.
   */
  available(query: MailboxReadQuery): Promise<readonly MailboxMessage[]>;
  /** Marks those of the deliveries that are still available and unmarked, and records their events, in one commit. */
  markDelivered(request: {
    readonly tenant: string;
    readonly deliveredAtMs: number;
    readonly marks: readonly DeliveredMark[];
  }): Promise<void>;
  /**
   * Picks the oldest available, unexpired deliveries and leases them in one atomic step, so that two callers never get
   * the same message; records `leasedEvent` for each. Ends before the first message that does not fit. Skipping
   * deliveries that are expired or reserved for other workers is cheap. `changes` are part of the same commit: after a
   * clash nothing is leased.
   */
  lease(query: MailboxLeaseQuery, changes?: Changes): Promise<LeaseOutcome>;
  /** Extends leases without an event: renewals are not journaled. Answers those that were still current. */
  renew(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>>;
  /** As many as ids, in their order. */
  get(tenant: string, messageIds: readonly string[]): Promise<readonly (DeliveryRecord | undefined)[]>;
  openOfTasks(tenant: string, taskIds: readonly string[]): Promise<readonly DeliveryRecord[]>;
  openOfAgent(tenant: string, agentId: AgentId, limit: number): Promise<readonly DeliveryRecord[]>;
  /** The agent whose mailbox holds the oldest available, unexpired delivery of this purpose. */
  oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined>;
  /**
   * Without a state: leases first, oldest first, because they get stuck; then held and available ones, oldest
   * first (the next to expire where all agents are asked for). Settled deliveries come newest first.
   */
  queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]>;
  /** How many deliveries are in each open state: of one mailbox, or of all of them. */
  countByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>>;
}
