/** Those who have a pulse are spread over it, so that many of them do not all act in one moment. */
const SLOTS = 16;

/** Calls everybody once in each interval, with one timer for all of them. */
export class Pulses {
  readonly #intervalMs: number;
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<() => void>());
  #timer: NodeJS.Timeout | undefined;
  #next = 0;
  #joined = 0;
  #count = 0;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** Answers how to leave. */
  join(beat: () => void): () => void {
    // A function of its own, so that the same one may join twice.
    const own = (): void => beat();
    const slot = this.#slots[this.#joined % SLOTS];
    slot?.add(own);
    this.#joined += 1;
    this.#count += 1;
    this.#timer ??= setInterval(() => this.#beat(), Math.max(1, this.#intervalMs / SLOTS));
    return () => {
      if (slot?.delete(own) !== true) return;
      this.#count -= 1;
      if (this.#count > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #beat(): void {
    for (const beat of this.#slots[this.#next] ?? []) beat();
    this.#next = (this.#next + 1) % SLOTS;
  }
}
