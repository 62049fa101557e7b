import { type EventView, LIMITS, type Message } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given } from "../../command-line/options.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/text.ts";
import { eventGist } from "./events.ts";

interface TimelineOptions {
  readonly markdown?: boolean;
}

// Longer conversations are read with `events --thread`, page by page.
const EVENTS_MAX = 10_000;

export function addTimeline(line: CommandLine): void {
  line
    .command("timeline <thread-id>", "Show everything that happened in a conversation, in order.", [
      "a2a-relay timeline thread_lulu_zhiwei_hello",
      "a2a-relay timeline thread_lulu_zhiwei_hello --markdown > timeline.md",
    ])
    .option("--markdown", "print a Markdown list")
    .action(
      line.run<TimelineOptions, [string]>(async (context, options, threadId) => {
        const { client, output, signal } = context;
        const { messages } = await client.thread(threadId, { signal });
        const events = await eventsOfThread(context, threadId);
        const messagesById = new Map(messages.map((message) => [message.id, message]));
        await output.show({ thread_id: threadId, count: events.length, events }, () =>
          options.markdown === true
            ? markdownLines(threadId, events, messagesById)
            : output.table(events, columns(messagesById)),
        );
      }),
    );
}

async function eventsOfThread(context: CommandContext, threadId: string): Promise<readonly EventView[]> {
  const events: EventView[] = [];
  let since: string | undefined;
  while (events.length < EVENTS_MAX) {
    const query = given({ thread: threadId, since, limit: LIMITS.listLimitMax });
    const page = await context.client.events(query, { signal: context.signal });
    events.push(...page.events);
    if (!page.has_more) return events;
    since = page.cursor;
  }
  await context.output.note(`only the first ${EVENTS_MAX} events are shown`);
  return events;
}

type Messages = ReadonlyMap<string, Message>;

function columns(messages: Messages): readonly Column<EventView>[] {
  return [
    { title: "TIME", text: (event) => formatTime(event.at) },
    { title: "EVENT", text: (event) => event.type, style: () => "cyan" },
    { title: "BY", text: (event) => event.actor },
    { title: "WHAT", text: (event) => whatHappened(event, messages), flexible: true },
  ];
}

/** The message for its acceptance, the gist for other events. */
function whatHappened(event: EventView, messages: Messages): string {
  const message = event.type === "message.accepted" ? messages.get(event.message_id ?? "") : undefined;
  if (message !== undefined) return `${message.type} ${message.from} -> ${message.to}: ${message.subject}`;
  return eventGist(event);
}

function markdownLines(
  threadId: string,
  events: readonly EventView[],
  messages: Messages,
): readonly string[] {
  const items = events.map((event) => {
    const what = whatHappened(event, messages);
    const message = event.message_id === undefined ? "" : `; message_id=${event.message_id}`;
    return visibleLine(
      `- ${formatTime(event.at)}: ${event.type}; actor=${event.actor}${message}${what === "" ? "" : `; ${what}`}`,
    );
  });
  return [
    visibleLine(`# Timeline ${threadId}`),
    "",
    ...(items.length === 0 ? ["_No events found._"] : items),
  ];
}
