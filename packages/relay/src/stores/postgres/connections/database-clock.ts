/**
 * The clock of the database, which all relays on it share: the clock of this machine, and what the database's is ahead.
 * So the deadlines of one relay mean the same to the others, however wrong the clocks of their machines are.
 */
export class DatabaseClock {
  readonly #localMs: () => number;
  #aheadMs = 0;

  constructor(localMs: () => number) {
    this.#localMs = localMs;
  }

  readonly nowMs = (): number => this.#localMs() + this.#aheadMs;

  /** `ask` returns the time of the database. */
  async adjust(ask: () => Promise<number>): Promise<void> {
    const askedAtMs = this.#localMs();
    const databaseMs = await ask();
    const tookMs = this.#localMs() - askedAtMs;
    const aheadMs = databaseMs - (askedAtMs + tookMs / 2);
    // What cannot be told from the time that question and answer took does not move the clock.
    if (Math.abs(aheadMs - this.#aheadMs) > tookMs / 2 + 1) this.#aheadMs = Math.round(aheadMs);
  }
}
