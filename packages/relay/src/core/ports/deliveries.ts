import type { AgentId, DeliveryState, DuplicateSafety, MessageKind } from "@a2a-relay/protocol";
import type { EventDraft } from "./journal.ts";
import type { MessageRecord } from "./messages.ts";

/** What mail is for: it asks for work, it brings the result of work, or neither. */
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
   * The place in the mailbox, given in commit order each time the mail becomes available. The store fills
   * it; 0 in a draft.
   */
  readonly position: number;
  readonly deliveredAtMs: number | null;
  readonly attempt: number;
  /** The current lease while leased, else the last one: its holder may still finish if nobody took over. */
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
  /** Absent: all mail. */
  readonly purpose?: DeliveryPurpose | undefined;
  readonly limit: number;
  /** All messages of one answer together, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
  readonly nowMs: number;
}

export interface MailboxLeaseQuery {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly worker: string | null;
  /** Absent: all mail. */
  readonly purpose?: DeliveryPurpose | undefined;
  /** One fresh id for each delivery that may be leased; its length is the most that is leased. */
  readonly leaseIds: readonly string[];
  /** All messages of one answer together, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
  readonly nowMs: number;
  readonly leaseExpiresAtMs: number | null;
}

/** Which open or settled mail an operator looks at. */
export interface QueueFilter {
  readonly tenant: string;
  readonly agentId: AgentId | undefined;
  /** Sender or recipient. */
  readonly party?: AgentId | undefined;
  /** Absent: all mail. */
  readonly purpose?: DeliveryPurpose | undefined;
  readonly state: DeliveryState | undefined;
  /** Hides leases younger than this; other mail stays. */
  readonly leasedBeforeMs: number | undefined;
  /** Keeps only mail whose task is due by then. */
  readonly deadlineBeforeMs: number | undefined;
  /** Available mail of all agents as one line, in the order in which it may be taken. */
  readonly isOneLine?: boolean;
  readonly limit: number;
}

/** A delivery with what an operator sees of its message, which may be long. */
export interface QueuedDelivery {
  readonly delivery: DeliveryRecord;
  readonly kind: MessageKind;
  readonly subject: string;
  readonly acceptedAtMs: number;
  /** Of its task. */
  readonly deadlineMs: number | null;
}

export interface MailboxStore {
  /**
   * Available, unexpired mail after the position, oldest first, up to the first message that does not fit.
   * Expired mail that still lies in front of it costs next to nothing.
   */
  availableMessages(query: MailboxReadQuery): Promise<readonly MailboxMessage[]>;
  /**
   * Marks as delivered those of the messages that are still available and unmarked, and records `event` for
   * each of them, in one commit.
   */
  markDelivered(
    tenant: string,
    messageIds: readonly string[],
    deliveredAtMs: number,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<void>;
  /**
   * Picks the oldest available, unexpired mail and leases it in one atomic step, so that two callers are
   * never handed the same message; records `event` for each. Ends before the first message that does not fit.
   * MailboxMessage in front of it that is expired or kept for other workers costs next to nothing.
   */
  lease(
    query: MailboxLeaseQuery,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<readonly MailboxMessage[]>;
  /** Extends leases without an event: renewals are not journaled. Answers those that were still current. */
  renewLeases(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>>;
  delivery(tenant: string, messageId: string): Promise<DeliveryRecord | undefined>;
  openDeliveriesOfTask(tenant: string, taskId: string): Promise<readonly DeliveryRecord[]>;
  openDeliveriesOfAgent(tenant: string, agentId: AgentId, limit: number): Promise<readonly DeliveryRecord[]>;
  /** Whose mailbox holds the oldest available, unexpired mail of this purpose. */
  oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined>;
  /** Held mail that asks for work, of all tenants, behind `after`, which may be gone: then from the beginning. */
  heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]>;
  countOpen(tenant: string, agentId: AgentId): Promise<number>;
  /** Held and available mail whose time is over. */
  expiredDeliveries(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]>;
  /** Leased idempotent mail whose finite lease has run out. */
  timedOutLeases(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]>;
  /**
   * Without a state: leases first, oldest first, because they are what gets stuck; then what waits, oldest
   * first (the next to expire where all agents are asked for). Settled mail comes newest first.
   */
  queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]>;
  /** How many deliveries are in each open state: of one mailbox, or of all of them. */
  countOpenByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>>;
}
