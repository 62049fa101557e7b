export interface PermitRequest {
  readonly tenant: string;
  /** Whether the receiver answered last time. One that may hang gets fewer permits. */
  readonly isProven: boolean;
}

interface PermitQueue {
  readonly request: PermitRequest;
  readonly starts: (() => void)[];
}

/** The permits that one tenant holds, and how many of them for unproven receivers. */
interface HeldPermits {
  all: number;
  unproven: number;
}

const NONE: Readonly<HeldPermits> = { all: 0, unproven: 0 };

/**
 * A semaphore shared fairly by tenants: a tenant gets a permit while it holds fewer than are free. One tenant alone
 * holds half of the permits, two a third each, and the next always finds some. Unproven receivers hold less than half
 * of what is free, and so leave room to others of their tenant.
 */
export class FairSemaphore {
  readonly #held = new Map<string, HeldPermits>();
  /** Round robin: a queue that got a permit goes to the end. */
  readonly #queues = new Map<string, PermitQueue>();
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  async run<Result>(request: PermitRequest, act: () => Promise<Result>): Promise<Result> {
    await this.#acquire(request);
    try {
      return await act();
    } finally {
      this.#count(request, -1);
      this.#startNext();
    }
  }

  #acquire(request: PermitRequest): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const key = `${request.isProven ? "proven" : "unproven"}:${request.tenant}`;
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, { request, starts: [resolve] });
    else queue.starts.push(resolve);
    this.#startNext();
    return promise;
  }

  #startNext(): void {
    for (const [key, { request, starts }] of this.#queues) {
      if (this.#free === 0) return;
      if (!this.#mayStart(request)) continue;
      this.#queues.delete(key);
      this.#count(request, 1);
      starts.shift()?.();
      // A key that is set again during the iteration comes up once more, behind all others.
      if (starts.length > 0) this.#queues.set(key, { request, starts });
    }
  }

  #mayStart({ tenant, isProven }: PermitRequest): boolean {
    const held = this.#held.get(tenant) ?? NONE;
    return held.all < this.#free && (isProven || 2 * held.unproven < this.#free);
  }

  #count({ tenant, isProven }: PermitRequest, change: 1 | -1): void {
    this.#free -= change;
    const { all, unproven } = this.#held.get(tenant) ?? NONE;
    const held = { all: all + change, unproven: unproven + (isProven ? 0 : change) };
    if (held.all === 0) this.#held.delete(tenant);
    else this.#held.set(tenant, held);
  }
}
