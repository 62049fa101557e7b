import { setImmediate } from "node:timers/promises";

/** Read in one turn of the event loop: a few milliseconds, so that a long walk holds nobody up. */
const TURN_BYTES = 1024 * 1024;
/** What a row costs beside the message in it. */
const ROW_BYTES = 1024;

/** Counts what a walk has read and lets everybody else have a turn when it was enough. */
export class FairShare {
  #left = TURN_BYTES;

  /** Rows may have changed when it resolves. */
  async spend(rows: number, bytes = 0): Promise<void> {
    this.#left -= rows * ROW_BYTES + bytes;
    if (this.#left > 0) return;
    this.#left = TURN_BYTES;
    await setImmediate();
  }
}
