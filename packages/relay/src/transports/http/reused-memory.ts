const KIB = 1024;
const MIB = 1024 * KIB;

/** What is smaller costs the garbage collector little. */
const REUSED_BYTES_MIN = 64 * KIB;
/** What is larger is too rare to be kept for. */
const REUSED_BYTES_MAX = 1 * MIB;
/** What lies ready of one size while nobody needs it, at most. */
const IDLE_BYTES_MAX = 8 * MIB;
/** What one unit of a JavaScript text needs in UTF-8, at most. */
const UNIT_BYTES_MAX = 3;

/**
 * Memory for large bodies and answers, which is used again. Of what is made anew for each of them the engine soon finds
 * that there is a lot, and goes through its whole heap to see what may be let go.
 */
export class ReusedMemory {
  /** By size; each has a room of its own, so that nobody can fill that of the others. */
  readonly #idle = new Map<number, Buffer[]>();

  get idleBytes(): number {
    return [...this.#idle].reduce((sum, [size, idle]) => sum + size * idle.length, 0);
  }

  /** So many bytes, in which there still is what was there before: fill them all. */
  take(length: number): Piece {
    if (length < REUSED_BYTES_MIN || length > REUSED_BYTES_MAX) return new Piece(Buffer.allocUnsafe(length));
    const size = sizeFor(length);
    const memory = this.#idle.get(size)?.pop() ?? Buffer.allocUnsafeSlow(size);
    return new Piece(memory.subarray(0, length), () => this.#keep(memory));
  }

  /** Texts one after the other. They are measured only where guessing could waste much. */
  write(texts: readonly string[]): Piece {
    const most = UNIT_BYTES_MAX * texts.reduce((sum, text) => sum + text.length, 0);
    const isExact = most > REUSED_BYTES_MAX;
    const piece = this.take(isExact ? texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) : most);
    let end = 0;
    for (const text of texts) end += piece.bytes.write(text, end);
    piece.cutTo(end);
    return piece;
  }

  #keep(memory: Buffer): void {
    const size = memory.length;
    const idle = this.#idle.get(size) ?? [];
    if ((idle.length + 1) * size <= IDLE_BYTES_MAX) idle.push(memory);
    this.#idle.set(size, idle);
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

  /** The first so many bytes of it: behind them there is what was there before. */
  cutTo(length: number): void {
    this.#bytes = this.bytes.subarray(0, length);
  }

  /** Only when nobody will look at the bytes any more. Once is enough, and more is no harm. */
  giveBack(): void {
    if (this.#bytes === undefined) return;
    this.#bytes = undefined;
    this.#giveBack?.();
  }
}
