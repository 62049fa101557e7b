import { LIMITS } from "@a2a-relay/protocol";
import type { PushDelivery } from "../core/outbound/push-delivery.ts";
import type { PushEndpoint } from "../core/ports/pushes.ts";
import { EndpointPusher } from "./endpoint-pusher.ts";
import { FairLanes } from "./fair-semaphore.ts";
import { pause, WatchedLoop } from "./loops.ts";

/** Endpoints are looked through at most so often, however many agents register at one time. */
const LOOK_MS = 100;
const TROUBLE_MS = 1_000;

interface KnownEndpoint {
  readonly pusher: EndpointPusher;
  version: number;
  isRetiring: boolean;
}

/** Calls every agent that wants to be called: one pusher for each active endpoint of all tenants. */
export class Pusher implements AsyncDisposable {
  readonly #pushes: PushDelivery;
  readonly #report: (reason: unknown) => void;
  readonly #lanes = new FairLanes(LIMITS.pushesUnderWayMax);
  readonly #known = new Map<string, KnownEndpoint>();
  readonly #loop: WatchedLoop;
  /** Whether it has seen to what the relay before this one had no time for. */
  #hasLookedBack = false;

  constructor(pushes: PushDelivery, report: (reason: unknown) => void) {
    this.#pushes = pushes;
    this.#report = report;
    this.#loop = new WatchedLoop({
      watch: () => pushes.watchEndpoints(),
      look: () => this.#look(),
      trouble: (reason) => this.#trouble(reason),
      lookMsMin: LOOK_MS,
    });
  }

  /** Cuts off what is under way: it counts as not tried, and whoever starts next goes on with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all([...this.#known.values()].map(({ pusher }) => pusher.retire()));
  }

  async #look(): Promise<number> {
    const active = new Set<string>();
    for await (const endpoint of this.#pushes.activeEndpoints()) {
      const key = keyOf(endpoint);
      active.add(key);
      this.#follow(key, endpoint);
    }
    if (!this.#hasLookedBack) {
      // They are retired at once, and that is when what they have left is dropped.
      for await (const endpoint of this.#pushes.leftEndpoints()) this.#follow(keyOf(endpoint), endpoint);
      this.#hasLookedBack = true;
    }
    for (const [key, known] of this.#known) {
      if (!active.has(key) && !known.isRetiring) void this.#retire(key, known);
    }
    return Infinity;
  }

  async #trouble(reason: unknown): Promise<void> {
    this.#report(reason);
    await pause(TROUBLE_MS, this.#loop.signal);
  }

  #follow(key: string, endpoint: PushEndpoint): void {
    const known = this.#known.get(key);
    if (known === undefined) {
      const { tenant, agentId, version } = endpoint;
      const parts = { lanes: this.#lanes, report: this.#report, stopping: this.#loop.signal };
      const pusher = new EndpointPusher({ tenant, agentId }, { pushes: this.#pushes, ...parts });
      this.#known.set(key, { pusher, version, isRetiring: false });
      return;
    }
    if (known.version === endpoint.version) return;
    known.version = endpoint.version;
    known.pusher.nudge();
  }

  /** Until the last of its requests has ended nobody else calls the same endpoint, or mail would come twice. */
  async #retire(key: string, known: KnownEndpoint): Promise<void> {
    known.isRetiring = true;
    await known.pusher.retire();
    this.#known.delete(key);
    this.#loop.nudge();
  }
}

function keyOf({ tenant, agentId }: PushEndpoint): string {
  return JSON.stringify([tenant, agentId]);
}
