import type { Clock } from "../ports/clock.ts";
import type { Identifiers, Randomness } from "../ports/ids.ts";

const RANDOM_BYTES = 8;
/** Ids whose randomness is drawn at once: a draw costs 3 µs, whatever its length. */
const DRAWN_IDS = 256;

/**
 * UUIDv7: 48 bits of milliseconds, a 12-bit counter that keeps ids of one millisecond in order, 62 random
 * bits. A clock that steps back, or a millisecond with more than 4,096 ids, does not break the order.
 */
export class TimeOrderedIds implements Identifiers {
  readonly #clock: Clock;
  readonly #fill: Randomness;
  readonly #random = Buffer.alloc(DRAWN_IDS * RANDOM_BYTES);
  #used = this.#random.length;
  #lastMs = 0;
  #counter = 0;

  constructor(clock: Clock, fill: Randomness) {
    this.#clock = clock;
    this.#fill = fill;
  }

  agent(): string {
    return `urn:uuid:${this.#next()}`;
  }

  capability(): string {
    return `cap_${this.#next()}`;
  }

  key(): string {
    return `key_${this.#next()}`;
  }

  lease(): string {
    return this.#next();
  }

  message(): string {
    return `msg_${this.#next()}`;
  }

  pushConfig(): string {
    return `push_${this.#next()}`;
  }

  task(): string {
    return this.#next();
  }

  thread(): string {
    return `thread_${this.#next()}`;
  }

  #next(): string {
    const nowMs = this.#clock.nowMs();
    if (nowMs > this.#lastMs || this.#counter === 0xfff) {
      this.#lastMs = Math.max(nowMs, this.#lastMs + 1);
      this.#counter = 0;
    } else {
      this.#counter += 1;
    }
    if (this.#used === this.#random.length) {
      this.#fill(this.#random);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += RANDOM_BYTES;
    // The variant bits of a UUID.
    this.#random[start] = ((this.#random[start] ?? 0) & 0x3f) | 0x80;
    const counter = this.#counter.toString(16).padStart(3, "0");
    const random = this.#random.toString("hex", start, this.#used);
    return `${timeDigits(this.#lastMs)}${counter}-${random.slice(0, 4)}-${random.slice(4)}`;
  }
}

/** The beginning of all ids of a millisecond; sorts after the ids of every earlier one. */
export function timeDigits(ms: number): string {
  const digits = ms.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7`;
}
