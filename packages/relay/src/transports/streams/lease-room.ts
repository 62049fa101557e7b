import type { MailboxMessage } from "../../core/ports/deliveries.ts";

/** Room for leased messages that have not left yet: for those of one answer, however many ask for some. */
export class LeaseRoom {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /** For one request. */
  place(): LeasePlace {
    return new LeasePlace(this);
  }

  /** For `LeasePlace` only: resolves once there is room. */
  enter(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#isTaken) this.#waiting.push(resolve);
    else resolve();
    this.#isTaken = true;
    return promise;
  }

  /** For `LeasePlace` only. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }
}

/** Whoever got messages keeps the room until it is disposed of; whoever got none waits without it. */
export class LeasePlace implements Disposable {
  readonly #room: LeaseRoom;
  #isInside = false;

  constructor(room: LeaseRoom) {
    this.#room = room;
  }

  async fill(take: () => Promise<readonly MailboxMessage[]>): Promise<readonly MailboxMessage[]> {
    await this.#room.enter();
    this.#isInside = true;
    let mail: readonly MailboxMessage[] = [];
    try {
      mail = await take();
      return mail;
    } finally {
      if (mail.length === 0) this[Symbol.dispose]();
    }
  }

  [Symbol.dispose](): void {
    if (!this.#isInside) return;
    this.#isInside = false;
    this.#room.leave();
  }
}
