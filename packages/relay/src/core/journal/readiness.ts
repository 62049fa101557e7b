import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";

const CACHED_MS = 1_000;

/** Ready means that a write really reaches the disk; many probes in one second share one write. */
export class Readiness {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #answer: Promise<void> = Promise.resolve();

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  async check(): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#askedAtMs >= CACHED_MS || nowMs < this.#askedAtMs) {
      this.#askedAtMs = nowMs;
      this.#answer = this.#store.probe(nowMs);
    }
    return this.#answer;
  }
}
