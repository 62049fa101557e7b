import type { AgentExecutionEvent, ExecutionEventBus } from "@a2a-js/sdk/server";
import { onAbort } from "../http/abort.ts";

/** A queue of the events that an executor publishes. */
export class PublishedEvents {
  readonly #signal: AbortSignal;
  readonly #events: AgentExecutionEvent[] = [];
  /** Unsubscribes from the bus. */
  readonly close: () => void;
  #isOver = false;
  #wake = (): void => {};

  constructor(bus: ExecutionEventBus, signal: AbortSignal) {
    this.#signal = signal;
    const add = (event: AgentExecutionEvent): void => {
      if (this.#isOver) return;
      this.#events.push(event);
      this.#wake();
    };
    const finish = (): void => this.end();
    bus.on("event", add).on("finished", finish);
    const unsubscribe = onAbort(signal, () => this.#wake());
    this.close = () => {
      unsubscribe();
      bus.off("event", add).off("finished", finish);
    };
  }

  /** The length of the queue. */
  get count(): number {
    return this.#events.length;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ignores later events. */
  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Undefined at the end. Rejects when the signal is aborted. */
  async next(): Promise<AgentExecutionEvent | undefined> {
    for (;;) {
      this.#signal.throwIfAborted();
      const event = this.#events.shift();
      if (event !== undefined || this.#isOver) return event;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Takes events from the queue, up to the first that does not fit. */
  takeWhile<T extends AgentExecutionEvent>(fits: (event: AgentExecutionEvent) => event is T): readonly T[] {
    const taken: T[] = [];
    for (;;) {
      const [event] = this.#events;
      if (event === undefined || !fits(event)) return taken;
      taken.push(event);
      this.#events.shift();
    }
  }
}
