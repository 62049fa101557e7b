/** Open deliveries are held, available or leased; settled deliveries never open again. */
export const OPEN_DELIVERY_STATES = ["held", "available", "leased"] as const;
export const SETTLED_DELIVERY_STATES = ["acknowledged", "expired", "withdrawn", "dead"] as const;
export const DELIVERY_STATES = [...OPEN_DELIVERY_STATES, ...SETTLED_DELIVERY_STATES] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];
export type SettledDeliveryState = (typeof SETTLED_DELIVERY_STATES)[number];

export function isSettled(state: DeliveryState): state is SettledDeliveryState {
  return (SETTLED_DELIVERY_STATES as readonly string[]).includes(state);
}

export const DUPLICATE_RISKS = ["idempotent", "operator_accepted"] as const;
export type DuplicateRisk = (typeof DUPLICATE_RISKS)[number];

export interface LeaseView {
  readonly id: string;
  readonly attempt: number;
  readonly worker?: string;
  readonly leased_at: string;
  readonly expires_at?: string;
}

/** The steps of a message, in the order in which they usually happen. */
export const RECEIPT_STAGES = [
  "accepted",
  "noticed",
  "delivered",
  "leased",
  "released",
  "requeued",
  "acknowledged",
  "working",
  "input-required",
  "auth-required",
  "replied",
  "failed",
  "rejected",
  "canceled",
  "handed_off",
  "proposal_accepted",
  "proposal_declined",
  "expired",
  "withdrawn",
  "dead",
  "push_failed",
] as const;
export type ReceiptStage = (typeof RECEIPT_STAGES)[number];

export interface ReceiptStep {
  readonly stage: ReceiptStage;
  readonly at: string;
  readonly by: string;
  readonly reason?: string;
  readonly attempt?: number;
}

/** The answer to a send. */
export interface Receipt {
  readonly message_id: string;
  readonly stage: "accepted";
  readonly recipient: string;
  readonly thread_id: string;
  readonly task_id?: string;
}

export interface DeliveryView {
  readonly message_id: string;
  readonly recipient: string;
  readonly state: DeliveryState;
  readonly attempt: number;
  readonly delivered_at?: string;
  readonly expires_at?: string;
  readonly settled_at?: string;
  readonly reason?: string;
  readonly lease?: LeaseView;
}
