import type { RetryStaleResponse } from "@a2a-relay/protocol";
import type { CommandLine } from "../../command-line/command-line.ts";
import { formatDuration } from "../../terminal/duration.ts";
import { addRetryPolicyOptions, type RetryPolicyOptions, retryPolicyOf } from "./retry-policy.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/terminal-text.ts";

const SKIPPED: readonly Column<RetryStaleResponse["skipped"][number]>[] = [
  { title: "SKIPPED", text: (item) => item.message_id },
  { title: "REASON", text: (item) => item.reason },
  { title: "ATTEMPT", text: (item) => String(item.attempt) },
  { title: "LEASED FOR", text: (item) => formatDuration(item.lease_age_ms) },
];

export function addRetryStale(line: CommandLine): void {
  const command = line.command(
    "retry-stale",
    "Requeue stale leases of work that was declared idempotent. Looks only, unless enabled.",
    ["a2a-relay retry-stale --enable --min-lease-age-ms 600000 --max-requeues 10"],
  );
  addRetryPolicyOptions(command).action(
    line.run<RetryPolicyOptions>(async ({ client, output, signal }, options) => {
      const report = await client.retryStale(retryPolicyOf(options), { signal });
      await output.show(report, () => [
        `considered ${report.considered}, requeued ${report.requeued.length}, skipped ${report.skipped.length}`,
        ...(report.policy.enabled ? [] : ["nothing was changed; pass --enable to requeue"]),
        ...report.requeued.map((item) => visibleLine(`requeued ${item.message_id}, attempt ${item.attempt}`)),
        ...(report.skipped.length === 0 ? [] : ["", ...output.table(report.skipped, SKIPPED)]),
      ]);
    }),
  );
}
