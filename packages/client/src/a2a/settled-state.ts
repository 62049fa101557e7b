import type { A2aState, A2aStreamResponse } from "@a2a-relay/protocol";

const TERMINAL: readonly A2aState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];
const INTERRUPTED: readonly A2aState[] = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"];

/** The task is over. */
export function isTerminalState(state: A2aState | undefined): boolean {
  return state !== undefined && TERMINAL.includes(state);
}

/** The agent does nothing more by itself: the task is over, or somebody else has to act. */
export function isSettledState(state: A2aState | undefined): boolean {
  return isTerminalState(state) || (state !== undefined && INTERRUPTED.includes(state));
}

/** The state of the task of which the event tells, if it tells of that. */
export function stateOf({ task, statusUpdate }: A2aStreamResponse): A2aState | undefined {
  return (task ?? statusUpdate)?.status.state;
}

export function taskIdOf({
  task,
  message,
  statusUpdate,
  artifactUpdate,
}: A2aStreamResponse): string | undefined {
  return task?.id ?? statusUpdate?.taskId ?? artifactUpdate?.taskId ?? message?.taskId;
}
