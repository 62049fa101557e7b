import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import type { LapsedRecords, SweepStore } from "../../core/ports/sweeps.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Tasks } from "./tasks.ts";

export class Sweeps implements SweepStore {
  readonly #deliveries: Deliveries;
  readonly #tasks: Tasks;

  constructor({ deliveries, tasks }: { readonly deliveries: Deliveries; readonly tasks: Tasks }) {
    this.#deliveries = deliveries;
    this.#tasks = tasks;
  }

  async lapsed(nowMs: number, limit: number): Promise<LapsedRecords> {
    return {
      overdueTasks: this.#tasks.findOverdue(nowMs, limit),
      timedOut: this.#deliveries.findTimedOut(nowMs, limit),
      expired: this.#deliveries.findExpired(nowMs, limit),
    };
  }

  async heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#deliveries.findHeldWork(after, limit);
  }
}
