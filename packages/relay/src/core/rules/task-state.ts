import { isTerminal, RelayError, type TaskState } from "@a2a-relay/protocol";
import type { TaskRecord } from "../ports/tasks.ts";

const UNFINISHED_NEXT: readonly TaskState[] = [
  "working",
  "input-required",
  "auth-required",
  "completed",
  "failed",
  "canceled",
  "rejected",
];

/**
 * Where a task may go from each state. Completing straight from submitted implies working; a handoff starts
 * again at submitted; terminal is final.
 */
export const TASK_TRANSITIONS: Readonly<Record<TaskState, readonly TaskState[]>> = {
  submitted: ["submitted", ...UNFINISHED_NEXT],
  working: ["submitted", ...UNFINISHED_NEXT],
  "input-required": ["submitted", ...UNFINISHED_NEXT],
  "auth-required": ["submitted", ...UNFINISHED_NEXT],
  completed: [],
  failed: [],
  canceled: [],
  rejected: [],
};

/** The task after the move, or the reason why it cannot move. */
export function moveTask(task: TaskRecord, state: TaskState, nowMs: number): TaskRecord {
  assertUnfinished(task);
  if (TASK_TRANSITIONS[task.state].includes(state)) return { ...task, state, updatedAtMs: nowMs };
  throw new RelayError("wrong_state", `task ${task.id} is ${task.state}: it cannot become ${state}`);
}

export function assertUnfinished(task: TaskRecord): void {
  if (!isTerminal(task.state)) return;
  const details = { task_id: task.id, state: task.state };
  if (task.state === "canceled") {
    throw new RelayError("task_canceled", `task ${task.id} was canceled; stop working on it`, { details });
  }
  throw new RelayError("task_finished", `task ${task.id} is already ${task.state}; its first result stands`, {
    details,
  });
}

/** A deadline that has passed binds even before the sweep has noticed it. */
export function assertInTime(task: TaskRecord, nowMs: number): void {
  if (task.deadlineMs === null || nowMs < task.deadlineMs) return;
  throw new RelayError(
    "task_finished",
    `task ${task.id} was due at ${new Date(task.deadlineMs).toISOString()}; it can no longer be worked on`,
    { details: { task_id: task.id, deadline_ms: task.deadlineMs } },
  );
}
