import type { DatabaseSync } from "node:sqlite";
import type { DeliveryState } from "@a2a-relay/protocol";
import { prepare } from "./database.ts";

// Three partial indexes answer this at start without reading settled mail.
const COUNT_OPEN = `
  select tenant, agent_id, 'held', count(*) from delivery where state = 'held' group by tenant, agent_id
  union all
  select tenant, agent_id, 'available', count(*) from delivery where state = 'available' group by tenant, agent_id
  union all
  select tenant, agent_id, 'leased', count(*) from delivery where state = 'leased' group by tenant, agent_id`;

type OpenState = "held" | "available" | "leased";
type Counts = Record<OpenState, number>;

/** How much mail is open, by mailbox and by tenant: counted once at start, then kept up to date. */
export class OpenCounts {
  readonly #mailboxes = new Map<string, Map<string, Counts>>();
  readonly #tenants = new Map<string, Counts>();

  constructor(database: DatabaseSync) {
    for (const [tenant, agentId, state, count] of prepare(database, COUNT_OPEN).all()) {
      this.#add(String(tenant), String(agentId), state as OpenState, Number(count));
    }
  }

  move(
    tenant: string,
    agentId: string,
    from: DeliveryState | undefined,
    to: DeliveryState | undefined,
  ): void {
    if (isOpen(from)) this.#add(tenant, agentId, from, -1);
    if (isOpen(to)) this.#add(tenant, agentId, to, 1);
  }

  open(tenant: string, agentId: string): number {
    const counts = this.#mailboxes.get(tenant)?.get(agentId);
    return counts === undefined ? 0 : counts.held + counts.available + counts.leased;
  }

  available(tenant: string, agentId: string): number {
    return this.#mailboxes.get(tenant)?.get(agentId)?.available ?? 0;
  }

  byState(tenant: string): ReadonlyMap<DeliveryState, number> {
    const counts = this.#tenants.get(tenant) ?? none();
    return new Map<DeliveryState, number>([
      ["held", counts.held],
      ["available", counts.available],
      ["leased", counts.leased],
    ]);
  }

  #add(tenant: string, agentId: string, state: OpenState, count: number): void {
    const mailboxes = entry(this.#mailboxes, tenant, () => new Map<string, Counts>());
    entry(mailboxes, agentId, none)[state] += count;
    entry(this.#tenants, tenant, none)[state] += count;
  }
}

function isOpen(state: DeliveryState | undefined): state is OpenState {
  return state === "available" || state === "leased" || state === "held";
}

function none(): Counts {
  return { held: 0, available: 0, leased: 0 };
}

function entry<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}
