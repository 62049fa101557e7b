import type { A2aState, A2aStreamResponse } from "@a2a-relay/protocol";

/** One event of a stream, in 1.0, with its id if the agent numbers its events. */
export type A2aStreamEvent = A2aStreamResponse & { readonly eventId?: string };

/**
 * Events of a task. `next` resolves with undefined at the end, and rejects with `unavailable` when the connection
 * broke.
 */
export interface A2aEventSource {
  /** The reconnect delay that the agent asks for. */
  readonly retryMs?: number | undefined;
  next(): Promise<A2aStreamEvent | undefined>;
  /** May be called after the end. */
  cancel(): void;
}

/** The answer of an agent that does not stream. */
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

/** The task is over, or waits for its requester. */
export function isSettledState(state: A2aState | undefined): boolean {
  return isTerminalState(state) || (state !== undefined && INTERRUPTED.includes(state));
}

/** The state of the task, if the event has one. */
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
