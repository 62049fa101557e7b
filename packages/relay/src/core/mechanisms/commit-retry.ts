import { RelayError } from "@a2a-relay/protocol";
import type { Changes, Clash, RelayStore } from "../ports/relay-store.ts";
import { ClaimLost } from "./own-claims.ts";

const ATTEMPTS_MAX = 20;

/** What a rule decided: the changes to commit, if any, and the answer once they are committed. */
export interface Decision<Answer> {
  readonly changes: Changes | undefined;
  readonly answer: Answer;
}

/** Runs an act while it holds a mutex. */
export type RunExclusive = <Answer>(act: () => Promise<Answer>) => Promise<Answer>;

/**
 * Reads, decides and commits. After a clash `decide` runs again from fresh reads and is told what clashed. Callers that
 * spend the same capability all clash with each other: from the first such clash on they run one by one,
 * in `spendExclusively`. A lost claim is `ClaimLost`.
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
    if (clash === "claim") throw new ClaimLost("another process has taken over this work");
    if (clash === "capability" && spendExclusively !== undefined) {
      return spendExclusively(() => decideAndCommit(store, decide));
    }
  }
  throw new RelayError("unavailable", "too many callers change this at the same time; try again");
}

/** Several parts of one act as one change. Lists that are empty are left out. */
export function combine(tenant: string, parts: readonly Partial<Changes>[]): Changes {
  const lists: Record<string, unknown[]> = { events: [] };
  for (const { tenant: _, ...part } of parts) {
    for (const [list, items] of Object.entries(part)) {
      if (items !== undefined && items.length > 0) (lists[list] ??= []).push(...items);
    }
  }
  return { tenant, ...lists } as unknown as Changes;
}
