import {
  MESSAGE_KINDS,
  type MessageInput,
  type SendResponse,
  TASK_STATES,
  URGENCIES,
} from "@a2a-relay/protocol";
import { InvalidArgumentError, Option } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { readTextOption } from "../../command-line/input.ts";
import { given } from "../../command-line/options.ts";
import { parseMomentMs } from "../../terminal/duration.ts";
import { visibleLine } from "../../terminal/text.ts";

interface SendOptions {
  readonly from: string;
  readonly to: string;
  readonly type: (typeof MESSAGE_KINDS)[number];
  readonly subject?: string;
  readonly body: string;
  readonly urgency: (typeof URGENCIES)[number];
  readonly needsReply?: boolean;
  readonly threadId?: string;
  readonly replyTo?: string;
  readonly taskId?: string;
  readonly taskState?: (typeof TASK_STATES)[number];
  readonly parent?: string;
  readonly deadline?: number;
  readonly expires?: number;
  readonly idempotencyKey?: string;
  readonly idempotent?: boolean;
  readonly leaseId?: string;
}

export function addSend(line: CommandLine): void {
  line
    .command("send", "Send one message.", [
      'a2a-relay send --from lulu@kamac --to zhiwei@known-blocks1 --type request --subject hello --body "知微你好" --needs-reply',
      "git diff | a2a-relay send --from lulu@kamac --to reviewer --subject diff --body -",
    ])
    .requiredOption("--from <agent>", "the sender")
    .requiredOption("--to <agent>", "the recipient: an agent id or alias")
    .requiredOption("--body <text>", "the text; - reads it from stdin")
    .option("--subject <text>", "one line that says what it is about")
    .addOption(new Option("--type <type>", "what kind of message").choices(MESSAGE_KINDS).default("note"))
    .addOption(new Option("--urgency <urgency>", "how it is shown").choices(URGENCIES).default("normal"))
    .option("--needs-reply", "say that an answer is expected")
    .option("--thread-id <id>", "the conversation it belongs to")
    .option("--reply-to <message-id>", "the message it answers")
    .option("--task-id <id>", "the task it is about")
    .addOption(
      new Option("--task-state <state>", "with --type status: the state of the task").choices(TASK_STATES),
    )
    .option("--parent <task-id>", "the task that this one is part of")
    .option("--deadline <when>", "when the task must be finished: 2h, or a time", (text) =>
      parseMomentMs(text),
    )
    .option("--expires <when>", "when it expires unread: 2h, or a time", (text) => parseMomentMs(text))
    .option("--idempotency-key <key>", "the same key and content is sent once")
    .option("--idempotent", "declare that doing the work twice does no harm; needs --idempotency-key")
    .option("--lease-id <id>", "the lease of the message that this one finishes")
    .action(
      line.run<SendOptions>(async (context, options) => {
        if (options.idempotent === true && options.idempotencyKey === undefined) {
          throw new InvalidArgumentError(
            "--idempotent needs --idempotency-key, the name of the work that may be repeated.",
          );
        }
        await sendAndShow(context, {
          ...inputOf(options),
          body: await readTextOption(options.body, context.io),
        });
      }),
    );
}

/** Shared with `reply`: sends, then shows the receipt. */
export async function sendAndShow(context: CommandContext, input: MessageInput): Promise<void> {
  const answer = await context.client.send(input, { signal: context.signal });
  await context.output.show(answer, () => receiptLines(answer));
}

function receiptLines({ receipt, message }: SendResponse): readonly string[] {
  const task = receipt.task_id === undefined ? "" : `  task ${receipt.task_id}`;
  return [
    visibleLine(`accepted for ${receipt.recipient}: ${receipt.message_id}`),
    visibleLine(`thread ${message.thread_id}${task}`),
  ];
}

function inputOf(options: SendOptions): MessageInput {
  const { expires } = options;
  return {
    to: options.to,
    ...given({
      from: options.from,
      type: options.type,
      subject: options.subject,
      urgency: options.urgency,
      needs_reply: options.needsReply,
      thread_id: options.threadId,
      reply_to: options.replyTo,
      task_id: options.taskId,
      task_state: options.taskState,
      parent: options.parent,
      deadline_ms: options.deadline,
      expires_at: expires === undefined ? undefined : new Date(expires).toISOString(),
      lease_id: options.leaseId,
    }),
    ...idempotencyOf(options),
  };
}

function idempotencyOf({ idempotencyKey: key, idempotent }: SendOptions): Partial<MessageInput> {
  if (key === undefined) return {};
  return idempotent === true
    ? { idempotency: { duplicate_safety: "idempotent", key } }
    : { idempotency_key: key };
}
