import type { QueueRepairRequest, QueueState } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import {
  duplicateRiskOption,
  type ForceErrorOptions,
  type RequeueOptions,
  addRetryPolicyOptions,
  type RetryPolicyOptions,
  retryPolicyOf,
} from "../operate/repair.ts";
import { addHeadersOption, callAgent, type CallOptions } from "./called-agent.ts";
import { a2aCardLines } from "./card-text.ts";
import { addA2aSend } from "./send.ts";
import { addA2aTasks } from "./tasks.ts";

interface StatusOptions {
  readonly limit: number;
  readonly minLeaseAgeMs?: number;
  readonly deadlineWithinMs?: number;
  readonly state?: QueueState;
}

const LIMIT_DEFAULT = 10;

/**
 * Calls A2A agents, and shows and repairs the task queue of `/a2a/`. The queue is printed for programs: lines of JSON
 * in the shapes of the wire.
 */
export function addA2a(line: CommandLine): void {
  const a2a = line.command(
    "a2a",
    "Call A2A agents of the relay and of others; show the task queue of /a2a/ and repair it.",
    [
      'a2a-relay a2a send zhiwei@known-blocks1 "翻译这份合同" --stream',
      "a2a-relay a2a card https://agent.example.org",
      "a2a-relay a2a status --state in_flight --min-lease-age-ms 300000",
    ],
  );
  a2a.commandsGroup("Agents:");
  addA2aCard(line, a2a);
  addA2aSend(line, a2a);
  addA2aTasks(line, a2a);
  a2a.commandsGroup("Task queue:");
  addStatus(line, a2a);
  addRequeue(line, a2a);
  addForceError(line, a2a);
  addRetryStale(line, a2a);
  addCompact(line, a2a);
}

function addStatus(line: CommandLine, parent: Command): void {
  line
    .command(
      "status",
      "Print queued tasks, leases and pending results, a line of JSON each; with --json one object.",
      ["a2a-relay a2a status --min-lease-age-ms 300000 --json"],
      { parent },
    )
    .option("-n, --limit <n>", "at most this many tasks, and as many results", parseCount, LIMIT_DEFAULT)
    .option("--min-lease-age-ms <ms>", "hide leases younger than this", parseCount)
    .option("--deadline-within-ms <ms>", "only tasks that are due within this time", parseCount)
    .option("--state <state>", "only tasks that are queued or in_flight", parseState)
    .action(
      line.run<StatusOptions>(async ({ client, output, signal }, options) => {
        const query = given({
          limit: options.limit,
          min_lease_age_ms: options.minLeaseAgeMs,
          deadline_within_ms: options.deadlineWithinMs,
          state_filter: options.state,
        });
        const { kind: _, ...queue } = await client.taskQueue.queue(query, { signal });
        const rows = [
          ...queue.tasks.map((entry) => ({ type: "task", entry })),
          ...queue.results.map((result) => ({ type: "result", result })),
        ];
        await output.show({ kind: "a2a_status", ...queue }, () =>
          rows.length === 0 ? ["(a2a queue empty)"] : rows.map((row) => JSON.stringify(row)),
        );
      }),
    );
}

function addRequeue(line: CommandLine, parent: Command): void {
  line
    .command(
      "requeue <task-id>",
      "Take a task away from its worker and put it back into the queue.",
      ['a2a-relay a2a requeue TASK --reason "worker crashed" --duplicate-risk operator-accepted'],
      { parent },
    )
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .addOption(duplicateRiskOption())
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<RequeueOptions, [string]>(async (context, { reason, duplicateRisk, leaseId }, id) => {
        const guard = given({ lease_id: leaseId });
        const command = { action: "requeue", duplicate_risk: duplicateRisk, ...guard } as const;
        await repairAndPrint(context, { task_id: id, reason, command });
      }),
    );
}

function addForceError(line: CommandLine, parent: Command): void {
  line
    .command(
      "force-error <task-id>",
      "End a stuck task with an error that its sender gets.",
      ['a2a-relay a2a force-error TASK --reason "worker is gone" --message "not done, please ask again"'],
      { parent },
    )
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .requiredOption("--message <text>", "what the sender is told")
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<ForceErrorOptions, [string]>(async (context, { reason, message, leaseId }, id) => {
        const command = { action: "force_error", message, ...given({ lease_id: leaseId }) } as const;
        await repairAndPrint(context, { task_id: id, reason, command });
      }),
    );
}

function addRetryStale(line: CommandLine, parent: Command): void {
  const command = line.command(
    "retry-stale",
    "Requeue stale tasks that were declared idempotent. Changes nothing, unless enabled.",
    ["a2a-relay a2a retry-stale --enable --min-lease-age-ms 600000"],
    { parent },
  );
  addRetryPolicyOptions(command).action(
    line.run<RetryPolicyOptions>(async ({ client, output, signal }, options) => {
      const { report } = await client.taskQueue.retryStale(retryPolicyOf(options), { signal });
      const { considered, requeued, skipped } = report;
      await output.show({ kind: "a2a_auto_retry", report }, () => [
        `considered ${considered} task(s), requeued ${requeued.length}, skipped ${skipped.length}`,
        ...(report.policy.enabled ? [] : ["automatic retry disabled; pass --enable to mutate"]),
      ]);
    }),
  );
}

function addCompact(line: CommandLine, parent: Command): void {
  line
    .command(
      "compact",
      "Archive now the messages of finished tasks whose results were taken.",
      ["a2a-relay a2a compact"],
      { parent },
    )
    .action(
      line.run(async ({ client, output, signal }) => {
        const answer = await client.taskQueue.compact({ signal });
        await output.show(answer, () => [`dropped ${answer.dropped} a2a event(s)`]);
      }),
    );
}

/** One line of JSON, with and without --json. */
async function repairAndPrint(
  { client, output, signal }: CommandContext,
  request: QueueRepairRequest,
): Promise<void> {
  const { outcome } = await client.taskQueue.repair(request, { signal });
  await output.showNext(outcome, () => [JSON.stringify(outcome)]);
}

function parseState(text: string): QueueState {
  if (text === "queued" || text === "in_flight") return text;
  if (text === "in-flight") return "in_flight";
  throw new InvalidArgumentError(`unknown a2a state ${JSON.stringify(text)}; there are queued and in_flight`);
}

function addA2aCard(line: CommandLine, parent: Command): void {
  const command = line.command(
    "card <agent>",
    "Show the card of an A2A agent: of the relay by its name, or of any other by its address.",
    ["a2a-relay a2a card zhiwei@known-blocks1", "a2a-relay a2a card https://agent.example.org --json"],
    { parent },
  );
  addHeadersOption(command).action(
    line.run<CallOptions, [string]>(async (context, options, target) => {
      const { output, signal } = context;
      const agent = await callAgent(context, target, options);
      const card = await agent.call(() => agent.cards.getAgentCard({ signal }));
      await output.show(card, () => a2aCardLines(card, output.paint));
    }),
  );
}
