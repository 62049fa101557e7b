import { type Static, Type } from "typebox";
import { exactly } from "./exactly.ts";

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
