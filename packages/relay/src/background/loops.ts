import { setMaxListeners } from "node:events";
import { setTimeout as after } from "node:timers/promises";
import type { Watch } from "../core/ports/change-feed.ts";

/** Waits so long, or until the signal aborts. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

export const pause: Pause = async (ms, signal) => {
  await after(ms, undefined, { signal, ref: false }).catch(() => undefined);
};

/** Waits after failures of the relay itself, such as a full disk: 1 second, then twice as long each time. */
export class Backoff {
  readonly #report: (reason: unknown) => void;
  readonly #signal: AbortSignal;
  readonly #pause: Pause;
  readonly #msMax: number;
  #failures = 0;

  constructor(options: {
    readonly report: (reason: unknown) => void;
    readonly signal: AbortSignal;
    readonly pause?: Pause | undefined;
    readonly msMax?: number | undefined;
  }) {
    this.#report = options.report;
    this.#signal = options.signal;
    this.#pause = options.pause ?? pause;
    this.#msMax = options.msMax ?? BACKOFF_MS_MAX;
  }

  /** Reports the failure, then waits. */
  async failed(reason: unknown): Promise<void> {
    this.#report(reason);
    const waitMs = Math.min(BACKOFF_MS_MIN * 2 ** this.#failures, this.#msMax);
    this.#failures += 1;
    await this.#pause(waitMs, this.#signal);
  }

  reset(): void {
    this.#failures = 0;
  }
}

const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 60_000;

/** Polls take at most this share of the time, however much is due. */
const POLL_SHARE = 1 / 20;

export interface PollWork {
  /** Called before the first poll, so that no change between the two is missed. */
  watch(): Watch;
  /** Begins what is due. Returns how long nothing else is due, unless the store changes. */
  poll(): Promise<number>;
  readonly report: (reason: unknown) => void;
  /** Time between two polls at least. Default 0. */
  readonly pollMsMin?: number;
  readonly backoffMsMax?: number;
  readonly pause?: Pause | undefined;
}

/** Polls when the store changes, when work is due, and when it is woken, until it is stopped or the store closes. */
export class PollLoop implements AsyncDisposable {
  readonly backoff: Backoff;
  readonly #work: PollWork;
  readonly #pause: Pause;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #sleep = new AbortController();
  #isWoken = false;

  constructor(work: PollWork) {
    this.#work = work;
    this.#pause = work.pause ?? pause;
    // Every request under way listens to it.
    setMaxListeners(0, this.signal);
    const { report, backoffMsMax: msMax } = work;
    this.backoff = new Backoff({ report, signal: this.signal, pause: work.pause, msMax });
    this.#running = this.#run();
  }

  /** Aborts when the loop is stopped. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Waits so long, or until the loop is stopped. */
  pause(ms: number): Promise<void> {
    return this.#pause(ms, this.signal);
  }

  /** Polls again soon. */
  wake(): void {
    this.#isWoken = true;
    this.#sleep.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    // The constructor of the owner must end before the first poll.
    await Promise.resolve();
    while (!this.signal.aborted) {
      try {
        if (!(await this.#watchAndPoll())) return;
      } catch (reason) {
        await this.backoff.failed(reason);
      }
    }
  }

  /** False when there is nothing more to wait for. */
  async #watchAndPoll(): Promise<boolean> {
    const { pollMsMin = 0 } = this.#work;
    using watch = this.#work.watch();
    while (!this.signal.aborted) {
      this.#isWoken = false;
      const startMs = performance.now();
      const waitMs = await this.#work.poll();
      await this.#pause(Math.max(pollMsMin, (performance.now() - startMs) / POLL_SHARE), this.signal);
      if (this.#isWoken || this.signal.aborted) continue;
      this.#sleep = new AbortController();
      const hasChanged = await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
      // No change, no time, not woken: the store has closed.
      if (!hasChanged && !this.#isWoken && waitMs === Infinity) return false;
    }
    return false;
  }
}

/** Runs a step at an interval, never two at once, until it is stopped. Reports a failed step and continues. */
export class IntervalLoop implements AsyncDisposable {
  readonly #step: () => Promise<boolean>;
  readonly #intervalMs: number;
  readonly #report: (reason: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `step` returns true when there is more to do at once. */
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
