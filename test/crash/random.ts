/** Chance that can be repeated: the same seed gives the same numbers. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  }

  /** Both ends included. */
  integer(minimum: number, maximum: number): number {
    return minimum + Math.floor(this.next() * (maximum - minimum + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.integer(0, items.length - 1)] ?? items[0];
  }

  /** Each item with this probability, in order. */
  some<Item>(items: readonly Item[], probability: number): readonly Item[] {
    return items.filter(() => this.chance(probability));
  }

  shuffled<Item>(items: readonly Item[]): readonly Item[] {
    const keyed = items.map((item) => ({ item, key: this.next() }));
    return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
  }

  /** A separate source: what one actor draws does not depend on when the others draw. */
  fork(): Random {
    return new Random(this.integer(0, 2 ** 32 - 1));
  }
}
