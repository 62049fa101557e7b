import type { Outcome } from "./outcome.ts";

/** Enough for hours of lost acknowledgements, small enough to be forgotten about. */
const FINISHED_MAX = 10_000;

/**
 * Messages whose handler has finished but whose outcome the relay has not confirmed. Should one of them be
 * delivered again, its outcome is told again instead of doing the work twice.
 */
export class FinishedMail {
  readonly #outcomes = new Map<string, Outcome>();

  outcome(messageId: string): Outcome | undefined {
    return this.#outcomes.get(messageId);
  }

  remember(messageId: string, outcome: Outcome): void {
    this.#outcomes.set(messageId, outcome);
    if (this.#outcomes.size <= FINISHED_MAX) return;
    const [oldest] = this.#outcomes.keys();
    if (oldest !== undefined) this.#outcomes.delete(oldest);
  }

  forget(messageId: string): void {
    this.#outcomes.delete(messageId);
  }
}
