const KIB = 1024;
const MIB = 1024 * KIB;

/** What is smaller costs the garbage collector little. */
const REUSED_BYTES_MIN = 64 * KIB;
/** What is larger is too rare to be kept for. */
const REUSED_BYTES_MAX = 1 * MIB;
/** What lies ready while nobody needs it, at most. */
const IDLE_BYTES_MAX = 16 * MIB;

/**
 * Memory for large bodies and answers, which is used again. The engine counts what lies outside its heap as well: a few
 * hundred batches, each of them there for some moments, and it goes through its whole heap to see what may be let go.
 */
export class ReusedMemory {
  readonly #idle = new Map<number, Buffer[]>();
  #idleBytes = 0;

  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** So many bytes, in which there still is what was there before: fill them all. */
  take(length: number): Piece {
    if (length < REUSED_BYTES_MIN || length > REUSED_BYTES_MAX) return new Piece(Buffer.allocUnsafe(length));
    const size = sizeFor(length);
    const idle = this.#idle.get(size)?.pop();
    if (idle !== undefined) this.#idleBytes -= size;
    const memory = idle ?? Buffer.allocUnsafeSlow(size);
    return new Piece(memory.subarray(0, length), () => this.#keep(memory));
  }

  #keep(memory: Buffer): void {
    if (this.#idleBytes + memory.length > IDLE_BYTES_MAX) return;
    this.#idleBytes += memory.length;
    const idle = this.#idle.get(memory.length);
    if (idle === undefined) this.#idle.set(memory.length, [memory]);
    else idle.push(memory);
  }
}

/** Few sizes, so that what was needed once fits again. */
function sizeFor(length: number): number {
  let size = REUSED_BYTES_MIN;
  while (size < length) size *= 2;
  return size;
}

/** Bytes that are somebody's until they are given back. Whoever forgets to leaves them to the garbage collector. */
export class Piece {
  readonly #giveBack: (() => void) | undefined;
  #bytes: Buffer | undefined;

  constructor(bytes: Buffer, giveBack?: () => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  get bytes(): Buffer {
    if (this.#bytes === undefined)
      throw new Error("these bytes were given back, and may be somebody else's now");
    return this.#bytes;
  }

  /** Only when nobody will look at the bytes any more. Once is enough, and more is no harm. */
  giveBack(): void {
    if (this.#bytes === undefined) return;
    this.#bytes = undefined;
    this.#giveBack?.();
  }
}
