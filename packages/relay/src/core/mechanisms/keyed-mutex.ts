import type { Clock } from "../ports/clock.ts";
import { joinedKey } from "./joined-key.ts";

/**
 * One mutex per key, for callers of this process that change the same record: each reads what the one before it wrote,
 * so that they do not clash. It only saves retries: versions keep the records right, also against other relays on the
 * same store. The queue is never longer than the number of open requests.
 */
export class KeyedMutex {
  readonly #clock: Clock;
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys that are locked now. */
  get lockedCount(): number {
    return this.#last.size;
  }

  /** A function that runs an act under the mutex of these names. */
  at(...names: readonly string[]): <Answer>(act: () => Promise<Answer>) => Promise<Answer> {
    return (act) => this.run(joinedKey(...names), act);
  }

  /** Runs `act` after all earlier acts with the same key have ended, also those that failed. */
  async run<Answer>(key: string, act: () => Promise<Answer>): Promise<Answer> {
    const before = this.#last.get(key);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last.set(key, ended);
    try {
      if (before !== undefined) {
        await before;
        // Lets callers retry that clashed without the mutex, such as a message about the same task.
        await this.#clock.nextTurn();
      }
      return await act();
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
      end();
    }
  }
}
