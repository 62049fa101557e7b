import type { DeliveryRecord } from "./deliveries.ts";
import type { TaskRecord } from "./tasks.ts";

/** What a sweep finds in all tenants; at most `limit` of each. */
export interface LapsedRecords {
  /** Unfinished tasks whose deadline has passed. */
  readonly overdueTasks: readonly TaskRecord[];
  /** Idempotent deliveries whose finite lease has run out. */
  readonly timedOut: readonly DeliveryRecord[];
  /** Held and available deliveries that have expired. */
  readonly expired: readonly DeliveryRecord[];
}

export interface SweepStore {
  lapsed(nowMs: number, limit: number): Promise<LapsedRecords>;
  /** Held work of all tenants after `after`; from the beginning if that is deleted. */
  heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]>;
}
