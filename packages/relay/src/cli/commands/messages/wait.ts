import { LIMITS, type MailboxResponse } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT } from "../../command-line/exit.ts";
import { given, durationOption } from "../../command-line/options.ts";
import { createKeepTrying } from "../../following/keep-trying.ts";
import { formatDuration } from "../../terminal/duration.ts";
import { visibleLine } from "../../terminal/text.ts";

interface WaitCommandOptions {
  readonly agent: string;
  readonly timeout: number;
  readonly since?: string;
}

export function addWait(line: CommandLine): void {
  line
    .command(
      "wait",
      "Wait until an agent has an open message. Exit code 0: it has one; 3: none arrived in time.",
      [
        "a2a-relay wait --agent zhiwei@known-blocks1 --timeout 5m && a2a-relay poll --agent zhiwei@known-blocks1 --ack",
      ],
    )
    .requiredOption("--agent <agent>", "the agent whose mailbox is read")
    .addOption(durationOption("--timeout <duration>", "give up after this long", "30s"))
    .option("--since <cursor>", "only messages after this cursor of an earlier answer")
    .action(
      line.run<WaitCommandOptions>(async (context, options) => {
        const { output } = context;
        const { messages, cursor } = await waitForMessage(context, options);
        const [first] = messages;
        await output.show({ mail: first !== undefined, count: messages.length, cursor }, () =>
          first === undefined
            ? [visibleLine(`no message for ${options.agent} within ${formatDuration(options.timeout)}`)]
            : [
                visibleLine(
                  `message for ${options.agent}: ${first.message.type} from ${first.message.from}: ${first.message.subject}`,
                ),
              ],
        );
        return first === undefined ? EXIT.timedOut : EXIT.ok;
      }),
    );
}

async function waitForMessage(
  context: CommandContext,
  options: WaitCommandOptions,
): Promise<MailboxResponse> {
  const { agent, timeout, since } = options;
  const untilMs = performance.now() + timeout;
  const keepTrying = createKeepTrying(context, untilMs);
  for (;;) {
    const leftMs = Math.max(0, Math.ceil(untilMs - performance.now()));
    const query = given({ since, peek: true, wait_ms: Math.min(leftMs, LIMITS.waitMsMax) });
    const page = await keepTrying(() => context.client.readMailbox(agent, query, { signal: context.signal }));
    // A stopping relay answers early with an empty page.
    if (page.messages.length > 0 || leftMs === 0) return page;
  }
}
