import type { Clock } from "../ports/clock.ts";

/**
 * Lets callers of this process that change the same thing take turns: each reads what the one before it wrote,
 * so none of them clashes with another. There are never more in a queue than there are requests.
 */
export class KeyedMutex {
  readonly #clock: Clock;
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many things somebody has a turn at. */
  get busy(): number {
    return this.#last.size;
  }

  /** A way to wait for one's turn at what the names stand for. */
  at(...names: readonly string[]): <Answer>(act: () => Promise<Answer>) => Promise<Answer> {
    return (act) => this.take(JSON.stringify(names), act);
  }

  /** Runs `act` once all that came before it with the same key have ended, well or badly. */
  async take<Answer>(key: string, act: () => Promise<Answer>): Promise<Answer> {
    const before = this.#last.get(key);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last.set(key, ended);
    try {
      if (before !== undefined) {
        await before;
        // Whoever clashed without being in the queue, such as mail about the same task, comes first now.
        await this.#clock.nextTurn();
      }
      return await act();
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
      end();
    }
  }
}
