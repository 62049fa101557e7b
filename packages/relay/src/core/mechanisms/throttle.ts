import type { Clock } from "../ports/clock.ts";

/** Steps of long walks between two looks at what else there is to do. */
const STEPS_MAX = 2;

/**
 * Lets long walks get on step by step, all of them together no faster than leaves room for everybody else: whoever
 * asks for one thing does not wait for thousands who catch up on all they missed.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #isWalking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when it is one's turn to take a step. */
  step(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    if (!this.#isWalking) void this.#walk();
    return promise;
  }

  async #walk(): Promise<void> {
    this.#isWalking = true;
    while (this.#waiting.length > 0) {
      await this.#clock.nextTurn();
      for (const resolve of this.#waiting.splice(0, STEPS_MAX)) resolve();
    }
    this.#isWalking = false;
  }
}
