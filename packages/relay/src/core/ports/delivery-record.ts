import type { AgentId, DeliveryState, DuplicateSafety } from "@a2a-relay/protocol";

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
