import type { Clock } from "../ports/clock.ts";

/** Steps between two turns of the event loop. */
const STEPS_MAX = 2;

/**
 * Slows down followers that catch up on much: together they take a few steps per turn of the event loop, so that other
 * requests do not wait behind thousands of them.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #queue: (() => void)[] = [];
  #isRunning = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the caller may take its next step. */
  step(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#queue.push(resolve);
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#queue.length > 0) {
      await this.#clock.nextTurn();
      for (const resolve of this.#queue.splice(0, STEPS_MAX)) resolve();
    }
    this.#isRunning = false;
  }
}
