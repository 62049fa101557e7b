import { LIMITS } from "@a2a-relay/protocol";
import type { OwnClaims } from "../core/mechanisms/own-claims.ts";
import type { PushDelivery } from "../core/outbound/push-delivery.ts";
import type { PushEndpoint } from "../core/ports/pushes.ts";
import type { RelayCore } from "../core/relay-core.ts";
import { EndpointPusher } from "./endpoint-pusher.ts";
import { FairSemaphore } from "./fair-semaphore.ts";
import { type Pause, PollLoop } from "./loops.ts";

/** Time between two reads of all endpoints, however many agents register at once. */
const POLL_MS_MIN = 100;
const BACKOFF_MS_MAX = 1_000;

interface FollowedEndpoint {
  readonly pusher: EndpointPusher;
  version: number;
  isRetiring: boolean;
}

/** Runs one pusher for each active endpoint of all tenants. */
export class Pusher implements AsyncDisposable {
  readonly #pushes: PushDelivery;
  readonly #claims: OwnClaims;
  readonly #report: (reason: unknown) => void;
  readonly #pause: Pause | undefined;
  readonly #semaphore = new FairSemaphore(LIMITS.pushesUnderWayMax);
  readonly #followed = new Map<string, FollowedEndpoint>();
  readonly #loop: PollLoop;
  #hasDroppedOld = false;

  constructor(
    { pushDelivery: pushes, claims }: Pick<RelayCore, "pushDelivery" | "claims">,
    report: (reason: unknown) => void,
    pause?: Pause,
  ) {
    this.#pushes = pushes;
    this.#claims = claims;
    this.#report = report;
    this.#pause = pause;
    this.#loop = new PollLoop({
      watch: () => pushes.watchEndpoints(),
      poll: () => this.#poll(),
      report,
      pollMsMin: POLL_MS_MIN,
      backoffMsMax: BACKOFF_MS_MAX,
      pause,
    });
  }

  /** Ends requests under way. They do not count as attempts, and the next process makes them again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all([...this.#followed.values()].map(({ pusher }) => pusher.retire()));
  }

  async #poll(): Promise<number> {
    const active = new Set<string>();
    for await (const endpoint of this.#pushes.activeEndpoints()) {
      const key = keyOf(endpoint);
      active.add(key);
      this.#follow(key, endpoint);
    }
    if (!this.#hasDroppedOld) {
      // Their pushers are retired at once, and so drop what the previous process left pending.
      for await (const endpoint of this.#pushes.disabledEndpoints()) this.#follow(keyOf(endpoint), endpoint);
      this.#hasDroppedOld = true;
    }
    for (const [key, followed] of this.#followed) {
      if (!active.has(key) && !followed.isRetiring) void this.#retire(key, followed);
    }
    return Infinity;
  }

  #follow(key: string, endpoint: PushEndpoint): void {
    const followed = this.#followed.get(key);
    if (followed === undefined) {
      const { tenant, agentId, version } = endpoint;
      const pusher = new EndpointPusher(
        { tenant, agentId },
        {
          pushes: this.#pushes,
          claims: this.#claims,
          semaphore: this.#semaphore,
          report: this.#report,
          stopping: this.#loop.signal,
          pause: this.#pause,
        },
      );
      this.#followed.set(key, { pusher, version, isRetiring: false });
      return;
    }
    if (followed.version === endpoint.version) return;
    followed.version = endpoint.version;
    followed.pusher.wake();
  }

  /** A new pusher for the endpoint starts only after the last request has ended, or messages would arrive twice. */
  async #retire(key: string, followed: FollowedEndpoint): Promise<void> {
    followed.isRetiring = true;
    await followed.pusher.retire();
    this.#followed.delete(key);
    this.#loop.wake();
  }
}

function keyOf({ tenant, agentId }: PushEndpoint): string {
  return JSON.stringify([tenant, agentId]);
}
