import type { RetryStaleRequest } from "@a2a-relay/protocol";
import type { Command } from "commander";
import { given } from "../../command-line/given.ts";
import { parseCount } from "../../command-line/options.ts";

export interface RetryPolicyOptions {
  readonly enable?: boolean;
  readonly minLeaseAgeMs?: number;
  readonly maxAttempts?: number;
  readonly maxRequeues?: number;
  readonly scanLimit?: number;
}

/** The bounds of a retry of stale work, the same wherever it is asked for. */
export function addRetryPolicyOptions(command: Command): Command {
  return command
    .option("--enable", "really requeue")
    .option("--min-lease-age-ms <ms>", "the age from which a lease is stale (default: 300000)", parseCount)
    .option("--max-attempts <n>", "leave what was tried this often (default: 3)", parseCount)
    .option("--max-requeues <n>", "requeue at most this many (default: 1)", parseCount)
    .option("--scan-limit <n>", "look at this many leases, oldest first (default: 100)", parseCount);
}

export function retryPolicyOf(options: RetryPolicyOptions): RetryStaleRequest {
  return given({
    enabled: options.enable,
    min_lease_age_ms: options.minLeaseAgeMs,
    max_attempts: options.maxAttempts,
    max_requeues: options.maxRequeues,
    scan_limit: options.scanLimit,
  });
}
