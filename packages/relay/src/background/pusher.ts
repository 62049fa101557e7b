import { setMaxListeners } from "node:events";
import { LIMITS } from "@a2a-relay/protocol";
import type { PushDelivery } from "../core/push/push-delivery.ts";
import type { PushEndpoint } from "../core/push/push-record.ts";
import { EndpointPusher } from "./endpoint-pusher.ts";
import { FairLanes } from "./fair-lanes.ts";
import { pause } from "./pause.ts";

/** Endpoints are looked through at most so often, however many agents register at one time. */
const LOOK_MS = 100;
/** Where there are so many that a look takes its time, it takes this part of all time at most. */
const LOOK_SHARE = 1 / 20;
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
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** Aborted where the supervisor itself has a reason to look again. */
  #sleep = new AbortController();
  #hasNews = false;
  /** Whether it has seen to what the relay before this one had no time for. */
  #hasLookedBack = false;

  constructor(pushes: PushDelivery, report: (reason: unknown) => void) {
    this.#pushes = pushes;
    this.#report = report;
    // Every endpoint and every request listens to it, and there are many of both.
    setMaxListeners(0, this.#stopping.signal);
    this.#running = this.#run();
  }

  /** Cuts off what is under way: it counts as not tried, and whoever starts next goes on with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#sleep.abort();
    await this.#running;
    await Promise.all([...this.#known.values()].map(({ pusher }) => pusher.retire()));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (!(await this.#watchAndLook())) return;
      } catch (reason) {
        this.#report(reason);
        await pause(TROUBLE_MS, signal);
      }
    }
  }

  /** False when there is nothing more to wait for. */
  async #watchAndLook(): Promise<boolean> {
    const { signal } = this.#stopping;
    using watch = this.#pushes.watchEndpoints();
    while (!signal.aborted) {
      this.#hasNews = false;
      const startMs = performance.now();
      await this.#look();
      const tookMs = performance.now() - startMs;
      await pause(Math.max(LOOK_MS, tookMs / LOOK_SHARE), signal);
      if (this.#hasNews || signal.aborted) continue;
      this.#sleep = new AbortController();
      const hasChanged = await watch.changed({ timeoutMs: Infinity, signal: this.#sleep.signal });
      // Neither a change nor a reason of our own: the store has closed.
      if (!hasChanged && !this.#hasNews) return false;
    }
    return false;
  }

  async #look(): Promise<void> {
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
  }

  #follow(key: string, endpoint: PushEndpoint): void {
    const known = this.#known.get(key);
    if (known === undefined) {
      const { tenant, agentId, version } = endpoint;
      const parts = { lanes: this.#lanes, report: this.#report, stopping: this.#stopping.signal };
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
    this.#hasNews = true;
    this.#sleep.abort();
  }
}

function keyOf({ tenant, agentId }: PushEndpoint): string {
  return JSON.stringify([tenant, agentId]);
}
