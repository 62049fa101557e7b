import {
  RelayError,
  type RepairRequest,
  type RepairResponse,
  type DuplicateRisk,
  type RetryStaleResponse,
  type RetryStaleRequest,
} from "@a2a-relay/protocol";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatDuration } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/text.ts";

/** Repairs a delivery by the id of its message or of its task. */
async function repairAndShow(
  context: CommandContext,
  id: string,
  repair: Pick<RepairRequest, "reason" | "command">,
): Promise<void> {
  const answer = await repairByEitherId(context, id, repair);
  await context.output.show(answer, () => [
    visibleLine(`${answer.action} ${answer.message_id}: ${answer.state}, attempt ${answer.attempt}`),
  ]);
}

async function repairByEitherId(
  { client, signal }: CommandContext,
  id: string,
  repair: Pick<RepairRequest, "reason" | "command">,
): Promise<RepairResponse> {
  try {
    return await client.repair({ message_id: id, ...repair }, { signal });
  } catch (reason) {
    if (!(reason instanceof RelayError) || reason.code !== "not_found") throw reason;
    return await client.repair({ task_id: id, ...repair }, { signal });
  }
}

export interface RequeueOptions {
  readonly reason: string;
  readonly duplicateRisk: DuplicateRisk;
  readonly leaseId?: string;
}

export function addRequeue(line: CommandLine): void {
  line
    .command(
      "requeue <message-or-task-id>",
      "Take a leased message away from its worker and make it available again.",
      [
        'a2a-relay requeue 01981c5e-0000-7000-8000-000000000000 --reason "worker crashed" --duplicate-risk operator-accepted',
      ],
    )
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .addOption(duplicateRiskOption())
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<RequeueOptions, [string]>(async (context, options, id) => {
        const { reason, duplicateRisk, leaseId } = options;
        const guard = given({ lease_id: leaseId });
        await repairAndShow(context, id, {
          reason,
          command: { action: "requeue", duplicate_risk: duplicateRisk, ...guard },
        });
      }),
    );
}

export function duplicateRiskOption(): Option {
  return new Option(
    "--duplicate-risk <posture>",
    "why doing the work twice is fine: idempotent or operator-accepted",
  )
    .argParser(parseRisk)
    .makeOptionMandatory();
}

function parseRisk(text: string): DuplicateRisk {
  if (text === "idempotent") return text;
  if (text === "operator-accepted" || text === "operator_accepted") return "operator_accepted";
  throw new InvalidArgumentError("Allowed choices are idempotent, operator-accepted.");
}

export interface ForceErrorOptions {
  readonly reason: string;
  readonly message: string;
  readonly leaseId?: string;
}

export function addForceError(line: CommandLine): void {
  line
    .command("force-error <message-or-task-id>", "End a stuck message with an error that its sender gets.", [
      'a2a-relay force-error 01981c5e-0000-7000-8000-000000000000 --reason "worker is gone" --message "not done, please ask again"',
    ])
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .requiredOption("--message <text>", "what the sender is told")
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<ForceErrorOptions, [string]>(async (context, options, id) => {
        const { reason, message, leaseId } = options;
        const guard = given({ lease_id: leaseId });
        await repairAndShow(context, id, { reason, command: { action: "force_error", message, ...guard } });
      }),
    );
}

const SKIPPED: readonly Column<RetryStaleResponse["skipped"][number]>[] = [
  { title: "SKIPPED", text: (item) => item.message_id },
  { title: "REASON", text: (item) => item.reason },
  { title: "ATTEMPT", text: (item) => String(item.attempt) },
  { title: "LEASED FOR", text: (item) => formatDuration(item.lease_age_ms) },
];

export function addRetryStale(line: CommandLine): void {
  const command = line.command(
    "retry-stale",
    "Requeue stale leases of work that was declared idempotent. Changes nothing, unless enabled.",
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

export interface RetryPolicyOptions {
  readonly enable?: boolean;
  readonly minLeaseAgeMs?: number;
  readonly maxAttempts?: number;
  readonly maxRequeues?: number;
  readonly scanLimit?: number;
}

/** The limits of a retry of stale work, for messages and for the task queue. */
export function addRetryPolicyOptions(command: Command): Command {
  return command
    .option("--enable", "really requeue")
    .option("--min-lease-age-ms <ms>", "the age from which a lease is stale (default: 300000)", parseCount)
    .option("--max-attempts <n>", "leave what was tried this often (default: 3)", parseCount)
    .option("--max-requeues <n>", "requeue at most this many (default: 1)", parseCount)
    .option("--scan-limit <n>", "check this many leases, oldest first (default: 100)", parseCount);
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
