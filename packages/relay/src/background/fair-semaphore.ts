/** On whose behalf a lane is used. */
export interface LaneUse {
  readonly tenant: string;
  /** Whether the other side answered the last time. One that may well hang gets fewer lanes. */
  readonly isProven: boolean;
}

interface WaitingJob {
  readonly use: LaneUse;
  readonly starts: (() => void)[];
}

/** The lanes of one tenant that are in use, and how many of them by those who may well hang. */
interface Held {
  all: number;
  unproven: number;
}

const NONE: Readonly<Held> = { all: 0, unproven: 0 };

/**
 * Lets only so many acts run at one time, and nobody take the last lanes from others: a tenant gets one more while it
 * holds fewer than are free. So one alone holds half of them, two a third each, and there is room for who comes next.
 * Those that may well hang hold fewer than half of what is free, and so leave room to others of their own tenant.
 */
export class FairLanes {
  readonly #held = new Map<string, Held>();
  /** In the order of their turns: whoever had one goes to the end. */
  readonly #waiting = new Map<string, WaitingJob>();
  #free: number;

  constructor(runningMax: number) {
    this.#free = runningMax;
  }

  async run<Result>(use: LaneUse, act: () => Promise<Result>): Promise<Result> {
    await this.#turn(use);
    try {
      return await act();
    } finally {
      this.#count(use, -1);
      this.#startNext();
    }
  }

  #turn(use: LaneUse): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const key = `${use.isProven ? "proven" : "unproven"}:${use.tenant}`;
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, { use, starts: [resolve] });
    else waiting.starts.push(resolve);
    this.#startNext();
    return promise;
  }

  #startNext(): void {
    for (const [key, { use, starts }] of this.#waiting) {
      if (this.#free === 0) return;
      if (!this.#mayStart(use)) continue;
      this.#waiting.delete(key);
      this.#count(use, 1);
      starts.shift()?.();
      // Set again while the map is walked it comes up once more, behind all others.
      if (starts.length > 0) this.#waiting.set(key, { use, starts });
    }
  }

  #mayStart({ tenant, isProven }: LaneUse): boolean {
    const held = this.#held.get(tenant) ?? NONE;
    return held.all < this.#free && (isProven || 2 * held.unproven < this.#free);
  }

  #count({ tenant, isProven }: LaneUse, change: 1 | -1): void {
    this.#free -= change;
    const { all, unproven } = this.#held.get(tenant) ?? NONE;
    const held = { all: all + change, unproven: unproven + (isProven ? 0 : change) };
    if (held.all === 0) this.#held.delete(tenant);
    else this.#held.set(tenant, held);
  }
}
