import { Piece, type ReusedMemory } from "./reused-memory.ts";

/** Puts the parts of a body together as they come. */
export class GatheredBody {
  readonly #memory: ReusedMemory;
  readonly #announced: number | undefined;
  #parts: Buffer[] = [];
  #whole: Piece | undefined;
  #length = 0;

  /** `announced`: how long it is going to be, where that was said. */
  constructor(memory: ReusedMemory, announced: number | undefined) {
    this.#memory = memory;
    this.#announced = announced;
  }

  add(part: Buffer): void {
    this.#length += part.length;
    if (this.#whole !== undefined) {
      part.copy(this.#whole.bytes, this.#length - part.length);
      return;
    }
    this.#parts.push(part);
    // A part that waits for the next one soon counts as old, and the engine finds out late that it may be let go. But
    // how long a body will be is easily said: memory is taken for it when half of it is there.
    const announced = this.#announced ?? Number.POSITIVE_INFINITY;
    if (this.#length < announced && this.#length * 2 >= announced) this.#whole = this.#join(announced);
  }

  /** All of it, which is whoever's who asked. A body of another length than was announced is not there. */
  finish(): Piece | undefined {
    if (this.#announced !== undefined && this.#announced !== this.#length) {
      this.drop();
      return undefined;
    }
    const [first] = this.#parts;
    const isOnly = first !== undefined && this.#parts.length === 1;
    const body = this.#whole ?? (isOnly ? new Piece(first) : this.#join(this.#length));
    this.#whole = undefined;
    this.#parts = [];
    return body;
  }

  drop(): void {
    this.#parts = [];
    this.#whole?.giveBack();
    this.#whole = undefined;
  }

  #join(length: number): Piece {
    const whole = this.#memory.take(length);
    let end = 0;
    for (const part of this.#parts) end += part.copy(whole.bytes, end);
    this.#parts = [];
    return whole;
  }
}
