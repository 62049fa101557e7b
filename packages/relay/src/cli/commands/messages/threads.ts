import type { ThreadView } from "@a2a-relay/protocol";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";

interface ThreadsOptions {
  readonly agent?: string;
  readonly contact?: string;
  readonly before?: string;
  readonly limit: number;
}

const COLUMNS: readonly Column<ThreadView>[] = [
  { title: "THREAD", text: (thread) => thread.thread_id },
  { title: "LAST", text: (thread) => formatTime(thread.last_at) },
  { title: "MESSAGES", text: (thread) => String(thread.message_count) },
  {
    title: "OPEN",
    text: (thread) => (thread.open_count === 0 ? "" : String(thread.open_count)),
    style: () => "yellow",
  },
  { title: "PARTICIPANTS", text: (thread) => thread.participants.join(", "), flexible: true },
  { title: "SUBJECT", text: (thread) => thread.subject, flexible: true },
];

export function addThreads(line: CommandLine): void {
  line
    .command("threads", "List conversations, the latest first.", ["a2a-relay threads --agent lulu@kamac"])
    .option("--agent <agent>", "only those this agent takes part in")
    .option("--contact <agent>", "the same as --agent")
    .option("--before <cursor>", "only those before this cursor of an earlier answer")
    .option("--limit <n>", "at most this many", parseCount, 100)
    .action(
      line.run<ThreadsOptions>(async ({ client, output, signal }, options) => {
        const { before, limit } = options;
        const agent = options.agent ?? options.contact;
        const answer = await client.threads(given({ agent, before, limit }), { signal });
        await output.show({ count: answer.threads.length, ...answer }, () =>
          answer.threads.length === 0 ? ["no threads"] : output.table(answer.threads, COLUMNS),
        );
        if (answer.cursor !== undefined) await output.note(`there are more: --before ${answer.cursor}`);
      }),
    );
}
