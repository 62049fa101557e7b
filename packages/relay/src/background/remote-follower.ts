import { setMaxListeners } from "node:events";
import { LIMITS } from "@a2a-relay/protocol";
import { lookName } from "../core/remote/looks-under-way.ts";
import type { TimedRemoteTask } from "../core/remote/remote-task.ts";
import type { RemoteWork } from "../core/remote/remote-work.ts";
import { FairLanes } from "./fair-lanes.ts";
import { pause } from "./pause.ts";

/** After something of our own failed, such as the disk. */
const TROUBLE_MS = 1_000;
/** Where so many fall due that finding out takes its time, it takes this part of all time at most. */
const AGENDA_SHARE = 1 / 20;

interface Look {
  readonly task: TimedRemoteTask;
  readonly ended: Promise<void>;
}

/** Asks agents elsewhere again and again what became of their tasks, each at its time. */
export class RemoteFollower implements AsyncDisposable {
  readonly #work: RemoteWork;
  readonly #report: (reason: unknown) => void;
  readonly #lanes = new FairLanes(LIMITS.remoteLooksMax);
  /** Begun: those that run, and those that wait for their lane. */
  readonly #underWay = new Map<string, Look>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #sleep = new AbortController();
  #hasNews = false;

  constructor(work: RemoteWork, report: (reason: unknown) => void) {
    this.#work = work;
    this.#report = report;
    // Every request listens to it.
    setMaxListeners(0, this.#stopping.signal);
    this.#running = this.#run();
  }

  /** Cuts off what is under way: whoever starts next looks again. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#nudge();
    await this.#running;
    await Promise.all([...this.#underWay.values()].map(({ ended }) => ended));
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

  /** Watches before it looks, so that nothing that comes between the two is missed. False once the store closes. */
  async #watchAndLook(): Promise<boolean> {
    const { signal } = this.#stopping;
    using watch = this.#work.watch();
    while (!signal.aborted) {
      this.#hasNews = false;
      const startMs = performance.now();
      const waitMs = await this.#begin();
      await pause((performance.now() - startMs) / AGENDA_SHARE, signal);
      if (this.#hasNews) continue;
      this.#sleep = new AbortController();
      const hasChanged = await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
      if (!hasChanged && waitMs === Infinity && !this.#hasNews) return false;
    }
    return false;
  }

  /** Begins what is due. Answers how long nothing else is. */
  async #begin(): Promise<number> {
    const begun = [...this.#underWay.values()].map(({ task }) => task);
    const { due, waitMs } = await this.#work.agenda(begun);
    for (const task of due) this.#underWay.set(lookName(task), { task, ended: this.#look(task) });
    return waitMs;
  }

  async #look(task: TimedRemoteTask): Promise<void> {
    const { signal } = this.#stopping;
    const use = { tenant: task.tenant, isProven: task.failures === 0 };
    try {
      await this.#lanes.run(use, () => (signal.aborted ? Promise.resolve() : this.#work.look(task, signal)));
    } catch (reason) {
      this.#report(reason);
      await pause(TROUBLE_MS, signal);
    }
    this.#underWay.delete(lookName(task));
    this.#nudge();
  }

  #nudge(): void {
    this.#hasNews = true;
    this.#sleep.abort();
  }
}
