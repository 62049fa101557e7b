import type { Clock } from "../ports/clock.ts";
import type { Identifiers, Randomness } from "../ports/ids.ts";

const POOL_IDS = 256;
const RANDOM_BYTES = 8;
const HEX_2 = hexTable(2);
const HEX_3 = hexTable(3);

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
  /** The part of the id that all ids of `#lastMs` share. */
  #timeDigits = "";

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
    if (nowMs > this.#lastMs) {
      this.#startMillisecond(nowMs);
    } else if (this.#counter === 0xfff) {
      this.#startMillisecond(this.#lastMs + 1);
    } else {
      this.#counter += 1;
    }
    return `${this.#timeDigits}${HEX_3[this.#counter] ?? ""}-${this.#random()}`;
  }

  #startMillisecond(ms: number): void {
    this.#lastMs = ms;
    this.#counter = 0;
    this.#timeDigits = timeDigits(ms);
  }

  /** 16 hexadecimal digits that begin with the variant bits of a UUID, parted as a UUID's last two groups. */
  #random(): string {
    if (this.#poolOffset === this.#pool.length) {
      this.#fill(this.#pool);
      this.#poolOffset = 0;
    }
    const start = this.#poolOffset;
    this.#poolOffset += RANDOM_BYTES;
    let digits = HEX_2[((this.#pool[start] ?? 0) & 0x3f) | 0x80] ?? "";
    for (let index = 1; index < RANDOM_BYTES; index += 1) {
      if (index === 2) digits += "-";
      digits += HEX_2[this.#pool[start + index] ?? 0] ?? "";
    }
    return digits;
  }
}

/** How the ids of a millisecond begin: before all of them, and behind all earlier ones. */
export function timeDigits(ms: number): string {
  const upper = Math.floor(ms / LOWER_DIGITS_MS);
  if (lastUpper.value !== upper) lastUpper = { value: upper, digits: upper.toString(16).padStart(8, "0") };
  const rest = ms % LOWER_DIGITS_MS;
  return `${lastUpper.digits}-${HEX_2[rest >>> 8] ?? ""}${HEX_2[rest & 0xff] ?? ""}-7`;
}

/** What the lower four digits of the time can count: about a minute, for which the upper eight are remembered. */
const LOWER_DIGITS_MS = 0x1_0000;
let lastUpper = { value: -1, digits: "" };

/** All numbers of so many hexadecimal digits, in order. */
function hexTable(digits: number): readonly string[] {
  return Array.from({ length: 16 ** digits }, (_, value) => value.toString(16).padStart(digits, "0"));
}
