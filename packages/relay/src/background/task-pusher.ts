import { LIMITS } from "@a2a-relay/protocol";
import { CLAIM_RETRY_MS, ClaimLost, type OwnClaims, workUnit } from "../core/mechanisms/own-claims.ts";
import type { EndedTaskPush, TaskPushDelivery, TaskPushResult } from "../core/outbound/task-push-delivery.ts";
import type { Claim } from "../core/ports/claims.ts";
import type { TaskPushConfig } from "../core/ports/task-pushes.ts";
import type { RelayCore } from "../core/relay-core.ts";
import { originOf } from "../core/rules/egress-policy.ts";
import { FairSemaphore } from "./fair-semaphore.ts";
import { type Pause, PollLoop } from "./loops.ts";

/** Origins that are kept as proven; at the limit all are forgotten. */
const PROVEN_MAX = 10_000;

/**
 * Pushes updates of tasks to A2A callers: in order for each configuration, many configurations at once.
 * An update makes its configurations due in the store, so that no task has to be watched.
 */
export class TaskPusher implements AsyncDisposable {
  readonly #pushes: TaskPushDelivery;
  readonly #claims: OwnClaims;
  readonly #semaphore = new FairSemaphore(LIMITS.pushesUnderWayMax);
  /** Configurations that this process pushes, or that another holds. */
  readonly #underWay = new Map<TaskPushConfig, Promise<void>>();
  /** Origins that answered last time. */
  readonly #proven = new Set<string>();
  readonly #loop: PollLoop;

  constructor(
    { taskPushDelivery: pushes, claims }: Pick<RelayCore, "taskPushDelivery" | "claims">,
    report: (reason: unknown) => void,
    pause?: Pause,
  ) {
    this.#pushes = pushes;
    this.#claims = claims;
    this.#loop = new PollLoop({
      watch: () => pushes.watch(),
      poll: () => this.#begin(),
      report,
      pause,
    });
  }

  /** Ends requests under way. They do not count as attempts, and the next process makes them again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all(this.#underWay.values());
  }

  /** Begins what is due. Returns how long nothing else is. */
  async #begin(): Promise<number> {
    const { due, waitMs } = await this.#pushes.chooseDue(this.#underWay.keys());
    const claims = await this.#claims.take(
      due.map(({ tenant, taskId, id }) => workUnit("task-push", tenant, taskId, id)),
    );
    for (const [index, config] of due.entries()) this.#underWay.set(config, this.#run(config, claims[index]));
    return waitMs;
  }

  async #run(config: TaskPushConfig, claim: Claim | undefined): Promise<void> {
    if (claim === undefined) {
      await this.#loop.pause(CLAIM_RETRY_MS);
    } else {
      await this.#push(config, claim);
      await this.#claims.release(claim);
    }
    this.#underWay.delete(config);
    this.#loop.wake();
  }

  /** Pushes updates of one configuration while the next is due at once. */
  async #push(config: TaskPushConfig, claim: Claim): Promise<void> {
    const { signal, backoff } = this.#loop;
    const { tenant } = config;
    const origin = originOf(config);
    try {
      for (let hasMore = true; hasMore && !signal.aborted;) {
        const permit = { tenant, isProven: this.#proven.has(origin) };
        const ended = await this.#semaphore.run(permit, () =>
          this.#pushes.attempt(config, { claim, signal }),
        );
        if (ended === "idle") break;
        const result = await this.#record(ended);
        this.#adjust(origin, result.isDelivered);
        ({ hasMore } = result);
      }
      backoff.reset();
    } catch (reason) {
      await backoff.failed(reason);
    }
  }

  /**
   * Retries the record only, never the request: the receiver has the update. Once more when the relay stops, and not
   * when another process has taken over.
   */
  async #record(ended: EndedTaskPush): Promise<TaskPushResult> {
    const { signal, backoff } = this.#loop;
    for (;;) {
      try {
        return await this.#pushes.record(ended);
      } catch (reason) {
        if (signal.aborted || reason instanceof ClaimLost) throw reason;
        await backoff.failed(reason);
      }
    }
  }

  #adjust(origin: string, isDelivered: boolean): void {
    if (!isDelivered) {
      this.#proven.delete(origin);
      return;
    }
    if (this.#proven.size >= PROVEN_MAX) this.#proven.clear();
    this.#proven.add(origin);
  }
}
