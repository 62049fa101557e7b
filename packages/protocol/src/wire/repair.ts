import { type Static, Type } from "typebox";
import { exactly, idSchema, listLimitSchema, reasonSchema } from "../base/schema.ts";
import { DELIVERY_STATES, DUPLICATE_RISKS, type LeaseView } from "../model/delivery.ts";

const id = idSchema;

export const RetryStaleRequestSchema = exactly({
  enabled: Type.Optional(Type.Boolean({ default: false })),
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0, default: 300_000 })),
  max_attempts: Type.Optional(Type.Integer({ minimum: 1, default: 3 })),
  max_requeues: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000, default: 1 })),
  scan_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
});
export type RetryStaleRequest = Static<typeof RetryStaleRequestSchema>;
export type RetryStalePolicy = Required<RetryStaleRequest>;

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

export interface RetryStaleResponse {
  readonly policy: RetryStalePolicy;
  readonly considered: number;
  readonly requeued: readonly {
    readonly message_id: string;
    readonly task_id?: string;
    readonly lease_id: string;
    readonly attempt: number;
    readonly idempotency_key: string;
  }[];
  readonly skipped: readonly {
    readonly message_id: string;
    readonly task_id?: string;
    readonly reason: RetrySkipReason;
    readonly attempt: number;
    readonly lease_age_ms: number;
  }[];
}

export const QueueQuerySchema = exactly({
  state: Type.Optional(Type.Enum(DELIVERY_STATES)),
  agent: Type.Optional(id),
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  deadline_within_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: listLimitSchema,
});
export interface QueueQuery {
  readonly state?: (typeof DELIVERY_STATES)[number];
  readonly agent?: string;
  readonly min_lease_age_ms?: number;
  readonly deadline_within_ms?: number;
  readonly limit?: number;
}

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

export interface QueueEntry {
  readonly message_id: string;
  readonly task_id?: string;
  readonly recipient: string;
  readonly sender: string;
  readonly kind: string;
  readonly subject: string;
  readonly state: string;
  readonly attempt: number;
  readonly duplicate_safety: string;
  readonly accepted_at: string;
  readonly deadline_ms?: number;
  readonly lease_age_ms?: number;
  readonly lease?: LeaseView;
}

export interface QueueResponse {
  readonly entries: readonly QueueEntry[];
  readonly totals: Readonly<Record<string, number>>;
}

export interface RepairResponse {
  readonly message_id: string;
  readonly task_id?: string;
  readonly action: "requeued" | "forced_error";
  readonly state: string;
  readonly attempt: number;
}
