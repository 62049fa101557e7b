import type { A2aStreamEvent } from "@a2a-relay/client";
import { standingIn, type TaskStanding } from "./outcome.ts";
import { a2aEventLine } from "./text.ts";
import type { CommandContext } from "../../command-line/command-context.ts";

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
