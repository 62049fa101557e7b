import { InvalidArgumentError } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { durationOption, parseCount } from "../../command-line/options.ts";
import { followInbox, pollInbox } from "../../following/follow.ts";
import { longPollMs } from "../../following/keep-trying.ts";
import { AckBatcher } from "../messages/ack.ts";
import {
  addMessageFilterOptions,
  createMessageFilter,
  type MessageFilter,
  type MessageFilterOptions,
} from "../messages/message-filter.ts";
import { messageLines } from "../messages/message-text.ts";
import { ExecWorker } from "./exec-worker.ts";

interface WatchOptions extends MessageFilterOptions {
  readonly agent: string;
  readonly ack?: boolean;
  readonly once?: boolean;
  readonly since?: string;
  readonly interval: number;
  readonly exec?: boolean;
  readonly reply?: boolean;
  readonly lease: number;
  readonly timeout?: number;
  readonly maxAttempts?: number;
}

export function addWatch(line: CommandLine): void {
  const command = line
    .command("watch [program...]", "Print messages as they arrive, or run a program for each.", [
      "a2a-relay watch --agent zhiwei@known-blocks1 --allow-from lulu@kamac --ack",
      "a2a-relay watch --agent zhiwei@known-blocks1 --exec --reply -- ./answer --style short",
    ])
    .requiredOption("--agent <agent>", "the agent whose mailbox is read")
    .option("--ack", "acknowledge what was printed")
    .option("--once", "end after the first message")
    .option("--since <cursor>", "only messages after this cursor of an earlier answer")
    .addOption(
      durationOption(
        "--interval <duration>",
        "how long one request waits for messages, where no stream gets through",
        "30s",
      ),
    )
    .option(
      "--exec",
      "run the program after -- for each message, which it gets as JSON on stdin; no shell is involved. Exit code 0 acknowledges, any other gives the message back",
    )
    .option("--reply", "with --exec: answer with what the program prints; that completes a task")
    .addOption(
      durationOption(
        "--lease <duration>",
        "with --exec: how long a lease holds; it is renewed while the program runs",
        "60s",
      ),
    )
    .addOption(durationOption("--timeout <duration>", "with --exec: end the program after this long"))
    .option(
      "--max-attempts <n>",
      "with --exec: after this many failures the message is dead and its sender is told",
      parseCount,
    );
  addMessageFilterOptions(command).action(
    line.run<WatchOptions, [readonly string[]]>(async (context, options, program) => {
      assertConsistent(options, program);
      const { client, signal } = context;
      const filter = await createMessageFilter(client, options, { signal });
      return options.exec === true
        ? await execute(context, options, filter, program)
        : await print(context, options, filter);
    }),
  );
}

function assertConsistent(options: WatchOptions, program: readonly string[]): void {
  if (options.exec === true && program.length === 0) {
    throw new InvalidArgumentError(
      "--exec needs a program after --, such as: watch --agent me --exec -- ./answer",
    );
  }
  if (options.exec !== true && program.length > 0) {
    throw new InvalidArgumentError(`${JSON.stringify(program[0])} is not run without --exec`);
  }
  if (options.exec !== true && options.reply === true) throw new InvalidArgumentError("--reply needs --exec");
}

async function execute(
  context: CommandContext,
  options: WatchOptions,
  filter: MessageFilter,
  argv: readonly string[],
): Promise<ExitCode> {
  using worker = new ExecWorker(context, {
    agent: options.agent,
    argv,
    filter,
    reply: options.reply === true,
    leaseMs: options.lease,
    waitMs: longPollMs(options.interval),
    timeoutMs: options.timeout,
    attemptsMax: options.maxAttempts,
  });
  let succeeded = await worker.handleNext();
  while (options.once !== true) succeeded = await worker.handleNext();
  return succeeded ? EXIT.ok : EXIT.failure;
}

async function print(
  context: CommandContext,
  options: WatchOptions,
  filter: MessageFilter,
): Promise<ExitCode> {
  const { output } = context;
  const { agent, since, interval: intervalMs } = options;
  const acks = new AckBatcher(context, agent);
  const followed = { agent, since, intervalMs, signal: AbortSignal.any([context.signal, acks.failed]) };
  // A stream would mark more than one message as delivered.
  const items = options.once === true ? pollInbox(context, followed, 1) : followInbox(context, followed);
  for await (const item of items) {
    if (filter(item.message) !== undefined) continue;
    await output.showNext(item, () => messageLines(item, output.paint));
    if (options.ack === true) acks.add(item.message_id);
    if (options.once === true) break;
  }
  return acks.settled();
}
