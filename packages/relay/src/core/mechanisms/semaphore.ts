/** Lets only so many acts run at one time; the others wait in the order they came. */
export class Semaphore {
  readonly #runningMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(runningMax: number) {
    this.#runningMax = runningMax;
  }

  async run<Result>(act: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#runningMax) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await act();
    } finally {
      // Whoever comes next takes over this place.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
