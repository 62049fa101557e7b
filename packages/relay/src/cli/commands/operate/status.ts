import { DELIVERY_STATES, type QueueEntry } from "@a2a-relay/protocol";
import { Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatDuration } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";

interface StatusOptions {
  readonly state?: (typeof DELIVERY_STATES)[number];
  readonly agent?: string;
  readonly minLeaseAgeMs?: number;
  readonly deadlineWithinMs?: number;
  readonly limit: number;
}

const COLUMNS: readonly Column<QueueEntry>[] = [
  { title: "MESSAGE", text: (entry) => entry.message_id },
  {
    title: "STATE",
    text: (entry) => entry.state,
    style: (entry) => (entry.state === "leased" ? "yellow" : undefined),
  },
  { title: "TO", text: (entry) => entry.recipient },
  { title: "FROM", text: (entry) => entry.sender },
  { title: "TYPE", text: (entry) => entry.kind, style: () => "cyan" },
  { title: "ATTEMPT", text: (entry) => (entry.attempt === 0 ? "" : String(entry.attempt)) },
  {
    title: "LEASED FOR",
    text: (entry) => (entry.lease_age_ms === undefined ? "" : formatDuration(entry.lease_age_ms)),
  },
  { title: "WORKER", text: (entry) => entry.lease?.worker ?? "" },
  { title: "LEASE", text: (entry) => entry.lease?.id ?? "" },
  { title: "DUE IN", text: (entry) => dueIn(entry) },
  { title: "REPEATABLE", text: (entry) => (entry.duplicate_safety === "idempotent" ? "yes" : "") },
  { title: "SUBJECT", text: (entry) => entry.subject, flexible: true },
];

export function addStatus(line: CommandLine): void {
  line
    .command("status", "Show the queue: open messages, who holds them and for how long.", [
      "a2a-relay status --state leased --min-lease-age-ms 300000",
    ])
    .addOption(new Option("--state <state>", "only messages in this state").choices(DELIVERY_STATES))
    .option("--agent <agent>", "only messages to this agent")
    .option("--min-lease-age-ms <ms>", "hide leases younger than this", parseCount)
    .option("--deadline-within-ms <ms>", "only tasks that are due within this time", parseCount)
    .option("--limit <n>", "at most this many", parseCount, 100)
    .action(
      line.run<StatusOptions>(async ({ client, output, signal }, options) => {
        const query = given({
          state: options.state,
          agent: options.agent,
          min_lease_age_ms: options.minLeaseAgeMs,
          deadline_within_ms: options.deadlineWithinMs,
          limit: options.limit,
        });
        const answer = await client.queue(query, { signal });
        const totals = Object.entries(answer.totals).map(([state, count]) => `${state} ${count}`);
        await output.show(answer, () => [
          output.paint("bold", totals.length === 0 ? "no open messages" : totals.join("  ")),
          ...(answer.entries.length === 0 ? [] : ["", ...output.table(answer.entries, COLUMNS)]),
        ]);
      }),
    );
}

function dueIn(entry: QueueEntry): string {
  if (entry.deadline_ms === undefined) return "";
  const leftMs = entry.deadline_ms - Date.now();
  return leftMs <= 0 ? "overdue" : formatDuration(leftMs);
}
