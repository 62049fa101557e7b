import type { MailboxItem } from "@a2a-relay/protocol";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatDuration } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";

interface InboxOptions {
  readonly agent: string;
  readonly since?: string;
  readonly limit: number;
}

const COLUMNS: readonly Column<MailboxItem>[] = [
  { title: "ID", text: (item) => item.message_id },
  { title: "AGE", text: (item) => formatDuration(Date.now() - Date.parse(item.message.created_at)) },
  { title: "FROM", text: (item) => item.message.from },
  { title: "TYPE", text: (item) => item.message.type, style: () => "cyan" },
  { title: "STATUS", text: (item) => item.status.toLowerCase() },
  { title: "REPLY", text: (item) => (item.message.needs_reply ? "needed" : ""), style: () => "yellow" },
  { title: "SUBJECT", text: (item) => item.message.subject, flexible: true },
];

export function addInbox(line: CommandLine): void {
  line
    .command("inbox", "List the open messages of an agent, without marking them as delivered.", [
      "a2a-relay inbox --agent zhiwei@known-blocks1",
    ])
    .alias("pending")
    .requiredOption("--agent <agent>", "the agent whose mailbox is read")
    .option("--since <cursor>", "only messages after this cursor of an earlier answer")
    .option("--limit <n>", "at most this many", parseCount, 50)
    .action(
      line.run<InboxOptions>(async ({ client, output, signal }, options) => {
        const { agent, since, limit } = options;
        const answer = await client.readMailbox(agent, given({ since, limit, peek: true }), { signal });
        await output.show({ count: answer.messages.length, ...answer }, () =>
          answer.messages.length === 0 ? ["no open messages"] : output.table(answer.messages, COLUMNS),
        );
        if (answer.messages.length === limit) {
          await output.note(`there may be more: --since ${answer.cursor}`);
        }
      }),
    );
}
