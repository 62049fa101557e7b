import { type Static, Type } from "typebox";
import { type Frozen, instantSchema } from "../base/schema.ts";

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

export const LeaseViewSchema = Type.Object(
  {
    id: Type.String(),
    attempt: Type.Integer(),
    worker: Type.Optional(Type.String()),
    leased_at: instantSchema,
    expires_at: Type.Optional(instantSchema),
  },
  { title: "Lease" },
);
export type LeaseView = Frozen<Static<typeof LeaseViewSchema>>;

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

export const ReceiptStepSchema = Type.Object(
  {
    stage: Type.Enum(RECEIPT_STAGES),
    at: instantSchema,
    by: Type.String(),
    reason: Type.Optional(Type.String()),
    attempt: Type.Optional(Type.Integer()),
  },
  { title: "ReceiptStep" },
);
export type ReceiptStep = Frozen<Static<typeof ReceiptStepSchema>>;

/** The answer to a send. */
export const ReceiptSchema = Type.Object(
  {
    message_id: Type.String(),
    stage: Type.Literal("accepted"),
    recipient: Type.String(),
    thread_id: Type.String(),
    task_id: Type.Optional(Type.String()),
  },
  { title: "Receipt" },
);
export type Receipt = Frozen<Static<typeof ReceiptSchema>>;

export const DeliveryViewSchema = Type.Object(
  {
    message_id: Type.String(),
    recipient: Type.String(),
    state: Type.Enum(DELIVERY_STATES),
    attempt: Type.Integer(),
    delivered_at: Type.Optional(instantSchema),
    expires_at: Type.Optional(instantSchema),
    settled_at: Type.Optional(instantSchema),
    reason: Type.Optional(Type.String()),
    lease: Type.Optional(LeaseViewSchema),
  },
  { title: "Delivery" },
);
export type DeliveryView = Frozen<Static<typeof DeliveryViewSchema>>;
