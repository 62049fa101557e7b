import { RelayError } from "@a2a-relay/protocol";
import type { Changes, Clash, RelayStore } from "../ports/relay-store.ts";

const ATTEMPTS_MAX = 20;

/** What a rule decided: the change to write, if any, and the answer once it is written. */
export interface Decision<Answer> {
  readonly changes: Changes | undefined;
  readonly answer: Answer;
}

/** Runs an act when it is its turn. */
export type RunExclusive = <Answer>(act: () => Promise<Answer>) => Promise<Answer>;

/**
 * Reads, decides and commits until nobody else was faster. `decide` runs again from fresh reads after a
 * clash and is told what clashed. Many at once may spend the same capability, each of them a clash for all
 * others: `spendExclusively` is how they wait for each other from their first clash on.
 */
export async function decideAndCommit<Answer>(
  store: RelayStore,
  decide: (clash: Clash | undefined) => Promise<Decision<Answer>>,
  spendExclusively?: RunExclusive,
): Promise<Answer> {
  let clash: Clash | undefined;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const { changes, answer } = await decide(clash);
    if (changes === undefined) return answer;
    const outcome = await store.commit(changes);
    if (outcome.committed) return answer;
    clash = outcome.clash;
    if (clash === "capability" && spendExclusively !== undefined) {
      return spendExclusively(() => decideAndCommit(store, decide));
    }
  }
  throw new RelayError("unavailable", "too many callers change this at the same time; try again");
}

/**
 * Several parts of one act as one change, with only what there is. Mostly one part has any of a sort, and then its
 * list is taken as it is: every send and every acknowledgement comes by here.
 */
export function combine(tenant: string, parts: readonly Partial<Changes>[]): Changes {
  const combined: Changes = { tenant, events: [] };
  const lists = combined as unknown as Record<string, readonly unknown[] | undefined>;
  /** Those that were made here, and may grow. */
  let own: Set<unknown> | undefined;
  for (const part of parts) {
    for (const sort in part) {
      const items = (part as typeof lists)[sort] ?? [];
      if (sort === "tenant" || items.length === 0) continue;
      const before = lists[sort] ?? [];
      if (own?.has(before) === true) {
        (before as unknown[]).push(...items);
        continue;
      }
      const isFirst = before.length === 0;
      lists[sort] = isFirst ? items : [...before, ...items];
      if (!isFirst) (own ??= new Set()).add(lists[sort]);
    }
  }
  return combined;
}
