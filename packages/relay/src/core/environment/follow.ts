import { RelayError } from "@a2a-relay/protocol";
import type { Watch } from "./change-feed.ts";
import type { Pace } from "./pace.ts";

/** One look at what is followed. */
export interface Sight<Page> {
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
  /** Shared with all others who follow something. */
  readonly pace: Pace;
  /** How often there is a sign of life when nothing happens. */
  readonly pulseMs: number;
  readonly signal: AbortSignal | undefined;
  /** What came after the look before. Asking for it means that the page of that look was taken. */
  look(): Promise<Sight<Page>>;
  /** Throws when the follower may not know what comes from now on. */
  stillAllowed(): Promise<void> | undefined;
  /** Called after the last look, if somebody asks for what comes after it. */
  end?(): Promise<void>;
}

/**
 * Looks, shows, and waits for a change: the walk of everybody who follows a mailbox, a task or the journal. The
 * first page comes at once, also an empty one. Nothing is read before the page before it was taken, so that a slow
 * follower holds one page and no more. Ends when the signal is aborted or the store closes.
 */
export function follow<Page>(followed: Followed<Page>): AsyncIterable<Page> {
  const { signal, watch } = followed;
  // Whoever hangs up before it asks for the first page leaves no watch behind.
  if (signal?.aborted === true) watch[Symbol.dispose]();
  else signal?.addEventListener("abort", () => watch[Symbol.dispose](), { once: true });
  return walk(followed);
}

async function* walk<Page>(followed: Followed<Page>): AsyncGenerator<Page, void, undefined> {
  using watch = followed.watch;
  try {
    yield* pagesOf(followed, watch);
  } finally {
    await followed.end?.();
  }
}

async function* pagesOf<Page>(followed: Followed<Page>, watch: Watch): AsyncGenerator<Page, void, undefined> {
  const { pace, pulseMs, signal } = followed;
  let owesSign = true;
  while (!isOver(signal)) {
    const sight = await lookAt(followed);
    if (sight === undefined) return;
    const { page, isEmpty, hasMore = false, isLast = false, againMs = pulseMs } = sight;
    if (!isEmpty || (owesSign && !isLast)) {
      yield page;
      owesSign = false;
    }
    if (isLast) return;
    if (hasMore) await pace.step();
    // Whoever was shown something looks again at once: something may have come meanwhile.
    else if (isEmpty) {
      owesSign = !(await watch.changed({ timeoutMs: againMs, signal })) && againMs === pulseMs;
    }
    if (!isOver(signal)) await followed.stillAllowed();
  }
}

/** Undefined when the store has closed. */
async function lookAt<Page>(followed: Followed<Page>): Promise<Sight<Page> | undefined> {
  try {
    return await followed.look();
  } catch (reason) {
    if (RelayError.from(reason).code === "unavailable") return undefined;
    throw reason;
  }
}

/** Asked anew after every wait, which the compiler cannot know. */
function isOver(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
