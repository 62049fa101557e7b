import type { Pause } from "../src/background/loops.ts";

/** Pauses of a second and more, which are backoffs, end when the test says so; shorter ones end at once. */
export class FakePause {
  readonly #ends = new Set<() => void>();

  readonly pause: Pause = async (ms, signal) => {
    if (ms < 1_000 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ends.add(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  };

  /** Ends all backoffs. */
  end(): void {
    for (const end of this.#ends) end();
    this.#ends.clear();
  }
}
