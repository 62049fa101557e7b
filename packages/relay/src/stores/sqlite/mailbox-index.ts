import type { DatabaseSync } from "node:sqlite";
import type { AgentId, DeliveryState } from "@a2a-relay/protocol";
import type { DeliveryPurpose } from "../../core/ports/deliveries.ts";
import { AvailableDeliveries, type AvailablePlace, type Wanted } from "./available-mail.ts";
import { prepare, type Row } from "./database.ts";
import { oneOf, WAITING_STATES } from "./index-conditions.ts";

// Both go through partial indexes, so settled mail is not read.
const WAITING = `
  select tenant, agent_id, ref, state, position, expires_at_ms, reserved_for, purpose
  from delivery indexed by delivery_expiry
  where ${oneOf("state", WAITING_STATES)} order by position`;
const LEASED = `
  select tenant, agent_id, ref, state, position, expires_at_ms, reserved_for, purpose
  from delivery indexed by delivery_leased
  where state = 'leased'`;

type OpenState = "held" | "available" | "leased";

/** Where one delivery is: its state, and its place in the mailbox while it is available. */
export interface Place extends Omit<AvailablePlace, "ref"> {
  readonly state: DeliveryState;
}

interface Mailbox {
  held: number;
  leased: number;
  readonly available: AvailableDeliveries;
}

/**
 * Which mail is open, by mailbox. It lives in memory because the same index in the file would dirty a page
 * of its own with every send to another agent: that doubled the size of a commit. It is read once at start,
 * about a second for a million messages.
 */
export class MailboxIndex {
  readonly #mailboxes = new Map<string, Map<string, Mailbox>>();
  readonly #tenants = new Map<string, Record<OpenState, number>>();

  constructor(database: DatabaseSync) {
    for (const sql of [WAITING, LEASED]) {
      for (const [tenant, agentId, ref, ...place] of prepare(database, sql).iterate()) {
        this.move(String(tenant), String(agentId), Number(ref), undefined, placeFromRow(place));
      }
    }
  }

  /** `undefined` stands for mail that does not exist before, or after. */
  move(tenant: string, agentId: string, ref: number, from: Place | undefined, to: Place | undefined): void {
    const mailbox = this.#mailbox(tenant, agentId);
    const totals = entry(this.#tenants, tenant, () => ({ held: 0, available: 0, leased: 0 }));
    if (from !== undefined && isOpen(from.state)) {
      totals[from.state] -= 1;
      if (from.state === "available") mailbox.available.remove(from.position);
      else mailbox[from.state] -= 1;
    }
    if (to !== undefined && isOpen(to.state)) {
      totals[to.state] += 1;
      if (to.state === "available") mailbox.available.add({ ...to, ref });
      else mailbox[to.state] += 1;
    }
  }

  countOpen(tenant: string, agentId: string): number {
    const mailbox = this.#mailboxes.get(tenant)?.get(agentId);
    return mailbox === undefined ? 0 : mailbox.held + mailbox.leased + mailbox.available.size;
  }

  countAvailable(tenant: string, agentId: string): number {
    return this.#mailboxes.get(tenant)?.get(agentId)?.available.size ?? 0;
  }

  countOpenByState(tenant: string, agentId?: string): ReadonlyMap<DeliveryState, number> {
    const mailbox = agentId === undefined ? undefined : this.#mailboxes.get(tenant)?.get(agentId);
    const ofOne = { held: mailbox?.held, available: mailbox?.available.size, leased: mailbox?.leased };
    const counts = agentId === undefined ? this.#tenants.get(tenant) : ofOne;
    const { held = 0, available = 0, leased = 0 } = counts ?? {};
    return new Map<DeliveryState, number>([
      ["held", held],
      ["available", available],
      ["leased", leased],
    ]);
  }

  /** The oldest available mail after the position, of what is wanted. */
  nextAvailable(
    tenant: string,
    agentId: string,
    afterPosition: number,
    wanted?: Wanted,
  ): AvailablePlace | undefined {
    return this.#mailboxes.get(tenant)?.get(agentId)?.available.next(afterPosition, wanted);
  }

  /** Looks at the front of every mailbox of the tenant: microseconds for as many agents as a relay has. */
  oldestMailbox(tenant: string, wanted: Wanted): AgentId | undefined {
    let oldest: AgentId | undefined;
    let oldestPosition = Infinity;
    for (const [agentId, { available }] of this.#mailboxes.get(tenant) ?? []) {
      const position = available.next(0, wanted)?.position ?? Infinity;
      if (position >= oldestPosition) continue;
      oldest = agentId as AgentId;
      oldestPosition = position;
    }
    return oldest;
  }

  /** The mail of all mailboxes of the tenant as one line, after the position. */
  availableInLine(
    tenant: string,
    afterPosition: number,
    limit: number,
    wanted: Wanted,
  ): readonly AvailablePlace[] {
    const line: AvailablePlace[] = [];
    for (const { available } of this.#mailboxes.get(tenant)?.values() ?? []) {
      const last = line.length < limit ? Infinity : (line.at(-1)?.position ?? Infinity);
      const found: AvailablePlace[] = [];
      let next = available.next(afterPosition, wanted);
      while (next !== undefined && next.position < last && found.length < limit) {
        found.push(next);
        next = available.next(next.position, wanted);
      }
      if (found.length === 0) continue;
      line.push(...found);
      line.sort((a, b) => a.position - b.position);
      line.length = Math.min(line.length, limit);
    }
    return line;
  }

  #mailbox(tenant: string, agentId: string): Mailbox {
    const mailboxes = entry(this.#mailboxes, tenant, () => new Map<string, Mailbox>());
    return entry(mailboxes, agentId, () => ({ held: 0, leased: 0, available: new AvailableDeliveries() }));
  }
}

/** The columns state, position, expires_at_ms, reserved_for and purpose, in this order. */
export function placeFromRow([state, position, expiresAtMs, reservedFor, purpose]: Row): Place {
  return {
    state: state as DeliveryState,
    position: position as number,
    expiresAtMs: expiresAtMs as number,
    reservedFor: reservedFor as string | null,
    purpose: purpose as DeliveryPurpose,
  };
}

function isOpen(state: DeliveryState): state is OpenState {
  return state === "available" || state === "leased" || state === "held";
}

function entry<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}
