import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { ChangeFeed, Topic, Watch, WatchOptions } from "../../core/ports/change-feed.ts";

/** Timeouts are rounded up to this, so that one timer serves all watches. */
const TICK_MS = 50;

/** The change feed of one process. A watch costs one small object and no timer. */
export class InProcessChangeFeed implements ChangeFeed, Disposable {
  readonly #topics = new Map<Topic, Set<TopicWatch>>();
  readonly #deadlines = new Map<number, Set<TopicWatch>>();
  #readerCount = 0;
  #nextTick = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  watch(topic: Topic, { isOwn = false }: WatchOptions = {}): Watch {
    if (this.#closed) throw new RelayError("unavailable", "the relay is stopping");
    if (!isOwn && this.#readerCount >= LIMITS.waitsMax) {
      throw new RelayError(
        "resource_exhausted",
        `${LIMITS.waitsMax} readers are waiting already; ask again without waiting, or later`,
      );
    }
    const watch = new TopicWatch(this, topic, isOwn);
    const watches = this.#topics.get(topic);
    if (watches === undefined) this.#topics.set(topic, new Set([watch]));
    else watches.add(watch);
    if (!isOwn) this.#readerCount += 1;
    return watch;
  }

  notify(topics: readonly Topic[]): void {
    for (const topic of topics) {
      for (const watch of this.#topics.get(topic) ?? []) watch.notify();
    }
  }

  notifyAll(): void {
    this.notify([...this.#topics.keys()]);
  }

  /** Ends every wait with false. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const watches of this.#topics.values()) {
      for (const watch of watches) watch[Symbol.dispose]();
    }
  }

  /** For `TopicWatch` only. */
  forget(watch: TopicWatch): void {
    const watches = this.#topics.get(watch.topic);
    if (watches?.delete(watch) !== true) return;
    if (watches.size === 0) this.#topics.delete(watch.topic);
    if (!watch.isOwn) this.#readerCount -= 1;
  }

  /** For `TopicWatch` only: ends its wait at the timeout. Answers the tick to cancel it by, if there is one. */
  expire(watch: TopicWatch, timeoutMs: number): number | undefined {
    if (timeoutMs === Infinity) return undefined;
    const tick = Math.ceil((performance.now() + timeoutMs) / TICK_MS);
    const watches = this.#deadlines.get(tick);
    if (watches === undefined) this.#deadlines.set(tick, new Set([watch]));
    else watches.add(watch);
    if (this.#timer === undefined) {
      this.#nextTick = Math.floor(performance.now() / TICK_MS);
      this.#timer = setInterval(() => this.#tick(), TICK_MS);
    }
    return tick;
  }

  /** For `TopicWatch` only. */
  cancel(watch: TopicWatch, tick: number | undefined): void {
    if (tick === undefined) return;
    const watches = this.#deadlines.get(tick);
    watches?.delete(watch);
    if (watches?.size === 0) this.#deadlines.delete(tick);
    if (this.#deadlines.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = Math.floor(performance.now() / TICK_MS);
    for (; this.#nextTick <= now; this.#nextTick += 1) {
      for (const watch of this.#deadlines.get(this.#nextTick) ?? []) watch.end(false);
    }
  }
}

interface Wait {
  readonly resolve: (changed: boolean) => void;
  /** Absent: it waits without a timeout. */
  readonly tick: number | undefined;
  readonly signal: AbortSignal | undefined;
}

class TopicWatch implements Watch {
  readonly topic: Topic;
  readonly isOwn: boolean;
  readonly #feed: InProcessChangeFeed;
  readonly #onAbort = (): void => this.end(false);
  #changed = false;
  #disposed = false;
  #wait: Wait | undefined;

  constructor(feed: InProcessChangeFeed, topic: Topic, isOwn: boolean) {
    this.#feed = feed;
    this.topic = topic;
    this.isOwn = isOwn;
  }

  changed(options: {
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<boolean> {
    this.end(false);
    if (this.#changed) {
      this.#changed = false;
      return Promise.resolve(true);
    }
    const isOver = this.#disposed || options.timeoutMs <= 0 || options.signal?.aborted === true;
    if (isOver) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const tick = this.#feed.expire(this, options.timeoutMs);
    this.#wait = { resolve, tick, signal: options.signal };
    options.signal?.addEventListener("abort", this.#onAbort, { once: true });
    return promise;
  }

  notify(): void {
    if (this.#wait === undefined) this.#changed = true;
    else this.end(true);
  }

  end(changed: boolean): void {
    const wait = this.#wait;
    if (wait === undefined) return;
    this.#wait = undefined;
    this.#feed.cancel(this, wait.tick);
    wait.signal?.removeEventListener("abort", this.#onAbort);
    wait.resolve(changed);
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.end(false);
    this.#feed.forget(this);
  }
}
