import type { DeliveryState, TaskState } from "@a2a-relay/protocol";

export const WAITING_STATES: readonly DeliveryState[] = ["held", "available"];
export const OPEN_STATES: readonly DeliveryState[] = ["held", "available", "leased"];
export const RETURNED_STATES: readonly DeliveryState[] = ["expired", "withdrawn", "dead"];
export const UNFINISHED_STATES: readonly TaskState[] = [
  "submitted",
  "working",
  "input-required",
  "auth-required",
];

/**
 * A condition in the words of the partial indexes: SQLite takes such an index only for a statement that says the same,
 * and `in` would have it build a table of the list for every row that is written (see migration 0005).
 */
export function oneOf(column: string, values: readonly string[]): string {
  return `(${values.map((value) => `${column} = '${value}'`).join(" or ")})`;
}
