import type {
  RetrySkipReason,
  RetryStalePolicy,
  RetryStaleRequest,
  RetryStaleResponse,
} from "@a2a-relay/protocol";
import type { DeliveryRecord } from "../ports/deliveries.ts";

/** The result of a scan of stale leases. */
export interface RetryReport {
  readonly policy: RetryStalePolicy;
  readonly considered: number;
  /** As they were while they were leased. */
  readonly requeued: readonly DeliveryRecord[];
  readonly skipped: readonly SkippedLease[];
}

export interface SkippedLease {
  readonly delivery: DeliveryRecord;
  readonly reason: RetrySkipReason;
  readonly leaseAgeMs: number;
}

export function fillPolicy(request: RetryStaleRequest): RetryStalePolicy {
  return {
    enabled: request.enabled ?? false,
    min_lease_age_ms: request.min_lease_age_ms ?? 300_000,
    max_attempts: request.max_attempts ?? 3,
    max_requeues: request.max_requeues ?? 1,
    scan_limit: request.scan_limit ?? 100,
  };
}

/** The first reason that applies. */
export function skipReason(
  delivery: DeliveryRecord,
  policy: RetryStalePolicy,
  nowMs: number,
): RetrySkipReason | undefined {
  if (!policy.enabled) return "disabled";
  if (leaseAgeMs(delivery, nowMs) < policy.min_lease_age_ms) return "lease_too_young";
  if (delivery.idempotencyKey === null) return "missing_idempotency";
  if (delivery.duplicateSafety !== "idempotent") return "unsafe_duplicate_safety";
  if (delivery.attempt >= policy.max_attempts) return "max_attempts_reached";
  return undefined;
}

export function leaseAgeMs(delivery: DeliveryRecord, nowMs: number): number {
  return Math.max(0, nowMs - (delivery.leasedAtMs ?? nowMs));
}

export function viewReport({ policy, considered, requeued, skipped }: RetryReport): RetryStaleResponse {
  return {
    policy,
    considered,
    requeued: requeued.map((delivery) => ({
      ...subjectOf(delivery),
      lease_id: delivery.leaseId ?? "",
      idempotency_key: delivery.idempotencyKey ?? "",
    })),
    skipped: skipped.map(({ delivery, reason, leaseAgeMs: lease_age_ms }) => ({
      ...subjectOf(delivery),
      reason,
      lease_age_ms,
    })),
  };
}

function subjectOf({ messageId, taskId, attempt }: DeliveryRecord): {
  readonly message_id: string;
  readonly task_id?: string;
  readonly attempt: number;
} {
  return { message_id: messageId, ...(taskId === null ? {} : { task_id: taskId }), attempt };
}
