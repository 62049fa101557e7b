import { LIMITS } from "@a2a-relay/protocol";
import { originOf } from "../core/outbound/task-push-config.ts";
import type { EndedTaskPush, TaskPushDelivery, TaskPushResult } from "../core/outbound/task-push-delivery.ts";
import type { TaskPushConfig } from "../core/ports/task-pushes.ts";
import { FairLanes } from "./fair-semaphore.ts";
import { pause, WatchedLoop } from "./loops.ts";

/** After something of our own failed, such as the disk: so long at first, then twice as long each time. */
const TROUBLE_MS_MIN = 1_000;
const TROUBLE_MS_MAX = 60_000;
/** Receivers that are remembered to have answered; who is forgotten waits its turn as somebody new does. */
const PROVEN_MAX = 10_000;

/**
 * Tells A2A callers of their tasks: each configuration one update after the other, many of them at a time. It watches
 * no task by itself: an update makes its configurations due, and whatever is due is found in the store.
 */
export class TaskPusher implements AsyncDisposable {
  readonly #pushes: TaskPushDelivery;
  readonly #report: (reason: unknown) => void;
  readonly #lanes = new FairLanes(LIMITS.pushesUnderWayMax);
  readonly #underWay = new Map<TaskPushConfig, Promise<void>>();
  /** Origins that answered the last time. */
  readonly #proven = new Set<string>();
  readonly #loop: WatchedLoop;
  #troubles = 0;

  constructor(pushes: TaskPushDelivery, report: (reason: unknown) => void) {
    this.#pushes = pushes;
    this.#report = report;
    this.#loop = new WatchedLoop({
      watch: () => pushes.watch(),
      look: () => this.#begin(),
      trouble: (reason) => this.#trouble(reason),
    });
  }

  /** Cuts off what is under way: it counts as not tried, and whoever starts next goes on with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all(this.#underWay.values());
  }

  async #begin(): Promise<number> {
    const { due, waitMs } = await this.#pushes.agenda(this.#underWay.keys());
    for (const config of due) this.#underWay.set(config, this.#push(config));
    return waitMs;
  }

  /** One configuration, as long as there is something to send at once and somebody takes it. */
  async #push(config: TaskPushConfig): Promise<void> {
    const { signal } = this.#loop;
    const { tenant } = config;
    const origin = originOf(config);
    try {
      for (let hasMore = true; hasMore && !signal.aborted;) {
        const use = { tenant, isProven: this.#proven.has(origin) };
        const ended = await this.#lanes.run(use, () => this.#pushes.attempt(config, signal));
        if (ended === "idle") break;
        const result = await this.#record(ended);
        this.#learn(origin, result.isDelivered);
        ({ hasMore } = result);
      }
      this.#troubles = 0;
    } catch (reason) {
      await this.#trouble(reason);
    }
    this.#underWay.delete(config);
    this.#loop.nudge();
  }

  /** Only the record is tried again, never the request: the receiver has it. Once more when the relay stops. */
  async #record(ended: EndedTaskPush): Promise<TaskPushResult> {
    for (;;) {
      try {
        return await this.#pushes.record(ended);
      } catch (reason) {
        if (this.#loop.signal.aborted) throw reason;
        await this.#trouble(reason);
      }
    }
  }

  #learn(origin: string, isDelivered: boolean): void {
    if (!isDelivered) {
      this.#proven.delete(origin);
      return;
    }
    if (this.#proven.size >= PROVEN_MAX) this.#proven.clear();
    this.#proven.add(origin);
  }

  async #trouble(reason: unknown): Promise<void> {
    this.#report(reason);
    const waitMs = Math.min(TROUBLE_MS_MIN * 2 ** this.#troubles, TROUBLE_MS_MAX);
    this.#troubles += 1;
    await pause(waitMs, this.#loop.signal);
  }
}
