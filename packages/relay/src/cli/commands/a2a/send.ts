import { type A2AClient, type A2aMessageInput, type A2aSendOptions, isSettledState } from "@a2a-relay/client";
import type { A2aSendResult } from "@a2a-relay/protocol";
import { type Command, Option } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { readTextOption } from "../../command-line/input.ts";
import { addCallOptions, callAgent, type CallOptions } from "./called-agent.ts";
import { showEvents, reportOutcome, statusOf, type TaskStatus } from "./outcome.ts";
import { a2aAnswerLines, a2aTaskLines } from "./text.ts";

interface SendOptions extends CallOptions {
  readonly stream?: boolean;
  /** Of commander, for `--no-wait`. */
  readonly wait: boolean;
  readonly context?: string;
  readonly task?: string;
  readonly idempotencyKey?: string;
}

export function addA2aSend(line: CommandLine, parent: Command): void {
  const command = line
    .command(
      "send <agent> <text>",
      "Ask an A2A agent and wait for the answer: one of the relay by its name, or any other by its address.",
      [
        'a2a-relay a2a send zhiwei@known-blocks1 "翻译这份合同"',
        "git diff | a2a-relay a2a send https://agent.example.org - --stream",
        'a2a-relay a2a send zhiwei@known-blocks1 "译成英文" --task TASK',
      ],
      { parent },
    )
    .addOption(new Option("--stream", "print its events as they arrive, a line each").conflicts("wait"))
    .option("--no-wait", "print the new task, and do not wait for its end")
    .option("--context <id>", "the conversation it belongs to")
    .option("--task <id>", "the task that it continues, as an answer to a question of the agent")
    .option(
      "--idempotency-key <key>",
      "agents that support it, such as those of a relay, do the same key once",
    );
  addCallOptions(command).action(line.run<SendOptions, [string, string]>(send));
}

async function send(
  context: CommandContext,
  options: SendOptions,
  target: string,
  textOption: string,
): Promise<ExitCode> {
  const agent = await callAgent(context, target, options);
  const message = messageOf(await readTextOption(textOption, context.io), options);
  const asked: A2aSendOptions = {
    signal: context.signal,
    contextId: options.context,
    taskId: options.task,
    idempotencyKey: options.idempotencyKey,
  };
  const once = options.wait ? sendAndWait : sendOnly;
  const act = options.stream === true ? sendAndFollow : once;
  const taskStatus = await agent.call((client) => act(context, client, message, asked));
  return taskStatus === undefined ? EXIT.ok : await reportOutcome(context, agent, taskStatus);
}

/** The idempotency key is the id too: with a new id a receiver would take it for another message. */
function messageOf(text: string, { idempotencyKey: messageId }: SendOptions): A2aMessageInput {
  return messageId === undefined ? text : { messageId, parts: [{ text }] };
}

function sendAndFollow(
  context: CommandContext,
  client: A2AClient,
  message: A2aMessageInput,
  asked: A2aSendOptions,
): Promise<TaskStatus | undefined> {
  return showEvents(context, client.streamMessage(message, asked));
}

async function sendAndWait(
  context: CommandContext,
  client: A2AClient,
  message: A2aMessageInput,
  asked: A2aSendOptions,
): Promise<TaskStatus | undefined> {
  const answer = await client.sendMessage(message, asked);
  const { task } = answer;
  if (task === undefined || isSettledState(task.status.state)) return showAnswer(context, answer);
  // A relay holds a request open for a limited time, and some agents do not at all.
  return showAnswer(context, { task: await client.waitFor(task.id, { signal: context.signal }) });
}

async function sendOnly(
  context: CommandContext,
  client: A2AClient,
  message: A2aMessageInput,
  asked: A2aSendOptions,
): Promise<TaskStatus | undefined> {
  return showAnswer(context, await client.sendMessage(message, { ...asked, returnImmediately: true }));
}

/** Some agents answer with a message instead of a task. */
async function showAnswer(
  { output }: CommandContext,
  answer: A2aSendResult,
): Promise<TaskStatus | undefined> {
  const { task, message } = answer;
  await output.show(answer, () =>
    task === undefined ? a2aAnswerLines(message) : a2aTaskLines(task, output.paint),
  );
  return task === undefined ? undefined : statusOf(task);
}
