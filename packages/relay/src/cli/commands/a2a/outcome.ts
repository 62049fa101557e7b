import type { A2aStreamEvent } from "@a2a-relay/client";
import type { A2aStatus, A2aTask } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { shellWords, visibleLine } from "../../terminal/text.ts";
import type { CalledAgent } from "./called-agent.ts";
import { a2aLine, stateName, a2aEventLine } from "./text.ts";

/** How a task stands, as far as it was told. */
export interface TaskStanding {
  readonly taskId: string;
  readonly status: A2aStatus;
}

/** Undefined for events that tell of something else, which leaves what was told before. */
export function standingIn({ task, statusUpdate }: A2aStreamEvent): TaskStanding | undefined {
  if (task !== undefined) return standingOf(task);
  return statusUpdate === undefined
    ? undefined
    : { taskId: statusUpdate.taskId, status: statusUpdate.status };
}

export function standingOf({ id, status }: A2aTask): TaskStanding {
  return { taskId: id, status };
}

const BAD_ENDS: Readonly<Record<string, string>> = {
  failed: "failed",
  rejected: "was rejected",
  canceled: "was canceled",
};

/** Says what comes next, or what went wrong. A task that did not end well is a command that did not. */
export async function reportOutcome(
  { output }: CommandContext,
  agent: CalledAgent,
  { taskId, status }: TaskStanding,
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

/** Prints the events of a stream as they come, and answers with how the task stands behind the last one. */
export async function showEvents(
  { output }: CommandContext,
  events: AsyncIterable<A2aStreamEvent>,
  onStanding?: (standing: TaskStanding) => Promise<unknown>,
): Promise<TaskStanding | undefined> {
  let last: TaskStanding | undefined;
  for await (const event of events) {
    await output.showNext(event, () => [a2aEventLine(event, output.paint)]);
    const standing = standingIn(event);
    if (standing === undefined) continue;
    last = standing;
    await onStanding?.(standing);
  }
  return last;
}
