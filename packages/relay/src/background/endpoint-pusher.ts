import { LIMITS } from "@a2a-relay/protocol";
import type { AttemptResult, EndedAttempt, PushDelivery } from "../core/outbound/push-delivery.ts";
import type { Watch } from "../core/ports/change-feed.ts";
import type { EndpointKey } from "../core/ports/pushes.ts";
import type { FairSemaphore, PermitRequest } from "./fair-semaphore.ts";
import { Backoff, type Pause } from "./loops.ts";

export interface EndpointPusherParts {
  readonly pushes: PushDelivery;
  /** Limits the requests of all endpoints. */
  readonly semaphore: FairSemaphore;
  readonly report: (reason: unknown) => void;
  /** Ends requests under way. They do not count as attempts. */
  readonly stopping: AbortSignal;
  readonly pause?: Pause | undefined;
}

/** Pushes the messages of one endpoint: enqueues them, attempts what is due, sleeps until there is more. */
export class EndpointPusher {
  readonly #endpoint: EndpointKey;
  readonly #parts: EndpointPusherParts;
  readonly #backoff: Backoff;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #running: Promise<void>;
  /** Requests at once. Grows with every answer, so that an endpoint that hangs holds few permits. */
  #attemptsMax = 1;
  /** Attempts that could not be recorded. Until they are, no more requests are made. */
  readonly #unrecorded = new Set<EndedAttempt>();
  #isWoken = false;
  #isRetired = false;
  #sleep = new AbortController();

  constructor(endpoint: EndpointKey, parts: EndpointPusherParts) {
    this.#endpoint = endpoint;
    this.#parts = parts;
    const { report, stopping: signal, pause } = parts;
    this.#backoff = new Backoff({ report, signal, pause });
    signal.addEventListener("abort", this.wake, { once: true });
    this.#running = this.#run();
  }

  /** Polls again soon, because the endpoint has changed. */
  readonly wake = (): void => {
    this.#isWoken = true;
    this.#sleep.abort();
  };

  /** Begins no more attempts, waits for those under way, then drops what is pending. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    this.wake();
    await this.#running;
  }

  get #isOver(): boolean {
    return this.#isRetired || this.#parts.stopping.aborted;
  }

  get #permit(): PermitRequest {
    return { tenant: this.#endpoint.tenant, isProven: this.#attemptsMax > 1 };
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#watchAndPush();
      } catch (reason) {
        await this.#backoff.failed(reason);
      }
    }
    this.#parts.stopping.removeEventListener("abort", this.wake);
    await Promise.all(this.#underWay.values());
    await this.#dropPending();
  }

  async #dropPending(): Promise<void> {
    const { pushes, stopping } = this.#parts;
    for (let hasMore = true; hasMore && !stopping.aborted;) {
      try {
        hasMore = await pushes.dropPending(this.#endpoint);
      } catch (reason) {
        await this.#backoff.failed(reason);
      }
    }
  }

  /** Watches before it reads, so that it misses no message between the two. */
  async #watchAndPush(): Promise<void> {
    using watch = this.#parts.pushes.watchMailbox(this.#endpoint);
    while (!this.#isOver) {
      this.#isWoken = false;
      const hasMore = await this.#parts.pushes.enqueue(this.#endpoint);
      const waitMs = await this.#begin();
      if (!hasMore) await this.#rest(watch, waitMs);
    }
  }

  /** Begins what is due, the longest due first. Returns how long nothing else is. */
  async #begin(): Promise<number> {
    if (this.#unrecorded.size > 0) return Infinity;
    const underWay = new Set(this.#underWay.keys());
    const { due, waitMs } = await this.#parts.pushes.chooseDue(this.#endpoint, underWay, this.#attemptsMax);
    for (const messageId of due) {
      if (this.#isOver) break;
      this.#underWay.set(messageId, this.#attempt(messageId));
    }
    return waitMs;
  }

  async #attempt(messageId: string): Promise<void> {
    const { pushes, semaphore, stopping } = this.#parts;
    try {
      const ended = await semaphore.run(this.#permit, async () => {
        const isBlocked = this.#unrecorded.size > 0;
        return isBlocked ? "idle" : pushes.attempt(this.#endpoint, messageId, stopping);
      });
      this.#adjust(typeof ended === "string" ? ended : await this.#record(ended));
    } catch (reason) {
      this.#attemptsMax = 1;
      await this.#backoff.failed(reason);
    }
    this.#underWay.delete(messageId);
    this.wake();
  }

  /** Retries the record only, never the request: the receiver has the message. Once more when the relay stops. */
  async #record(ended: EndedAttempt): Promise<AttemptResult> {
    const { pushes, stopping } = this.#parts;
    for (;;) {
      try {
        const result = await pushes.record(ended);
        this.#unrecorded.delete(ended);
        return result;
      } catch (reason) {
        if (stopping.aborted) throw reason;
        this.#unrecorded.add(ended);
        await this.#backoff.failed(reason);
      }
    }
  }

  #adjust(result: AttemptResult): void {
    this.#backoff.reset();
    if (result === "delivered") {
      this.#attemptsMax = Math.min(this.#attemptsMax + 1, LIMITS.pushesOfEndpointMax);
    }
    if (result === "failed" || result === "gone") this.#attemptsMax = 1;
  }

  async #rest(watch: Watch, waitMs: number): Promise<void> {
    if (this.#isWoken || this.#isOver) return;
    this.#sleep = new AbortController();
    await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
  }
}
