import { type Message, URGENCIES } from "@a2a-relay/protocol";
import { InvalidArgumentError, Option } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { readTextOption } from "../../command-line/input.ts";
import { given } from "../../command-line/options.ts";
import { replySubject } from "./message-text.ts";
import { sendAndShow } from "./send.ts";

interface ReplyOptions {
  readonly from: string;
  readonly body: string;
  readonly replyTo?: string;
  readonly to?: string;
  readonly threadId?: string;
  readonly subject?: string;
  readonly urgency: (typeof URGENCIES)[number];
  readonly needsReply?: boolean;
  readonly decision?: "accepted" | "declined";
  readonly leaseId?: string;
}

export function addReply(line: CommandLine): void {
  line
    .command("reply [message-id]", "Answer a message; the answer to a request completes its task.", [
      'a2a-relay reply 01981c5e-0000-7000-8000-000000000000 --from zhiwei@known-blocks1 --body "收到"',
      "make report | a2a-relay reply --reply-to MESSAGE --from zhiwei --body -",
    ])
    .requiredOption("--from <agent>", "who answers")
    .requiredOption("--body <text>", "the text; - reads it from stdin")
    .option("--reply-to <message-id>", "the message to answer, if not given as an argument")
    .option("--to <agent>", "the recipient (default: who sent the message)")
    .option("--thread-id <id>", "the conversation (default: the message's)")
    .option("--subject <text>", "the subject (default: Re: and the message's)")
    .addOption(new Option("--urgency <urgency>", "how it is shown").choices(URGENCIES).default("normal"))
    .option("--needs-reply", "ask back: the task waits for the requester's answer instead of being completed")
    .addOption(
      new Option("--decision <decision>", "take or decline a memory proposal").choices([
        "accepted",
        "declined",
      ]),
    )
    .option("--lease-id <id>", "the lease under which the work was done")
    .action(
      line.run<ReplyOptions, [string | undefined]>(async (context, options, operand) => {
        const replyTo = operand ?? options.replyTo;
        if (replyTo === undefined)
          throw new InvalidArgumentError("which message? Give its id, or --reply-to.");
        const address = await addressOf(context, options, replyTo);
        await sendAndShow(context, {
          ...address,
          from: options.from,
          type: "reply",
          body: await readTextOption(options.body, context.io),
          reply_to: replyTo,
          urgency: options.urgency,
          ...given({
            needs_reply: options.needsReply,
            lease_id: options.leaseId,
            decision: options.decision,
          }),
        });
      }),
    );
}

type Address = Pick<Message, "to" | "thread_id" | "subject">;

/** What the flags leave open follows from the message that is answered. */
async function addressOf(context: CommandContext, options: ReplyOptions, replyTo: string): Promise<Address> {
  const { to, threadId, subject } = options;
  if (to !== undefined && threadId !== undefined) {
    return { to, thread_id: threadId, subject: subject ?? "Re" };
  }
  const { message } = await context.client.message(replyTo, { signal: context.signal });
  return {
    to: to ?? message.from,
    thread_id: threadId ?? message.thread_id,
    subject: subject ?? replySubject(message.subject),
  };
}
