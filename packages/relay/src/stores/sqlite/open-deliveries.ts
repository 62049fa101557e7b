import type { DatabaseSync } from "node:sqlite";
import type { AgentId, DeliveryState } from "@a2a-relay/protocol";
import type { DeliveryPurpose } from "../../core/ports/deliveries.ts";
import { type Row, Statement } from "./database.ts";
import { oneOf, WAITING_STATES } from "./rows.ts";

const COLUMNS = "tenant, agent_id, ref, state, position, expires_at_ms, reserved_for, purpose";
// Both statements use partial indexes, so they do not read settled deliveries.
const WAITING = `
  select ${COLUMNS} from delivery indexed by delivery_expiry
  where ${oneOf("state", WAITING_STATES)} order by position`;
const LEASED = `select ${COLUMNS} from delivery indexed by delivery_leased where state = 'leased'`;

/** Removed slots that a mailbox keeps before it compacts its list. */
const REMOVED_MIN = 64;

type OpenState = "held" | "available" | "leased";

/** One available delivery. `ref` is the key of its row. */
export interface AvailableDelivery {
  readonly position: number;
  readonly ref: number;
  readonly expiresAtMs: number;
  readonly purpose: DeliveryPurpose;
  /** The worker that alone may lease it. */
  readonly reservedFor: string | null;
}

/** What the index knows of one delivery, open or not. */
export interface IndexedDelivery extends AvailableDelivery {
  readonly state: DeliveryState;
}

/** Which available deliveries a reader or worker skips. */
export interface AvailableFilter {
  /** Skips those that expire at this time or before. */
  readonly nowMs: number;
  /** Skips those reserved for another worker; absent: reservations do not matter. */
  readonly worker?: string | null;
  /** Skips those of another purpose; absent: the purpose does not matter. */
  readonly purpose?: DeliveryPurpose | undefined;
}

interface Mailbox {
  held: number;
  leased: number;
  readonly available: AvailableDeliveries;
}

/**
 * The open deliveries of every mailbox, in memory: the same index in the file would dirty one more page with every
 * send to another agent and double the size of a commit. The store reads it once at start, about a second for a
 * million messages.
 */
export class OpenDeliveries {
  readonly #mailboxes = new Map<string, Map<string, Mailbox>>();
  readonly #tenants = new Map<string, Record<OpenState, number>>();

  constructor(database: DatabaseSync) {
    for (const sql of [WAITING, LEASED]) {
      for (const [tenant, agentId, ...entry] of new Statement(database, sql).iterate()) {
        this.move(String(tenant), String(agentId), undefined, indexedDeliveryFromRow(entry));
      }
    }
  }

  /** `undefined` stands for a delivery that does not exist before, or after. */
  move(
    tenant: string,
    agentId: string,
    from: IndexedDelivery | undefined,
    to: IndexedDelivery | undefined,
  ): void {
    const mailbox = this.#mailbox(tenant, agentId);
    const totals = getOrCreate(this.#tenants, tenant, () => ({ held: 0, available: 0, leased: 0 }));
    if (from !== undefined && isOpen(from.state)) {
      totals[from.state] -= 1;
      if (from.state === "available") mailbox.available.remove(from.position);
      else mailbox[from.state] -= 1;
    }
    if (to !== undefined && isOpen(to.state)) {
      totals[to.state] += 1;
      if (to.state === "available") mailbox.available.add(to);
      else mailbox[to.state] += 1;
    }
  }

  countOpen(tenant: string, agentId: string): number {
    const mailbox = this.#mailboxes.get(tenant)?.get(agentId);
    return mailbox === undefined ? 0 : mailbox.held + mailbox.leased + mailbox.available.size;
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

  /** The oldest available delivery after the position that passes the filter. */
  nextAvailable(
    tenant: string,
    agentId: string,
    afterPosition: number,
    filter?: AvailableFilter,
  ): AvailableDelivery | undefined {
    return this.#mailboxes.get(tenant)?.get(agentId)?.available.next(afterPosition, filter);
  }

  /** Checks the front of every mailbox of the tenant: microseconds for as many agents as a relay has. */
  oldestMailbox(tenant: string, filter: AvailableFilter): AgentId | undefined {
    let oldest: AgentId | undefined;
    let oldestPosition = Infinity;
    for (const [agentId, { available }] of this.#mailboxes.get(tenant) ?? []) {
      const position = available.next(0, filter)?.position ?? Infinity;
      if (position >= oldestPosition) continue;
      oldest = agentId as AgentId;
      oldestPosition = position;
    }
    return oldest;
  }

  /** Available deliveries of all mailboxes of the tenant, by position. */
  availableInLine(
    tenant: string,
    afterPosition: number,
    limit: number,
    filter: AvailableFilter,
  ): readonly AvailableDelivery[] {
    const line: AvailableDelivery[] = [];
    for (const { available } of this.#mailboxes.get(tenant)?.values() ?? []) {
      const last = line.length < limit ? Infinity : (line.at(-1)?.position ?? Infinity);
      const found: AvailableDelivery[] = [];
      let next = available.next(afterPosition, filter);
      while (next !== undefined && next.position < last && found.length < limit) {
        found.push(next);
        next = available.next(next.position, filter);
      }
      if (found.length === 0) continue;
      line.push(...found);
      line.sort((a, b) => a.position - b.position);
      line.length = Math.min(line.length, limit);
    }
    return line;
  }

  #mailbox(tenant: string, agentId: string): Mailbox {
    const mailboxes = getOrCreate(this.#mailboxes, tenant, () => new Map<string, Mailbox>());
    return getOrCreate(mailboxes, agentId, () => ({
      held: 0,
      leased: 0,
      available: new AvailableDeliveries(),
    }));
  }
}

interface Slot {
  readonly delivery: AvailableDelivery;
  isRemoved: boolean;
}

/**
 * The available deliveries of one mailbox, by position. New ones come in at the end and most leave at the front, so a
 * sorted array with removed slots does what a tree would. Skipping a delivery costs no row.
 */
export class AvailableDeliveries {
  #slots: Slot[] = [];
  #start = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(delivery: AvailableDelivery): void {
    this.#size += 1;
    const slot = { delivery, isRemoved: false };
    const last = this.#slots.at(-1);
    if (last === undefined || last.delivery.position < delivery.position) {
      this.#slots.push(slot);
      return;
    }
    // A rollback or a changed reservation brings a delivery back to its old position.
    const index = this.#indexFrom(delivery.position);
    const replaced = this.#slots[index]?.delivery.position === delivery.position ? 1 : 0;
    this.#slots.splice(index, replaced, slot);
    this.#start = Math.min(this.#start, index);
  }

  remove(position: number): void {
    const slot = this.#slots[this.#indexFrom(position)];
    if (slot?.delivery.position !== position || slot.isRemoved) return;
    slot.isRemoved = true;
    this.#size -= 1;
    while (this.#slots[this.#start]?.isRemoved === true) this.#start += 1;
    const removed = this.#slots.length - this.#size;
    if (removed > REMOVED_MIN && removed > this.#size) this.#compact();
  }

  /** The oldest delivery after the position that passes the filter. */
  next(afterPosition: number, filter?: AvailableFilter): AvailableDelivery | undefined {
    let index = afterPosition <= 0 ? this.#start : this.#indexFrom(afterPosition + 1);
    for (; index < this.#slots.length; index += 1) {
      const slot = this.#slots[index];
      if (slot !== undefined && !slot.isRemoved && passes(slot.delivery, filter)) return slot.delivery;
    }
    return undefined;
  }

  /** The first index whose position is not before the given one. */
  #indexFrom(position: number): number {
    let low = 0;
    let high = this.#slots.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#slots[middle]?.delivery.position ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compact(): void {
    this.#slots = this.#slots.filter(({ isRemoved }) => !isRemoved);
    this.#start = 0;
  }
}

function passes(delivery: AvailableDelivery, filter: AvailableFilter | undefined): boolean {
  if (filter === undefined) return true;
  if (delivery.expiresAtMs <= filter.nowMs) return false;
  if (filter.purpose !== undefined && delivery.purpose !== filter.purpose) return false;
  return (
    filter.worker === undefined || delivery.reservedFor === null || delivery.reservedFor === filter.worker
  );
}

/** The columns ref, state, position, expires_at_ms, reserved_for and purpose, in this order. */
export function indexedDeliveryFromRow([
  ref,
  state,
  position,
  expiresAtMs,
  reservedFor,
  purpose,
]: Row): IndexedDelivery {
  return {
    ref: ref as number,
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

function getOrCreate<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const created = create();
  map.set(key, created);
  return created;
}
