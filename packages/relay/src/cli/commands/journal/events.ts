import { type EventsQuery, type EventView, LIMITS } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, durationOption, parseCount } from "../../command-line/options.ts";
import { followEvents } from "../../following/follow.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/text.ts";

interface EventsOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly type?: string;
  readonly agent?: string;
  readonly thread?: string;
  readonly limit: number;
  readonly interval: number;
}

const COLUMNS: readonly Column<EventView>[] = [
  { title: "SEQ", text: (event) => String(event.seq) },
  { title: "TIME", text: (event) => formatTime(event.at) },
  { title: "EVENT", text: (event) => event.type, style: () => "cyan" },
  { title: "BY", text: (event) => event.actor },
  { title: "AGENT", text: (event) => event.agent ?? "" },
  { title: "MESSAGE", text: (event) => event.message_id ?? "" },
  { title: "TASK", text: (event) => event.task_id ?? "", flexible: true },
  { title: "THREAD", text: (event) => event.thread_id ?? "", flexible: true },
  { title: "WHAT", text: eventGist, flexible: true },
];

export function addEvents(line: CommandLine): void {
  line
    .command("events", "Show the journal: what happened, in order.", [
      "a2a-relay events --follow --type message.dead",
      "a2a-relay events --agent zhiwei@known-blocks1 --json",
    ])
    .option("-f, --follow", "show new events as they happen, from now on or after --since")
    .option("--since <cursor>", "only events after this cursor of an earlier answer")
    .option("--type <type>", "only this type, such as message.accepted")
    .option("--agent <agent>", "only what this agent did or what happened to it")
    .option("--thread <id>", "only this conversation")
    .option("--limit <n>", "at most this many at a time", parseCount, LIMITS.listLimitDefault)
    .addOption(
      durationOption(
        "--interval <duration>",
        "how long one request waits for events, where no stream gets through",
        "30s",
      ),
    )
    .action(
      line.run<EventsOptions>(async (context, options) => {
        if (options.follow === true) await follow(context, options);
        else await showPage(context, options);
      }),
    );
}

async function showPage({ client, output, signal }: CommandContext, options: EventsOptions): Promise<void> {
  const answer = await client.events(queryOf(options, options.since), { signal });
  await output.show(answer, () =>
    answer.events.length === 0 ? ["no events"] : output.table(answer.events, COLUMNS),
  );
  if (answer.has_more) await output.note(`there are more: --since ${answer.cursor}`);
}

async function follow(context: CommandContext, options: EventsOptions): Promise<void> {
  const { output } = context;
  const since = options.since ?? "latest";
  const query = { ...queryOf(options, since), since };
  for await (const event of followEvents(context, query, options.interval)) {
    await output.showNext(event, () => [eventLine(event)]);
  }
}

function queryOf(options: EventsOptions, since: string | undefined): EventsQuery {
  const { type, agent, thread, limit } = options;
  return given({ since, type, agent, thread, limit });
}

function eventLine(event: EventView): string {
  return visibleLine(
    COLUMNS.map((column) => column.text(event))
      .filter((text) => text !== "")
      .join("  "),
  );
}

/** What an event adds to its type and ids, in a few words; may be empty. */
export function eventGist({ type, data }: EventView): string {
  const text = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  if (type === "capability_check") return checkGist(text("agent_id"), text("reason"), data);
  if (type === "access.denied") {
    return joined([text("verb"), text("tenant") && `in ${text("tenant")}`, text("reason")]);
  }
  if (type.startsWith("key.")) return text("key_id");
  if (type.startsWith("capability.")) return joined([text("capability_id"), text("action")]);
  return text("reason");
}

function checkGist(subject: string, reason: string, data: EventView["data"]): string {
  if (data["passed"] === true) return `${subject} passed`;
  const missing = Array.isArray(data["missing_actions"]) ? data["missing_actions"].join(", ") : "";
  return joined([`${subject} refused`, missing && `without ${missing}`, reason && `(${reason})`]);
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
