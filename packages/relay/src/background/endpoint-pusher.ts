import { LIMITS } from "@a2a-relay/protocol";
import { CLAIM_RETRY_MS, ClaimLost, type OwnClaims, workUnit } from "../core/mechanisms/own-claims.ts";
import type { AttemptResult, EndedAttempt, PushDelivery } from "../core/outbound/push-delivery.ts";
import type { Claim } from "../core/ports/claims.ts";
import type { Watch } from "../core/ports/change-feed.ts";
import type { EndpointKey } from "../core/ports/pushes.ts";
import type { FairSemaphore, PermitRequest } from "./fair-semaphore.ts";
import { Backoff, type Pause, pause } from "./loops.ts";

export interface EndpointPusherParts {
  readonly pushes: PushDelivery;
  readonly claims: OwnClaims;
  /** Limits the requests of all endpoints. */
  readonly semaphore: FairSemaphore;
  readonly report: (reason: unknown) => void;
  /** Ends requests under way. They do not count as attempts. */
  readonly stopping: AbortSignal;
  readonly pause?: Pause | undefined;
}

/**
 * Pushes the messages of one endpoint: claims it, enqueues them, attempts what is due, sleeps until there is more. An
 * endpoint that another process has claimed is left to it.
 */
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
  #claim: Claim | undefined;
  #isWoken = false;
  #isRetired = false;
  #sleep = new AbortController();

  constructor(endpoint: EndpointKey, parts: EndpointPusherParts) {
    this.#endpoint = endpoint;
    this.#parts = parts;
    const { report, stopping: signal } = parts;
    this.#backoff = new Backoff({ report, signal, pause: parts.pause });
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
    await this.#release();
  }

  async #dropPending(): Promise<void> {
    const { pushes, stopping, pause: wait = pause } = this.#parts;
    for (let hasMore = true; hasMore && !stopping.aborted;) {
      try {
        const claim = await this.#take();
        if (claim === undefined) await wait(CLAIM_RETRY_MS, stopping);
        else hasMore = await pushes.dropPending(this.#endpoint, claim);
      } catch (reason) {
        await this.#backoff.failed(reason);
      }
    }
  }

  /** Takes the endpoint, or keeps it for longer; undefined when another process has it. */
  async #take(): Promise<Claim | undefined> {
    const { tenant, agentId } = this.#endpoint;
    [this.#claim] = await this.#parts.claims.take([workUnit("endpoint", tenant, agentId)]);
    return this.#claim;
  }

  async #release(): Promise<void> {
    if (this.#claim !== undefined) await this.#parts.claims.release(this.#claim);
  }

  /** Watches before it reads, so that it misses no message between the two. */
  async #watchAndPush(): Promise<void> {
    using watch = this.#parts.pushes.watchMailbox(this.#endpoint);
    while (!this.#isOver) {
      this.#isWoken = false;
      const claim = await this.#take();
      if (claim === undefined) {
        await this.#rest(watch, CLAIM_RETRY_MS);
        continue;
      }
      const hasMore = await this.#parts.pushes.enqueue(this.#endpoint, claim);
      const waitMs = await this.#begin(claim);
      if (hasMore) continue;
      if (this.#underWay.size === 0) await this.#release();
      await this.#rest(watch, waitMs);
    }
  }

  /** Begins what is due, the longest due first. Returns how long nothing else is. */
  async #begin(claim: Claim): Promise<number> {
    if (this.#unrecorded.size > 0) return Infinity;
    const underWay = new Set(this.#underWay.keys());
    const { due, waitMs } = await this.#parts.pushes.chooseDue(this.#endpoint, underWay, this.#attemptsMax);
    for (const messageId of due) {
      if (this.#isOver) break;
      this.#underWay.set(messageId, this.#attempt(messageId, claim));
    }
    return waitMs;
  }

  async #attempt(messageId: string, claim: Claim): Promise<void> {
    const { pushes, semaphore, stopping } = this.#parts;
    try {
      const ended = await semaphore.run(this.#permit, async () => {
        const isBlocked = this.#unrecorded.size > 0;
        return isBlocked ? "idle" : pushes.attempt(this.#endpoint, messageId, { claim, signal: stopping });
      });
      this.#adjust(typeof ended === "string" ? ended : await this.#record(ended));
    } catch (reason) {
      this.#attemptsMax = 1;
      await this.#backoff.failed(reason);
    }
    this.#underWay.delete(messageId);
    this.wake();
  }

  /**
   * Retries the record only, never the request: the receiver has the message. Once more when the relay stops, and not
   * when another process has taken over.
   */
  async #record(ended: EndedAttempt): Promise<AttemptResult> {
    const { pushes, stopping } = this.#parts;
    for (;;) {
      try {
        const result = await pushes.record(ended);
        this.#unrecorded.delete(ended);
        return result;
      } catch (reason) {
        this.#unrecorded.delete(ended);
        if (stopping.aborted || reason instanceof ClaimLost) throw reason;
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
