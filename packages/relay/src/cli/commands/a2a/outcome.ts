import type { A2aStreamEvent } from "@a2a-relay/client";
import type { A2aStatus, A2aTask } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { shellWords, visibleLine } from "../../terminal/text.ts";
import type { CalledAgent } from "./called-agent.ts";
import { a2aLine, stateName, a2aEventLine } from "./text.ts";

/** The last known status of a task. */
export interface TaskStatus {
  readonly taskId: string;
  readonly status: A2aStatus;
}

/** Undefined for events without a status. */
export function statusIn({ task, statusUpdate }: A2aStreamEvent): TaskStatus | undefined {
  if (task !== undefined) return statusOf(task);
  return statusUpdate === undefined
    ? undefined
    : { taskId: statusUpdate.taskId, status: statusUpdate.status };
}

export function statusOf({ id, status }: A2aTask): TaskStatus {
  return { taskId: id, status };
}

const BAD_ENDS: Readonly<Record<string, string>> = {
  failed: "failed",
  rejected: "was rejected",
  canceled: "was canceled",
};

/** Prints advice on the next command, or the error. A task that failed makes the command fail. */
export async function reportOutcome(
  { output }: CommandContext,
  agent: CalledAgent,
  { taskId, status }: TaskStatus,
): Promise<ExitCode> {
  const state = stateName(status.state);
  const end = BAD_ENDS[state];
  if (end !== undefined) {
    const why = a2aLine(status.message?.parts);
    await output.error(`task ${visibleLine(taskId)} ${end}${why === "" ? "" : `: ${why}`}`);
    return EXIT.failure;
  }
  const advice = adviceFor(state, agent, taskId);
  if (advice !== undefined) await output.note(advice);
  return EXIT.ok;
}

function adviceFor(state: string, { words }: CalledAgent, taskId: string): string | undefined {
  const [target = "", ...options] = words;
  const command = (verb: string, ...more: readonly string[]): string =>
    shellWords(["a2a-relay", "a2a", verb, target, ...more, ...options]);
  switch (state) {
    case "completed":
      return undefined;
    case "input-required":
      return `the agent asks; answer with: ${command("send", "TEXT", "--task", taskId)}`;
    case "auth-required":
      return `the agent waits for an authorisation; follow the task with: ${command("subscribe", taskId)}`;
    default:
      return `the task goes on; follow it with: ${command("subscribe", taskId)}`;
  }
}

/** Prints the events of a stream, and returns the last status of the task. */
export async function showEvents(
  { output }: CommandContext,
  events: AsyncIterable<A2aStreamEvent>,
  onStatus?: (taskStatus: TaskStatus) => Promise<unknown>,
): Promise<TaskStatus | undefined> {
  let last: TaskStatus | undefined;
  for await (const event of events) {
    await output.showNext(event, () => [a2aEventLine(event, output.paint)]);
    const taskStatus = statusIn(event);
    if (taskStatus === undefined) continue;
    last = taskStatus;
    await onStatus?.(taskStatus);
  }
  return last;
}
