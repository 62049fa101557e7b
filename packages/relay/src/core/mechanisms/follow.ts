import type { Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { Throttle } from "./throttle.ts";

/** One look at what is followed. */
export interface PollResult<Page> {
  readonly page: Page;
  /** There is nothing new on the page; it is only good as a sign of life. */
  readonly isEmpty: boolean;
  /** There is, or may well be, much more behind it, to be looked at step by step. */
  readonly hasMore?: boolean;
  /** Nothing can come after it. */
  readonly isLast?: boolean;
  /** Looks again after so long, whether or not something changed. */
  readonly againMs?: number | undefined;
}

export interface Followed<Page> {
  /** Watched before the first look, and given up with the last. */
  readonly watch: Watch;
  readonly clock: Clock;
  /** Shared with all others who follow something. */
  readonly throttle: Throttle;
  /** How often there is a sign of life when there is nothing to show. */
  readonly pulseMs: number;
  readonly signal: AbortSignal | undefined;
  /** What came after the look before. Asking for it means that the page of that look was taken. */
  look(): Promise<PollResult<Page>>;
  /** Throws when the follower may not know what comes from now on. */
  stillAllowed(): Promise<void>;
  /** Called after the last look, if somebody asks for what comes after it. */
  end?(): Promise<void>;
}

/**
 * Looks, shows, and waits for a change: the walk of everybody who follows a mailbox, a task or the journal. The
 * first page comes at once, also an empty one. Nothing is read before the page before it was taken, so that a slow
 * follower holds one page and no more. Ends when the signal is aborted, and with an error when a look fails.
 */
export function follow<Page>(followed: Followed<Page>): AsyncIterableIterator<Page, undefined> {
  const { signal, watch } = followed;
  // Whoever hangs up before it asks for the first page leaves no watch behind.
  if (signal?.aborted === true) watch[Symbol.dispose]();
  // And whoever hangs up later waits no more: a watch that is given up ends its wait.
  else signal?.addEventListener("abort", () => watch[Symbol.dispose](), { once: true });
  return new Walk(followed);
}

/** Written out, because a generator that waits for its follower would keep the page that it gave away. */
class Walk<Page> implements AsyncIterableIterator<Page, undefined> {
  readonly #followed: Followed<Page>;
  /** What was seen last, without the page. */
  #last: Required<Omit<PollResult<Page>, "page">> | undefined;
  #owesSign = true;
  #shownAtMs = 0;
  #isOver = false;

  constructor(followed: Followed<Page>) {
    this.#followed = followed;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Page, undefined>> {
    if (this.#isOver) return { done: true, value: undefined };
    try {
      while (await this.#goesOn()) {
        const sight = await this.#followed.look();
        const { page, isEmpty, hasMore = false, isLast = false, againMs } = sight;
        this.#last = { isEmpty, hasMore, isLast, againMs };
        if (isEmpty && (!this.#owesSign || isLast)) continue;
        this.#owesSign = false;
        this.#shownAtMs = this.#followed.clock.nowMs();
        return { done: false, value: page };
      }
    } catch (reason) {
      await this.return();
      throw reason;
    }
    return this.return();
  }

  async return(): Promise<IteratorResult<Page, undefined>> {
    const isFirst = !this.#isOver;
    this.#isOver = true;
    this.#followed.watch[Symbol.dispose]();
    if (isFirst) await this.#followed.end?.();
    return { done: true, value: undefined };
  }

  /** Waits for what comes after the last look; false when nothing does. */
  async #goesOn(): Promise<boolean> {
    const { throttle, signal, watch } = this.#followed;
    if (this.#last === undefined) return signal?.aborted !== true;
    const { isEmpty, hasMore, isLast, againMs } = this.#last;
    if (isLast) return false;
    if (hasMore) {
      await throttle.step();
      this.#owesSign = this.#signDueMs === 0;
    } else if (isEmpty) {
      // Whoever was shown something looks again at once: something may have come meanwhile.
      const hasChanged = await watch.changed({ timeoutMs: againMs ?? this.#signDueMs });
      this.#owesSign = hasChanged ? this.#signDueMs === 0 : againMs === undefined;
    }
    if (signal?.aborted === true || this.#isOver) return false;
    await this.#followed.stillAllowed();
    return true;
  }

  /** How long until the follower is owed a sign of life, however much happens that is not for it. */
  get #signDueMs(): number {
    const { clock, pulseMs } = this.#followed;
    const sinceMs = clock.nowMs() - this.#shownAtMs;
    return Math.min(pulseMs, Math.max(0, pulseMs - sinceMs));
  }
}
