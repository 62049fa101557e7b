import type { Entry } from "./history.ts";

/** What a check found: how often it had something to compare, and what was wrong. */
export class Verdict {
  readonly violations: string[] = [];
  checked = 0;

  expect(holds: boolean, violation: () => string): void {
    this.checked += 1;
    if (!holds) this.violations.push(violation());
  }
}

export type Check = (entries: readonly Entry[], verdict: Verdict) => void;

export function groupBy<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key | undefined,
): ReadonlyMap<Key, readonly Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
