import { setMaxListeners } from "node:events";
import { LIMITS } from "@a2a-relay/protocol";
import type { RemoteTask } from "../core/remote/remote-task.ts";
import type { RemoteWork } from "../core/remote/remote-work.ts";
import { FairLanes } from "./fair-lanes.ts";
import { pause } from "./pause.ts";

/** After something of our own failed, such as the disk. */
const TROUBLE_MS = 1_000;

/** Asks agents elsewhere again and again what became of their tasks, each at its time. */
export class RemoteFollower implements AsyncDisposable {
  readonly #work: RemoteWork;
  readonly #report: (reason: unknown) => void;
  readonly #lanes = new FairLanes(2 * LIMITS.remoteLooksMax);
  readonly #underWay = new Map<string, Promise<void>>();
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
    await Promise.all(this.#underWay.values());
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
    using watch = this.#work.watch();
    while (!this.#stopping.signal.aborted) {
      this.#hasNews = false;
      const waitMs = await this.#begin();
      if (this.#hasNews) continue;
      this.#sleep = new AbortController();
      const hasChanged = await watch.changed({ timeoutMs: waitMs, signal: this.#sleep.signal });
      if (!hasChanged && waitMs === Infinity && !this.#hasNews) return false;
    }
    return false;
  }

  /** Begins what is due. Answers how long nothing else is. */
  async #begin(): Promise<number> {
    const room = LIMITS.remoteLooksMax - this.#underWay.size;
    const { due, waitMs } = await this.#work.agenda(
      (task) => this.#underWay.has(keyOf(task)),
      Math.max(room, 0),
    );
    for (const task of due) this.#underWay.set(keyOf(task), this.#look(task));
    return waitMs;
  }

  async #look(task: RemoteTask): Promise<void> {
    const { signal } = this.#stopping;
    const use = { tenant: task.tenant, isProven: task.failures === 0 };
    try {
      await this.#lanes.run(use, () => (signal.aborted ? Promise.resolve() : this.#work.look(task, signal)));
    } catch (reason) {
      this.#report(reason);
      await pause(TROUBLE_MS, signal);
    }
    this.#underWay.delete(keyOf(task));
    this.#nudge();
  }

  #nudge(): void {
    this.#hasNews = true;
    this.#sleep.abort();
  }
}

function keyOf({ tenant, taskId }: RemoteTask): string {
  return JSON.stringify([tenant, taskId]);
}
