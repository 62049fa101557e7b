import { LIMITS } from "@a2a-relay/protocol";
import { lookName } from "../core/outbound/remote-polls.ts";
import type { TimedRemoteTask } from "../core/ports/remote-tasks.ts";
import type { RemoteWork } from "../core/outbound/remote-work.ts";
import { FairLanes } from "./fair-semaphore.ts";
import { pause, WatchedLoop } from "./loops.ts";

/** After something of our own failed, such as the disk. */
const TROUBLE_MS = 1_000;

interface Look {
  readonly task: TimedRemoteTask;
  readonly ended: Promise<void>;
}

/** Asks agents elsewhere again and again what became of their tasks, each at its time. */
export class RemoteFollower implements AsyncDisposable {
  readonly #work: RemoteWork;
  readonly #report: (reason: unknown) => void;
  readonly #lanes = new FairLanes(LIMITS.remotePollsMax);
  /** Begun: those that run, and those that wait for their lane. */
  readonly #underWay = new Map<string, Look>();
  readonly #loop: WatchedLoop;

  constructor(work: RemoteWork, report: (reason: unknown) => void) {
    this.#work = work;
    this.#report = report;
    this.#loop = new WatchedLoop({
      watch: () => work.watch(),
      look: () => this.#begin(),
      trouble: (reason) => this.#trouble(reason),
    });
  }

  /** Cuts off what is under way: whoever starts next looks again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await Promise.all([...this.#underWay.values()].map(({ ended }) => ended));
  }

  /** Begins what is due. Answers how long nothing else is. */
  async #begin(): Promise<number> {
    const begun = [...this.#underWay.values()].map(({ task }) => task);
    const { due, waitMs } = await this.#work.agenda(begun);
    for (const task of due) this.#underWay.set(lookName(task), { task, ended: this.#look(task) });
    return waitMs;
  }

  async #look(task: TimedRemoteTask): Promise<void> {
    const { signal } = this.#loop;
    const use = { tenant: task.tenant, isProven: task.failures === 0 };
    try {
      await this.#lanes.run(use, () => (signal.aborted ? Promise.resolve() : this.#work.look(task, signal)));
    } catch (reason) {
      await this.#trouble(reason);
    }
    this.#underWay.delete(lookName(task));
    this.#loop.nudge();
  }

  async #trouble(reason: unknown): Promise<void> {
    this.#report(reason);
    await pause(TROUBLE_MS, this.#loop.signal);
  }
}
