import type { Clock } from "./clock.ts";
import type { Identifiers } from "./identifiers.ts";

/** Fills the array with randomness. */
export type Randomness = (bytes: Uint8Array) => void;

const POOL_IDS = 256;
const RANDOM_BYTES = 8;

/**
 * UUIDv7: 48 bits of milliseconds, a 12-bit counter that keeps ids of one millisecond in order, 62 random
 * bits. A clock that steps back, or a millisecond with more than 4,096 ids, does not break the order.
 */
export class TimeOrderedIds implements Identifiers {
  readonly #clock: Clock;
  readonly #fill: Randomness;
  readonly #pool = new Uint8Array(POOL_IDS * RANDOM_BYTES);
  #poolOffset = this.#pool.length;
  #lastMs = 0;
  #counter = 0;

  constructor(clock: Clock, fill: Randomness) {
    this.#clock = clock;
    this.#fill = fill;
  }

  agent(): string {
    return `urn:uuid:${this.#next()}`;
  }

  lease(): string {
    return this.#next();
  }

  message(): string {
    return `msg_${this.#next()}`;
  }

  task(): string {
    return this.#next();
  }

  thread(): string {
    return `thread_${this.#next()}`;
  }

  #next(): string {
    const nowMs = this.#clock.nowMs();
    if (nowMs > this.#lastMs) {
      this.#lastMs = nowMs;
      this.#counter = 0;
    } else if (this.#counter === 0xfff) {
      this.#lastMs += 1;
      this.#counter = 0;
    } else {
      this.#counter += 1;
    }
    const time = this.#lastMs.toString(16).padStart(12, "0");
    const order = this.#counter.toString(16).padStart(3, "0");
    const random = this.#random();
    return `${time.slice(0, 8)}-${time.slice(8)}-7${order}-${random.slice(0, 4)}-${random.slice(4)}`;
  }

  /** 16 hexadecimal digits that begin with the variant bits of a UUID. */
  #random(): string {
    if (this.#poolOffset === this.#pool.length) {
      this.#fill(this.#pool);
      this.#poolOffset = 0;
    }
    let digits = "";
    for (let index = 0; index < RANDOM_BYTES; index += 1) {
      const byte = this.#pool[this.#poolOffset + index] ?? 0;
      digits += (index === 0 ? (byte & 0x3f) | 0x80 : byte).toString(16).padStart(2, "0");
    }
    this.#poolOffset += RANDOM_BYTES;
    return digits;
  }
}
