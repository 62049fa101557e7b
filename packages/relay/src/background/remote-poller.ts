import { LIMITS } from "@a2a-relay/protocol";
import { type OwnClaims, CLAIM_RETRY_MS, workUnit } from "../core/mechanisms/own-claims.ts";
import { pollKey } from "../core/outbound/remote-polls.ts";
import type { RemoteWork } from "../core/outbound/remote-work.ts";
import type { Claim } from "../core/ports/claims.ts";
import type { TimedRemoteTask } from "../core/ports/remote-tasks.ts";
import type { RelayCore } from "../core/relay-core.ts";
import { FairSemaphore } from "./fair-semaphore.ts";
import { type Pause, PollLoop } from "./loops.ts";

const BACKOFF_MS_MAX = 1_000;

interface PollUnderWay {
  readonly task: TimedRemoteTask;
  readonly ended: Promise<void>;
}

/** Polls remote tasks, each when it is due. */
export class RemotePoller implements AsyncDisposable {
  readonly #work: RemoteWork;
  readonly #claims: OwnClaims;
  readonly #semaphore = new FairSemaphore(LIMITS.remotePollsMax);
  /** Polls that run, wait for a permit, or belong to another process. */
  readonly #underWay = new Map<string, PollUnderWay>();
  readonly #loop: PollLoop;

  constructor(
    { remoteWork: work, claims }: Pick<RelayCore, "remoteWork" | "claims">,
    report: (reason: unknown) => void,
    pause?: Pause,
  ) {
    this.#work = work;
    this.#claims = claims;
    this.#loop = new PollLoop({
      watch: () => work.watch(),
      poll: () => this.#begin(),
      report,
      backoffMsMax: BACKOFF_MS_MAX,
      pause,
    });
  }

  /** Ends polls under way. The next process polls again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all([...this.#underWay.values()].map(({ ended }) => ended));
  }

  /** Begins what is due. Returns how long nothing else is. */
  async #begin(): Promise<number> {
    const underWay = [...this.#underWay.values()].map(({ task }) => task);
    const { due, waitMs } = await this.#work.chooseDue(underWay);
    const claims = await this.#claims.take(
      due.map(({ tenant, taskId }) => workUnit("remote-task", tenant, taskId)),
    );
    for (const [index, task] of due.entries()) {
      this.#underWay.set(pollKey(task), { task, ended: this.#run(task, claims[index]) });
    }
    return waitMs;
  }

  async #run(task: TimedRemoteTask, claim: Claim | undefined): Promise<void> {
    if (claim === undefined) {
      await this.#loop.pause(CLAIM_RETRY_MS);
    } else {
      await this.#poll(task, claim);
      await this.#claims.release(claim);
    }
    this.#underWay.delete(pollKey(task));
    this.#loop.wake();
  }

  async #poll(task: TimedRemoteTask, claim: Claim): Promise<void> {
    const { signal, backoff } = this.#loop;
    const permit = { tenant: task.tenant, isProven: task.failures === 0 };
    try {
      await this.#semaphore.run(permit, async () => {
        if (!signal.aborted) await this.#work.poll(task, { claim, signal });
      });
    } catch (reason) {
      await backoff.failed(reason);
    }
  }
}
