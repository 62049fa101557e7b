/** Removed places that are kept until they are worth a compaction. */
const GAPS_MIN = 64;
/** No delivery has this ref. */
const GAP = 0;

export interface AvailablePlace {
  readonly position: number;
  readonly ref: number;
}

/**
 * The available mail of one mailbox, by position. New mail comes in at the end and mostly leaves at the
 * front, so two arrays with gaps do what a tree would, in 16 bytes a letter.
 */
export class AvailableMail {
  #positions: number[] = [];
  #refs: number[] = [];
  #start = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(position: number, ref: number): void {
    this.#size += 1;
    const last = this.#positions.at(-1);
    if (last === undefined || last < position) {
      this.#positions.push(position);
      this.#refs.push(ref);
      return;
    }
    // Only a rollback gives mail its old place back.
    const index = this.#indexFrom(position);
    const isKnownPlace = this.#positions[index] === position;
    this.#positions.splice(index, isKnownPlace ? 1 : 0, position);
    this.#refs.splice(index, isKnownPlace ? 1 : 0, ref);
    this.#start = Math.min(this.#start, index);
  }

  remove(position: number): void {
    const index = this.#indexFrom(position);
    if (this.#positions[index] !== position || this.#refs[index] === GAP) return;
    this.#refs[index] = GAP;
    this.#size -= 1;
    while (this.#refs[this.#start] === GAP) this.#start += 1;
    const gaps = this.#refs.length - this.#size;
    if (gaps > GAPS_MIN && gaps > this.#size) this.#compact();
  }

  /** The oldest mail after the position. */
  next(afterPosition: number): AvailablePlace | undefined {
    let index = afterPosition <= 0 ? this.#start : this.#indexFrom(afterPosition + 1);
    while (this.#refs[index] === GAP) index += 1;
    const position = this.#positions[index];
    const ref = this.#refs[index];
    return position === undefined || ref === undefined ? undefined : { position, ref };
  }

  /** The first index whose position is not before the given one. */
  #indexFrom(position: number): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#positions[middle] ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compact(): void {
    const kept = (_: number, index: number): boolean => this.#refs[index] !== GAP;
    this.#positions = this.#positions.filter(kept);
    this.#refs = this.#refs.filter(kept);
    this.#start = 0;
  }
}
