import type { A2aState, A2aStreamResponse } from "@a2a-relay/protocol";

/** One event of a stream, in 1.0, and what to come back with if the agent numbers its events. */
export type A2aStreamEvent = A2aStreamResponse & { readonly eventId?: string };

/** Events as they come; undefined once there are no more. `unavailable` when the connection broke. */
export interface A2aEventSource {
  /** How long the agent asks to wait before coming back. */
  readonly retryMs?: number | undefined;
  next(): Promise<A2aStreamEvent | undefined>;
  /** Hangs up. Harmless when it has ended. */
  cancel(): void;
}

/** An agent that answers at once where a stream was asked for. */
export class SingleEventSource implements A2aEventSource {
  #event: A2aStreamEvent | undefined;

  constructor(event: A2aStreamEvent) {
    this.#event = event;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const event = this.#event;
    this.#event = undefined;
    return event;
  }

  cancel(): void {
    this.#event = undefined;
  }
}

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
