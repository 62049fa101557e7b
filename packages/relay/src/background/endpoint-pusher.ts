import { LIMITS } from "@a2a-relay/protocol";
import type { Watch } from "../core/ports/change-feed.ts";
import type { AttemptResult, EndedAttempt, PushDelivery } from "../core/outbound/push-delivery.ts";
import type { EndpointKey } from "../core/ports/pushes.ts";
import type { FairLanes, LaneUse } from "./fair-semaphore.ts";
import { pause } from "./loops.ts";

export interface EndpointPusherParts {
  readonly pushes: PushDelivery;
  /** Shared by all endpoints: how many requests there may be at one time. */
  readonly lanes: FairLanes;
  readonly report: (reason: unknown) => void;
  /** Cuts requests off that are under way. What they were about is tried again by the next relay. */
  readonly stopping: AbortSignal;
}

/** After something of our own failed, such as the disk: so long at first, then twice as long each time. */
const TROUBLE_MS_MIN = 1_000;
const TROUBLE_MS_MAX = 60_000;

/**
 * Calls one endpoint: takes up its mail, tries what is due, sleeps until there is more. Nothing of it is only here:
 * another one can go on at any time.
 */
export class EndpointPusher {
  readonly #endpoint: EndpointKey;
  readonly #parts: EndpointPusherParts;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #running: Promise<void>;
  /** Requests at one time: few until it has shown that it answers, so that one that hangs keeps few lanes busy. */
  #attemptsMax = 1;
  #troubles = 0;
  /** Requests that have ended and could not be put on record. Until they are, nothing more is sent. */
  readonly #unrecorded = new Set<EndedAttempt>();
  #hasNews = false;
  #isRetired = false;
  #sleep = new AbortController();

  constructor(endpoint: EndpointKey, parts: EndpointPusherParts) {
    this.#endpoint = endpoint;
    this.#parts = parts;
    parts.stopping.addEventListener("abort", this.#wake, { once: true });
    this.#running = this.#run();
  }

  /** Something about the endpoint has changed, so that it is worth looking again. */
  nudge(): void {
    this.#hasNews = true;
    this.#sleep.abort();
  }

  /** Begins nothing more, and ends once what is under way has ended and what is left has been dropped. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    this.nudge();
    await this.#running;
  }

  readonly #wake = (): void => this.nudge();

  get #isOver(): boolean {
    return this.#isRetired || this.#parts.stopping.aborted;
  }

  /** One that has not answered yet, or failed the last time, may well hang. */
  get #laneUse(): LaneUse {
    return { tenant: this.#endpoint.tenant, isProven: this.#attemptsMax > 1 };
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#watchAndPush();
      } catch (reason) {
        await this.#trouble(reason);
      }
    }
    this.#parts.stopping.removeEventListener("abort", this.#wake);
    await Promise.all(this.#underWay.values());
    await this.#dropLeft();
  }

  /** Nobody would ever look at what waits for an endpoint that is disabled. */
  async #dropLeft(): Promise<void> {
    const { pushes, stopping } = this.#parts;
    for (let hasMore = true; hasMore && !stopping.aborted;) {
      try {
        hasMore = await pushes.dropLeft(this.#endpoint);
      } catch (reason) {
        await this.#trouble(reason);
      }
    }
  }

  /** Watches before it looks, so that mail that comes between the two is not missed. */
  async #watchAndPush(): Promise<void> {
    using watch = this.#parts.pushes.watchMailbox(this.#endpoint);
    while (!this.#isOver) {
      this.#hasNews = false;
      const hasMore = await this.#parts.pushes.takeUp(this.#endpoint);
      const waitMs = await this.#begin();
      if (!hasMore) await this.#rest(watch, waitMs);
    }
  }

  /** Begins what is due, the longest due first. Answers how long nothing else is. */
  async #begin(): Promise<number> {
    if (this.#unrecorded.size > 0) return Infinity;
    const underWay = new Set(this.#underWay.keys());
    const { due, waitMs } = await this.#parts.pushes.agenda(this.#endpoint, underWay, this.#attemptsMax);
    for (const messageId of due) {
      if (this.#isOver) break;
      this.#underWay.set(messageId, this.#attempt(messageId));
    }
    return waitMs;
  }

  async #attempt(messageId: string): Promise<void> {
    const { pushes, lanes, stopping } = this.#parts;
    try {
      const ended = await lanes.run(this.#laneUse, async () => {
        const isHeldUp = this.#unrecorded.size > 0;
        return isHeldUp ? "idle" : pushes.attempt(this.#endpoint, messageId, stopping);
      });
      this.#learn(typeof ended === "string" ? ended : await this.#record(ended));
    } catch (reason) {
      this.#attemptsMax = 1;
      await this.#trouble(reason);
    }
    this.#underWay.delete(messageId);
    this.nudge();
  }

  /** Only the record is tried again, never the request: the receiver has it. Once more when the relay stops. */
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
        await this.#trouble(reason);
      }
    }
  }

  #learn(result: AttemptResult): void {
    this.#troubles = 0;
    if (result === "delivered") {
      this.#attemptsMax = Math.min(this.#attemptsMax + 1, LIMITS.pushesOfEndpointMax);
    }
    if (result === "failed" || result === "gone") this.#attemptsMax = 1;
  }

  async #trouble(reason: unknown): Promise<void> {
    const { report, stopping } = this.#parts;
    report(reason);
    const waitMs = Math.min(TROUBLE_MS_MIN * 2 ** this.#troubles, TROUBLE_MS_MAX);
    this.#troubles += 1;
    await pause(waitMs, stopping);
  }

  async #rest(watch: Watch, waitMs: number): Promise<void> {
    if (this.#hasNews || this.#isOver) return;
    this.#sleep = new AbortController();
    await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
  }
}
