import type { RetryStaleResponse } from "@a2a-relay/protocol";
import type { CommandLine } from "../command-line.ts";
import { formatDuration } from "../duration.ts";
import { given } from "../given.ts";
import { parseCount } from "../option-parsers.ts";
import type { Column } from "../table.ts";
import { visibleLine } from "../terminal-text.ts";

interface RetryStaleOptions {
  readonly enable?: boolean;
  readonly minLeaseAgeMs?: number;
  readonly maxAttempts?: number;
  readonly maxRequeues?: number;
  readonly scanLimit?: number;
}

const SKIPPED: readonly Column<RetryStaleResponse["skipped"][number]>[] = [
  { title: "SKIPPED", text: (item) => item.message_id },
  { title: "REASON", text: (item) => item.reason },
  { title: "ATTEMPT", text: (item) => String(item.attempt) },
  { title: "LEASED FOR", text: (item) => formatDuration(item.lease_age_ms) },
];

export function addRetryStale(line: CommandLine): void {
  line
    .command(
      "retry-stale",
      "Requeue stale leases of work that was declared idempotent. Looks only, unless enabled.",
      ["a2a-relay retry-stale --enable --min-lease-age-ms 600000 --max-requeues 10"],
    )
    .option("--enable", "really requeue")
    .option("--min-lease-age-ms <ms>", "the age from which a lease is stale (default: 300000)", parseCount)
    .option("--max-attempts <n>", "leave what was tried this often (default: 3)", parseCount)
    .option("--max-requeues <n>", "requeue at most this many (default: 1)", parseCount)
    .option("--scan-limit <n>", "look at this many leases, oldest first (default: 100)", parseCount)
    .action(
      line.run<RetryStaleOptions>(async ({ client, output, signal }, options) => {
        const policy = given({
          enabled: options.enable,
          min_lease_age_ms: options.minLeaseAgeMs,
          max_attempts: options.maxAttempts,
          max_requeues: options.maxRequeues,
          scan_limit: options.scanLimit,
        });
        const report = await client.retryStale(policy, { signal });
        await output.show(report, () => [
          `considered ${report.considered}, requeued ${report.requeued.length}, skipped ${report.skipped.length}`,
          ...(report.policy.enabled ? [] : ["nothing was changed; pass --enable to requeue"]),
          ...report.requeued.map((item) =>
            visibleLine(`requeued ${item.message_id}, attempt ${item.attempt}`),
          ),
          ...(report.skipped.length === 0 ? [] : ["", ...output.table(report.skipped, SKIPPED)]),
        ]);
      }),
    );
}
