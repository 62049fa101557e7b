import type { AgentId, DeliveryState, DuplicateSafety, MessageKind } from "@a2a-relay/protocol";
import type { EventDraft } from "./journal.ts";
import type { MessageRecord } from "./messages.ts";

/** The purpose of a delivery: it asks for work, it brings the result of work, or neither. */
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
   * The position in the mailbox, given in commit order each time the delivery becomes available. The store sets it;
   * 0 in a draft.
   */
  readonly position: number;
  readonly deliveredAtMs: number | null;
  readonly attempt: number;
  /** The current lease while leased, else the last one: its holder may finish until another worker takes over. */
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
  /** Hides leases younger than this; other deliveries stay. */
  readonly leasedBeforeMs: number | undefined;
  /** Keeps only deliveries whose task is due by then. */
  readonly deadlineBeforeMs: number | undefined;
  /** Available deliveries of all agents in one order, in which they may be leased. */
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

export interface MailboxStore {
  /**
   * Available, unexpired messages after the position, oldest first, up to the first that does not fit. Expired ones
   * in front of them cost next to nothing.
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
   * Leases the oldest available, unexpired messages in one atomic step, so that two callers never get the same one;
   * records `event` for each. Ends before the first message that does not fit. Expired ones and those reserved for
   * other workers cost next to nothing.
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
  /** The agent with the oldest available, unexpired delivery of this purpose. */
  oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined>;
  /** Held work of all tenants after `after`; from the beginning if that delivery is gone. */
  heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]>;
  countOpen(tenant: string, agentId: AgentId): Promise<number>;
  /** Held and available deliveries that have expired. */
  expiredDeliveries(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]>;
  /** Leased idempotent deliveries whose finite lease has run out. */
  timedOutLeases(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]>;
  /**
   * Without a state: leases first, oldest first, because leases get stuck; then waiting deliveries, oldest first (by
   * expiry for all agents together). Settled deliveries come newest first.
   */
  queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]>;
  /** How many deliveries are in each open state: of one mailbox, or of all of them. */
  countOpenByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>>;
}
