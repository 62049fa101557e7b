import type { Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { Throttle } from "./throttle.ts";

/** What one poll of a followed mailbox, task or journal found. */
export interface PollResult<Page> {
  readonly page: Page;
  /** Nothing is new; the page serves only as a heartbeat. */
  readonly isEmpty: boolean;
  /** More is available at once: the next poll waits for the throttle only. */
  readonly hasMore?: boolean;
  /** Nothing can come after this page. */
  readonly isLast?: boolean;
  /** Polls again after this time, also without a change. */
  readonly againMs?: number | undefined;
}

export interface Followed<Page> {
  /** Opened before the first poll, disposed of after the last. */
  readonly watch: Watch;
  readonly clock: Clock;
  /** Shared by all followers. */
  readonly throttle: Throttle;
  /** How often an idle follower gets an empty page. */
  readonly heartbeatMs: number;
  readonly signal: AbortSignal | undefined;
  /** Reads what came after the poll before. A call means that the follower took the page of that poll. */
  poll(): Promise<PollResult<Page>>;
  /** Throws when the follower may read no further, for instance because its key was revoked. */
  assertAllowed(): Promise<void>;
  /** Called once, after the last poll. */
  end?(): Promise<void>;
}

/**
 * Polls, yields a page and waits for a change. The first page comes at once, also an empty one. The next page is read
 * only when the last one was taken, so that a slow follower holds one page. Ends when the signal is aborted; throws
 * when a poll fails.
 */
export function follow<Page>(followed: Followed<Page>): AsyncIterableIterator<Page, undefined> {
  const { signal, watch } = followed;
  // A follower that leaves before its first page must not leave its watch open.
  if (signal?.aborted === true) watch[Symbol.dispose]();
  // Disposing of the watch ends its wait.
  else signal?.addEventListener("abort", () => watch[Symbol.dispose](), { once: true });
  return new Follower(followed);
}

/** Not a generator: a suspended generator would keep the page that it has yielded in memory. */
class Follower<Page> implements AsyncIterableIterator<Page, undefined> {
  readonly #followed: Followed<Page>;
  /** The last poll, without its page. */
  #last: Required<Omit<PollResult<Page>, "page">> | undefined;
  #isHeartbeatDue = true;
  #yieldedAtMs = 0;
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
        const { page, isEmpty, hasMore = false, isLast = false, againMs } = await this.#followed.poll();
        this.#last = { isEmpty, hasMore, isLast, againMs };
        if (isEmpty && (!this.#isHeartbeatDue || isLast)) continue;
        this.#isHeartbeatDue = false;
        this.#yieldedAtMs = this.#followed.clock.nowMs();
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

  /** Waits until the next poll is due; false at the end. */
  async #goesOn(): Promise<boolean> {
    const { throttle, signal, watch } = this.#followed;
    if (this.#last === undefined) return signal?.aborted !== true;
    const { isEmpty, hasMore, isLast, againMs } = this.#last;
    if (isLast) return false;
    if (hasMore) {
      await throttle.step();
      this.#isHeartbeatDue = this.#heartbeatDueMs === 0;
    } else if (isEmpty) {
      // After a page with content the next poll comes at once: something may have arrived meanwhile.
      const hasChanged = await watch.changed({ timeoutMs: againMs ?? this.#heartbeatDueMs });
      this.#isHeartbeatDue = hasChanged ? this.#heartbeatDueMs === 0 : againMs === undefined;
    }
    if (signal?.aborted === true || this.#isOver) return false;
    await this.#followed.assertAllowed();
    return true;
  }

  /** Time until the next heartbeat is due, counted from the last page. */
  get #heartbeatDueMs(): number {
    const { clock, heartbeatMs } = this.#followed;
    const sinceMs = clock.nowMs() - this.#yieldedAtMs;
    return Math.min(heartbeatMs, Math.max(0, heartbeatMs - sinceMs));
  }
}
