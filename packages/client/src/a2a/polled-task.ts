import type { A2aTask } from "@a2a-relay/protocol";
import type { CallOptions } from "../http-exchange.ts";
import { pause } from "../pause.ts";
import type { A2aEventSource, A2aStreamEvent } from "./agent-binding.ts";
import { isSettledState, stateOf } from "./settled-state.ts";

export interface PolledTaskParts {
  readonly taskId: string;
  readonly getTask: (taskId: string, options: CallOptions) => Promise<A2aTask>;
  readonly pollMs: number;
  /** What is known of the task already, and comes first. */
  readonly first?: A2aStreamEvent | undefined;
}

/** So many times the first pause becomes the longest. */
const GROWTH_MAX = 10;
const GROWTH = 1.5;

/** A task as a stream, of an agent that has none: the task comes each time it has changed, until it is settled. */
export class PolledTask implements A2aEventSource {
  readonly #parts: PolledTaskParts;
  readonly #options: CallOptions;
  #seen: string | undefined;
  #isSettled = false;
  #looks = 0;

  constructor(parts: PolledTaskParts, options: CallOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const { first } = this.#parts;
    if (this.#seen === undefined && first !== undefined) return this.#show(first);
    while (!this.#isSettled) {
      if (this.#seen !== undefined) await pause(this.#pauseMs(), this.#options);
      const task = await this.#parts.getTask(this.#parts.taskId, this.#options);
      if (JSON.stringify(task) !== this.#seen) return this.#show({ task });
    }
    return undefined;
  }

  cancel(): void {
    this.#isSettled = true;
  }

  #show(event: A2aStreamEvent): A2aStreamEvent {
    this.#seen = JSON.stringify(event.task);
    this.#isSettled = isSettledState(stateOf(event));
    return event;
  }

  #pauseMs(): number {
    const { pollMs } = this.#parts;
    this.#looks += 1;
    return Math.min(pollMs * GROWTH ** (this.#looks - 1), pollMs * GROWTH_MAX);
  }
}
