import { LIMITS } from "@a2a-relay/protocol";
import { pollKey } from "../core/outbound/remote-polls.ts";
import type { RemoteWork } from "../core/outbound/remote-work.ts";
import type { TimedRemoteTask } from "../core/ports/remote-tasks.ts";
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
  readonly #semaphore = new FairSemaphore(LIMITS.remotePollsMax);
  /** Polls that run or wait for a permit. */
  readonly #underWay = new Map<string, PollUnderWay>();
  readonly #loop: PollLoop;

  constructor(work: RemoteWork, report: (reason: unknown) => void, pause?: Pause) {
    this.#work = work;
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
    for (const task of due) this.#underWay.set(pollKey(task), { task, ended: this.#poll(task) });
    return waitMs;
  }

  async #poll(task: TimedRemoteTask): Promise<void> {
    const { signal, backoff } = this.#loop;
    const permit = { tenant: task.tenant, isProven: task.failures === 0 };
    try {
      await this.#semaphore.run(permit, async () => {
        if (!signal.aborted) await this.#work.poll(task, signal);
      });
    } catch (reason) {
      await backoff.failed(reason);
    }
    this.#underWay.delete(pollKey(task));
    this.#loop.wake();
  }
}
