import { type Artifact, LIMITS, type Part, RelayError } from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { A2aMembers, ArtifactStep, Said, TaskRecord, TaskStep } from "../ports/tasks.ts";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

/** A task after some steps, and the steps, to be written together. */
export interface Told {
  readonly task: TaskRecord;
  readonly changes: Pick<Changes, "taskUpdates" | "duePushes">;
}

/** Refused when the task has no room left for more than its end. */
export function tell(task: TaskRecord, steps: readonly TaskStep[], nowMs: number): Told {
  const told = tellEnd(task, steps, nowMs);
  assertRoom(told.task);
  return told;
}

/** For the end of a task and what comes with it: a task that is full can always be ended. */
export function tellEnd(task: TaskRecord, steps: readonly TaskStep[], nowMs: number): Told {
  const { tenant, id: taskId } = task;
  const taskUpdates = steps.map((step, index) => {
    return { tenant, taskId, n: task.updateCount + index + 1, atMs: nowMs, step };
  });
  const updateCount = task.updateCount + steps.length;
  const updateBytes = task.updateBytes + bytesOf(steps);
  // A reader of a push configuration that found nothing to send is refused, and reads again.
  const duePushes = steps.length === 0 ? [] : [{ taskId, atMs: nowMs }];
  return { task: { ...task, updateCount, updateBytes }, changes: { taskUpdates, duePushes } };
}

/** What was said, or nothing where nothing was. */
export function saidBy({ text, parts, messageId, a2aMessage }: SaidParts): { readonly said?: Said } {
  if (text === "" && parts === undefined && a2aMessage === undefined) return {};
  const said = {
    text,
    ...(parts === undefined ? {} : { parts }),
    ...(messageId === undefined ? {} : { messageId }),
    ...(a2aMessage === undefined ? {} : { a2aMessage }),
  };
  return { said };
}

interface SaidParts {
  readonly text: string;
  readonly parts?: readonly Part[] | undefined;
  readonly messageId?: string | undefined;
  readonly a2aMessage?: A2aMembers | undefined;
}

function bytesOf(steps: readonly TaskStep[]): number {
  let bytes = 0;
  for (const step of steps) bytes += bytesAsJson(step);
  return bytes;
}

/** One step is kept free for the end of the task. */
function assertRoom({ id, updateCount, updateBytes }: TaskRecord): void {
  if (updateCount >= LIMITS.taskUpdatesMax) {
    throw new RelayError(
      "too_large",
      `task ${id} has had ${LIMITS.taskUpdatesMax - 1} updates, and there is room for its end only; end it`,
      { details: { limit: LIMITS.taskUpdatesMax } },
    );
  }
  if (updateBytes > LIMITS.taskUpdateBytesMax) {
    throw new RelayError(
      "too_large",
      `task ${id}: all updates it ever had have at most ${LIMITS.taskUpdateBytesMax} bytes as JSON; ` +
        "say less, or end it",
      { details: { limit: LIMITS.taskUpdateBytesMax } },
    );
  }
}

export function wholeArtifact(artifact: Artifact): ArtifactStep {
  return { kind: "artifact", artifact, append: false, lastChunk: true };
}
