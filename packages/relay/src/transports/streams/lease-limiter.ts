import type { MailboxMessage } from "../../core/ports/deliveries.ts";

/** Lets one answer of a socket at a time hold leased messages, so that a slow reader leases no more than it takes. */
export class LeaseLimiter {
  readonly #queue: (() => void)[] = [];
  #isTaken = false;

  /** For one request. */
  slot(): LeaseSlot {
    return new LeaseSlot(this);
  }

  /** For `LeaseSlot` only. */
  acquire(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#isTaken) this.#queue.push(resolve);
    else resolve();
    this.#isTaken = true;
    return promise;
  }

  /** For `LeaseSlot` only. */
  release(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }
}

/** A request that leased messages holds the limiter until it is disposed of; one that got none releases it at once. */
export class LeaseSlot implements Disposable {
  readonly #limiter: LeaseLimiter;
  #isHeld = false;

  constructor(limiter: LeaseLimiter) {
    this.#limiter = limiter;
  }

  async fill(take: () => Promise<readonly MailboxMessage[]>): Promise<readonly MailboxMessage[]> {
    await this.#limiter.acquire();
    this.#isHeld = true;
    let messages: readonly MailboxMessage[] = [];
    try {
      messages = await take();
      return messages;
    } finally {
      if (messages.length === 0) this[Symbol.dispose]();
    }
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#limiter.release();
  }
}
