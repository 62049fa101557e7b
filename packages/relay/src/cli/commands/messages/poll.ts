import { LIMITS, type MailboxItem } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT } from "../../command-line/exit.ts";
import { given, durationOption, parseCount } from "../../command-line/options.ts";
import { reportItems } from "./ack.ts";
import {
  addMessageFilterOptions,
  createMessageFilter,
  type MessageFilter,
  type MessageFilterOptions,
} from "./message-filter.ts";
import { messageLines } from "./message-text.ts";

interface PollOptions extends MessageFilterOptions {
  readonly agent: string;
  readonly ack?: boolean;
  readonly limit: number;
  readonly wait: number;
}

export function addPoll(line: CommandLine): void {
  const command = line
    .command("poll", "Read the open messages of an agent once, and acknowledge them on request.", [
      "a2a-relay poll --agent zhiwei@known-blocks1 --allow-from lulu@kamac --ack",
    ])
    .requiredOption("--agent <agent>", "the agent whose mailbox is read")
    .option("--ack", "acknowledge what was printed")
    .option("--limit <n>", "at most this many", parseCount, LIMITS.readLimitDefault)
    .addOption(durationOption("--wait <duration>", "wait for messages at most this long", "0s"));
  addMessageFilterOptions(command).action(
    line.run<PollOptions>(async (context, options) => {
      const { client, output, signal } = context;
      const filter = await createMessageFilter(client, options, { signal });
      const messages = await readAllowed(context, options, filter);
      await output.show({ count: messages.length, messages }, () =>
        messages.length === 0
          ? ["no open messages"]
          : messages.flatMap((item) => messageLines(item, output.paint)),
      );
      if (options.ack !== true || messages.length === 0) return EXIT.ok;
      // Only now: the reader of our output has the messages.
      const ids = messages.map((item) => item.message_id);
      const { results } = await client.ack(options.agent, { message_ids: ids }, { signal });
      return reportItems(output, "acknowledged", results);
    }),
  );
}

/** Reads past messages that the filter refuses, so that they cannot hide allowed ones. */
async function readAllowed(
  context: CommandContext,
  options: PollOptions,
  filter: MessageFilter,
): Promise<readonly MailboxItem[]> {
  const { agent, limit } = options;
  const untilMs = performance.now() + options.wait;
  const allowed: MailboxItem[] = [];
  let since: string | undefined;
  for (;;) {
    const leftMs = Math.max(0, Math.ceil(untilMs - performance.now()));
    const waitMs = allowed.length > 0 ? 0 : Math.min(leftMs, LIMITS.waitMsMax);
    const query = given({ since, limit, wait_ms: waitMs });
    const page = await context.client.readMailbox(agent, query, { signal: context.signal });
    allowed.push(...page.messages.filter((item) => filter(item.message) === undefined));
    since = page.cursor;
    if (allowed.length >= limit) return allowed.slice(0, limit);
    if (allowed.length > 0 && page.messages.length < limit) return allowed;
    // Pages of long messages are short: only an empty page is the end.
    if (page.messages.length === 0 && leftMs === 0) return allowed;
  }
}
