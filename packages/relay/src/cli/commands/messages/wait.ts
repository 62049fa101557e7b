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
      "Block until an agent has mail. Exit code 0: there is mail; 3: there was none in time.",
      [
        "a2a-relay wait --agent zhiwei@known-blocks1 --timeout 5m && a2a-relay poll --agent zhiwei@known-blocks1 --ack",
      ],
    )
    .requiredOption("--agent <agent>", "whose mail")
    .addOption(durationOption("--timeout <duration>", "give up after this long", "30s"))
    .option("--since <cursor>", "only mail after this cursor of an earlier answer")
    .action(
      line.run<WaitCommandOptions>(async (context, options) => {
        const { output } = context;
        const { messages, cursor } = await waitForMail(context, options);
        const [first] = messages;
        await output.show({ mail: first !== undefined, count: messages.length, cursor }, () =>
          first === undefined
            ? [visibleLine(`no mail for ${options.agent} within ${formatDuration(options.timeout)}`)]
            : [
                visibleLine(
                  `mail for ${options.agent}: ${first.message.type} from ${first.message.from}: ${first.message.subject}`,
                ),
              ],
        );
        return first === undefined ? EXIT.timedOut : EXIT.ok;
      }),
    );
}

async function waitForMail(context: CommandContext, options: WaitCommandOptions): Promise<MailboxResponse> {
  const { agent, timeout, since } = options;
  const untilMs = performance.now() + timeout;
  const keepTrying = createKeepTrying(context, untilMs);
  for (;;) {
    const leftMs = Math.max(0, Math.ceil(untilMs - performance.now()));
    const query = given({ since, peek: true, wait_ms: Math.min(leftMs, LIMITS.waitMsMax) });
    const page = await keepTrying(() => context.client.readMailbox(agent, query, { signal: context.signal }));
    // An empty answer before its time comes from a relay that is stopping.
    if (page.messages.length > 0 || leftMs === 0) return page;
  }
}
