import { RelayError } from "@a2a-relay/protocol";
import type { Changes, Clash, RelayStore } from "./relay-store.ts";

const ATTEMPTS_MAX = 20;

/** What a rule decided: the change to write, if any, and the answer once it is written. */
export interface Decision<Answer> {
  readonly changes: Changes | undefined;
  readonly answer: Answer;
}

/** Runs an act when it is its turn. */
export type InTurn = <Answer>(act: () => Promise<Answer>) => Promise<Answer>;

/**
 * Reads, decides and commits until nobody else was faster. `decide` runs again from fresh reads after a
 * clash and is told what clashed. Many at once may spend the same capability, each of them a clash for all
 * others: `spendInTurn` is how they wait for each other from their first clash on.
 */
export async function decideAndCommit<Answer>(
  store: RelayStore,
  decide: (clash: Clash | undefined) => Promise<Decision<Answer>>,
  spendInTurn?: InTurn,
): Promise<Answer> {
  let clash: Clash | undefined;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const { changes, answer } = await decide(clash);
    if (changes === undefined) return answer;
    const outcome = await store.commit(changes);
    if (outcome.committed) return answer;
    clash = outcome.clash;
    if (clash === "capability" && spendInTurn !== undefined) {
      return spendInTurn(() => decideAndCommit(store, decide));
    }
  }
  throw new RelayError("unavailable", "too many callers change this at the same time; try again");
}

/** Several parts of one act as one change. */
export function combine(tenant: string, parts: readonly Partial<Changes>[]): Changes {
  return {
    tenant,
    events: gathered(parts, (part) => part.events),
    agents: gathered(parts, (part) => part.agents),
    messages: gathered(parts, (part) => part.messages),
    sendKeys: gathered(parts, (part) => part.sendKeys),
    deliveries: gathered(parts, (part) => part.deliveries),
    room: gathered(parts, (part) => part.room),
    tasks: gathered(parts, (part) => part.tasks),
    artifacts: gathered(parts, (part) => part.artifacts),
    cachedResults: gathered(parts, (part) => part.cachedResults),
    custodialKeys: gathered(parts, (part) => part.custodialKeys),
    keys: gathered(parts, (part) => part.keys),
    tenants: gathered(parts, (part) => part.tenants),
    capabilities: gathered(parts, (part) => part.capabilities),
  };
}

/** Mostly one part has any, and then its list is taken as it is: every send and every acknowledgement is here. */
function gathered<Item>(
  parts: readonly Partial<Changes>[],
  of: (part: Partial<Changes>) => readonly Item[] | undefined,
): readonly Item[] {
  let first: readonly Item[] = [];
  let all: Item[] | undefined;
  for (const part of parts) {
    const items = of(part);
    if (items === undefined || items.length === 0) continue;
    if (first.length === 0) {
      first = items;
      continue;
    }
    all ??= [...first];
    all.push(...items);
  }
  return all ?? first;
}
