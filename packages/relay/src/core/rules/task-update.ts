import { type Artifact, LIMITS, type Part, RelayError, type TaskState } from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/task-record.ts";

/**
 * One step of a task as those who follow it see it, with what was said: the journal has digests only. `n` counts from
 * 1 for each task, so that everybody sees the same steps in the same order and can say which one they saw last.
 */
export interface TaskUpdate {
  readonly tenant: string;
  readonly taskId: string;
  readonly n: number;
  readonly atMs: number;
  readonly step: TaskStep;
}

export type TaskStep = StatusStep | ArtifactStep | MessageStep;

export interface StatusStep {
  readonly kind: "status";
  readonly state: TaskState;
  readonly said?: Said;
  /** What the agent added to the status itself. */
  readonly metadata?: A2aMembers;
}

/** An artifact that came whole, or a piece of one. */
export interface ArtifactStep {
  readonly kind: "artifact";
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly metadata?: A2aMembers;
}

/** The requester added something, in a message of its own. */
export interface MessageStep {
  readonly kind: "message";
  readonly messageId: string;
}

/** What the agent, or the relay in its stead, said with a status. */
export interface Said {
  readonly text: string;
  readonly parts?: readonly Part[];
  /** The message that said it, where one did. */
  readonly messageId?: string;
  /** Members of the A2A message beside its parts: its own id, metadata, extensions, what nobody knows. */
  readonly a2aMessage?: A2aMembers;
}

export type A2aMembers = Readonly<Record<string, unknown>>;

/** A task after some steps, and the steps, to be written together. */
export interface Told {
  readonly task: TaskRecord;
  readonly changes: Pick<Changes, "taskUpdates">;
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
  return { task: { ...task, updateCount, updateBytes }, changes: { taskUpdates } };
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
  for (const step of steps) bytes += Buffer.byteLength(JSON.stringify(step));
  return bytes;
}

/** One place is kept for the step that ends the task. */
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
