/** Listeners are spread over the interval, so that many of them do not act at the same moment. */
const SLOTS = 16;

/** Calls every listener once per interval, with one timer for all of them. */
export class HeartbeatTimer {
  readonly #intervalMs: number;
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<() => void>());
  #timer: NodeJS.Timeout | undefined;
  #next = 0;
  #added = 0;
  #count = 0;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** Returns a function that removes the listener. */
  add(listener: () => void): () => void {
    // A wrapper, so that the same listener may be added twice.
    const own = (): void => listener();
    const slot = this.#slots[this.#added % SLOTS];
    slot?.add(own);
    this.#added += 1;
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
    for (const listener of this.#slots[this.#next] ?? []) listener();
    this.#next = (this.#next + 1) % SLOTS;
  }
}
