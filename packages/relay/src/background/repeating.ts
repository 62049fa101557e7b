/** Runs a step again and again, one at a time, until stopped; a failed step is reported and tried again. */
export class Repeating implements AsyncDisposable {
  readonly #step: () => Promise<boolean>;
  readonly #intervalMs: number;
  readonly #report: (reason: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `step` answers true when there is more to do at once. */
  constructor(
    step: () => Promise<boolean>,
    options: { readonly intervalMs: number; readonly report: (reason: unknown) => void },
  ) {
    this.#step = step;
    this.#intervalMs = options.intervalMs;
    this.#report = options.report;
    this.#schedule(this.#intervalMs);
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, delayMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    let more = false;
    try {
      more = await this.#step();
    } catch (reason) {
      this.#report(reason);
    }
    this.#schedule(more ? 0 : this.#intervalMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }
}
