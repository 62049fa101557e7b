import { type Static, Type } from "typebox";
import {
  exactly,
  type Frozen,
  idSchema,
  instantSchema,
  listLimitSchema,
  reasonSchema,
} from "../base/schema.ts";
import { DELIVERY_STATES, DUPLICATE_RISKS, LeaseViewSchema } from "../model/delivery.ts";

const id = idSchema;

export const RetryStaleRequestSchema = exactly({
  enabled: Type.Optional(Type.Boolean({ default: false })),
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0, default: 300_000 })),
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, default: 3 })),
  max_requeues: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000, default: 1 })),
  scan_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
});
export type RetryStaleRequest = Static<typeof RetryStaleRequestSchema>;

export const RETRY_SKIP_REASONS = [
  "disabled",
  "lease_too_young",
  "missing_idempotency",
  "unsafe_duplicate_safety",
  "max_attempts_reached",
  "limit_reached",
  "capability_scope_mismatch",
  "lease_lost",
] as const;
export type RetrySkipReason = (typeof RETRY_SKIP_REASONS)[number];

/** The policy that was applied. */
export const RetryStalePolicySchema = Type.Object(
  {
    enabled: Type.Boolean(),
    min_lease_age_ms: Type.Integer(),
    max_attempts: Type.Integer(),
    max_requeues: Type.Integer(),
    scan_limit: Type.Integer(),
  },
  { title: "RetryStalePolicy" },
);
export type RetryStalePolicy = Frozen<Static<typeof RetryStalePolicySchema>>;

export const RetryStaleResponseSchema = Type.Object({
  policy: RetryStalePolicySchema,
  considered: Type.Integer(),
  requeued: Type.Array(
    Type.Object({
      message_id: Type.String(),
      task_id: Type.Optional(Type.String()),
      lease_id: Type.String(),
      attempt: Type.Integer(),
      idempotency_key: Type.String(),
    }),
  ),
  skipped: Type.Array(
    Type.Object({
      message_id: Type.String(),
      task_id: Type.Optional(Type.String()),
      reason: Type.Enum(RETRY_SKIP_REASONS),
      attempt: Type.Integer(),
      lease_age_ms: Type.Integer(),
    }),
  ),
});
export type RetryStaleResponse = Frozen<Static<typeof RetryStaleResponseSchema>>;

export const QueueQuerySchema = exactly({
  state: Type.Optional(Type.Enum(DELIVERY_STATES)),
  agent: Type.Optional(id),
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  deadline_within_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: listLimitSchema,
});
export type QueueQuery = Static<typeof QueueQuerySchema>;

export const RepairRequestSchema = exactly({
  message_id: Type.Optional(id),
  task_id: Type.Optional(id),
  reason: reasonSchema,
  command: Type.Union([
    exactly({
      action: Type.Literal("requeue"),
      lease_id: Type.Optional(id),
      duplicate_risk: Type.Enum(DUPLICATE_RISKS),
    }),
    exactly({
      action: Type.Literal("force_error"),
      lease_id: Type.Optional(id),
      message: reasonSchema,
    }),
  ]),
});
export type RepairRequest = Static<typeof RepairRequestSchema>;

export const QueueEntrySchema = Type.Object(
  {
    message_id: Type.String(),
    task_id: Type.Optional(Type.String()),
    recipient: Type.String(),
    sender: Type.String(),
    kind: Type.String(),
    subject: Type.String(),
    state: Type.String(),
    attempt: Type.Integer(),
    duplicate_safety: Type.String(),
    accepted_at: instantSchema,
    deadline_ms: Type.Optional(Type.Integer()),
    lease_age_ms: Type.Optional(Type.Integer()),
    lease: Type.Optional(LeaseViewSchema),
  },
  { title: "QueueEntry" },
);
export type QueueEntry = Frozen<Static<typeof QueueEntrySchema>>;

export const QueueResponseSchema = Type.Object({
  entries: Type.Array(QueueEntrySchema),
  totals: Type.Record(Type.String(), Type.Integer()),
});
export type QueueResponse = Frozen<Static<typeof QueueResponseSchema>>;

export const RepairResponseSchema = Type.Object({
  message_id: Type.String(),
  task_id: Type.Optional(Type.String()),
  action: Type.Enum(["requeued", "forced_error"] as const),
  state: Type.String(),
  attempt: Type.Integer(),
});
export type RepairResponse = Frozen<Static<typeof RepairResponseSchema>>;
