import type { Anchor, Anchors } from "../src/core/ports/archive.ts";

/** Anchors that a test can read and edit. */
export class MemoryAnchors implements Anchors {
  kept: Anchor[] = [];
  readonly areAll: boolean;
  #watching: (() => void)[] = [];

  constructor({ areAll = true } = {}) {
    this.areAll = areAll;
  }

  async latest(): Promise<ReadonlyMap<string, Anchor>> {
    return new Map(this.kept.map((anchor) => [anchor.tenant, anchor]));
  }

  async *history(tenant: string): AsyncGenerator<Anchor, void, void> {
    yield* this.kept.filter((anchor) => anchor.tenant === tenant);
  }

  async keep(anchors: readonly Anchor[]): Promise<void> {
    this.kept.push(...anchors);
    for (const wake of this.#watching.splice(0)) wake();
  }

  /** Ends once an anchor covers the event. */
  async until(seq: number): Promise<void> {
    while (this.kept.every((anchor) => anchor.seq < seq)) {
      await new Promise<void>((resolve) => this.#watching.push(resolve));
    }
  }
}
