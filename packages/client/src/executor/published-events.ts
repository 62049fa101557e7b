import type { AgentExecutionEvent, ExecutionEventBus } from "@a2a-js/sdk/server";
import { onAbort } from "../http/abort.ts";

/** What an executor has published and nobody has taken yet, in order. */
export class PublishedEvents {
  readonly #signal: AbortSignal;
  readonly #events: AgentExecutionEvent[] = [];
  /** Takes nothing from the bus any more. */
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

  /** How many have not been taken. */
  get waiting(): number {
    return this.#events.length;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Nothing that is published from now on is taken. */
  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Undefined when there will be no more. Rejects when the signal is aborted. */
  async next(): Promise<AgentExecutionEvent | undefined> {
    for (;;) {
      this.#signal.throwIfAborted();
      const event = this.#events.shift();
      if (event !== undefined || this.#isOver) return event;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** What can be had at once, up to the first that does not fit. */
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
