import { setMaxListeners } from "node:events";
import { setTimeout as after } from "node:timers/promises";
import type { Watch } from "../core/ports/change-feed.ts";

/** Where so much falls due that a look takes its time, looks take this part of all time at most. */
const LOOK_SHARE = 1 / 20;

/** What is looked at again whenever something changes, or its time has come. */
export interface WatchedWork {
  /** Watched before the first look, so that nothing that comes between the two is missed. */
  watch(): Watch;
  /** Begins what there is to begin. Answers how long nothing else is, unless something changes. */
  look(): Promise<number>;
  /** After a look that failed, such as for the disk: reports it, and waits before the next. */
  trouble(reason: unknown): Promise<void>;
  /** Time between two looks at least, however much changes. Default 0. */
  readonly lookMsMin?: number;
}

/** Looks, and looks again, until it is stopped or the store closes. */
export class WatchedLoop implements AsyncDisposable {
  readonly #work: WatchedWork;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** Aborted where there is a reason to look again beside what is watched. */
  #sleep = new AbortController();
  #hasNews = false;

  constructor(work: WatchedWork) {
    this.#work = work;
    // Whatever is under way listens to it, and there may be much of it.
    setMaxListeners(0, this.#stopping.signal);
    this.#running = this.#run();
  }

  /** Aborted once it is to stop. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** It is worth looking again. */
  nudge(): void {
    this.#hasNews = true;
    this.#sleep.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.nudge();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Whoever makes it is still being made itself.
    await Promise.resolve();
    while (!this.signal.aborted) {
      try {
        if (!(await this.#watchAndLook())) return;
      } catch (reason) {
        await this.#work.trouble(reason);
      }
    }
  }

  /** False when there is nothing more to wait for. */
  async #watchAndLook(): Promise<boolean> {
    const { lookMsMin = 0 } = this.#work;
    using watch = this.#work.watch();
    while (!this.signal.aborted) {
      this.#hasNews = false;
      const startMs = performance.now();
      const waitMs = await this.#work.look();
      await pause(Math.max(lookMsMin, (performance.now() - startMs) / LOOK_SHARE), this.signal);
      if (this.#hasNews || this.signal.aborted) continue;
      this.#sleep = new AbortController();
      const hasChanged = await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
      // Neither a change, nor the time, nor a reason of our own: the store has closed.
      if (!hasChanged && !this.#hasNews && waitMs === Infinity) return false;
    }
    return false;
  }
}

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

/** Waits for that long, or until there is no more use in waiting. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await after(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
