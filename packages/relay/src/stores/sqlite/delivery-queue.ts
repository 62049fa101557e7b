import type { MessageKind } from "@a2a-relay/protocol";
import type { DeliveryRecord, QueuedDelivery, QueueFilter } from "../../core/ports/deliveries.ts";
import type { Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import {
  DELIVERY_COLUMN_COUNT,
  deliveryColumns,
  deliveryFromRow,
  oneOf,
  refFromRow,
  RETURNED_STATES,
  ScanBudget,
  SUBJECT_COLUMN,
  subjectFrom,
  WAITING_STATES,
} from "./rows.ts";
import type { StoreState } from "./store-state.ts";

/** Deliveries read at a time after the first step found too few. */
const SCAN_ROWS = 500;

const WITH_DEADLINE = `${deliveryColumns("d.")}, (select deadline_ms from task t
    where t.tenant = d.tenant and t.id = d.task_id)`;

// Each scan continues where the last step ended: the key of its order, then the ref.
const SQL = {
  waiting: `
    select ${WITH_DEADLINE} from delivery d indexed by delivery_expiry
    where d.tenant = ? and ${oneOf("d.state", WAITING_STATES)} and (d.expires_at_ms, d.ref) > (?, ?)
    order by d.expires_at_ms, d.ref limit ?`,
  heldOfAgent: `
    select ${WITH_DEADLINE} from delivery d indexed by delivery_held
    where d.tenant = ? and d.agent_id = ? and d.state = 'held' and d.ref > ? order by d.ref limit ?`,
  byRef: `select ${WITH_DEADLINE} from delivery d where d.ref = ?`,
  leased: `
    select ${WITH_DEADLINE} from delivery d indexed by delivery_leased
    where d.tenant = ? and d.state = 'leased' and (d.leased_at_ms, d.ref) > (?, ?)
    order by d.leased_at_ms, d.ref limit ?`,
  returned: `
    select ${WITH_DEADLINE} from delivery d indexed by delivery_returned
    where d.tenant = ? and d.state = ? and ${oneOf("d.state", RETURNED_STATES)} and d.ref < ?
    order by d.ref desc limit ?`,
  acknowledged: `
    select ${WITH_DEADLINE} from delivery d where d.ref < ? order by d.ref desc limit ?`,
  message: `
    select m.kind, m.accepted_at_ms, octet_length(m.json), ${SUBJECT_COLUMN} from message m where m.ref = ?`,
};

/** Deliveries in one order, some at a time. `key` and `ref` say where the last step ended. */
interface Scan {
  readonly rows: (key: number, ref: number, limit: number) => readonly Row[];
  readonly key: (delivery: DeliveryRecord) => number;
  readonly newestFirst?: boolean;
}

/** The operator's view of all deliveries. It finds what any filter asks for without blocking other requests. */
export class DeliveryQueue {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  async list(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    // By ref: a delivery may move from one scan into the next while this waits, and must be listed once.
    const found = new Map<number, QueuedDelivery>();
    const budget = new ScanBudget();
    for (const scan of this.#scans(filter)) await this.#collect(scan, filter, budget, found);
    return [...found.values()];
  }

  async #collect(
    scan: Scan,
    filter: QueueFilter,
    budget: ScanBudget,
    found: Map<number, QueuedDelivery>,
  ): Promise<void> {
    let wanted = filter.limit;
    let key = scan.newestFirst === true ? Number.MAX_SAFE_INTEGER : -1;
    let ref = key;
    for (;;) {
      const rows = scan.rows(key, ref, wanted);
      for (const row of rows) {
        if (found.size >= filter.limit) return;
        const delivery = deliveryFromRow(row);
        ref = refFromRow(row);
        key = scan.key(delivery);
        const deadlineMs = row[DELIVERY_COLUMN_COUNT] as number | null;
        if (!matches(delivery, deadlineMs, filter)) continue;
        const message = this.#sql.message.get(ref);
        // It may have been retired while this waited.
        if (message === undefined) continue;
        const [kind, acceptedAtMs, bytes, subject] = message;
        found.set(ref, {
          delivery,
          kind: kind as MessageKind,
          subject: subjectFrom(subject),
          acceptedAtMs: acceptedAtMs as number,
          deadlineMs,
        });
        await budget.spend(1, bytes as number);
      }
      if (rows.length < wanted || found.size >= filter.limit) return;
      wanted = SCAN_ROWS;
      await budget.spend(rows.length);
    }
  }

  #scans(filter: QueueFilter): readonly Scan[] {
    const { tenant, state } = filter;
    switch (state) {
      case undefined:
        return [this.#leasedScan(tenant), ...this.#waitingScans(filter)];
      case "held":
      case "available":
        return this.#waitingScans(filter);
      case "leased":
        return [this.#leasedScan(tenant)];
      case "acknowledged": {
        const rows: Scan["rows"] = (_, ref, limit) => this.#sql.acknowledged.all(ref, limit);
        return [{ rows, key: () => 0, newestFirst: true }];
      }
      default: {
        const rows: Scan["rows"] = (_, ref, limit) => this.#sql.returned.all(tenant, state, ref, limit);
        return [{ rows, key: () => 0, newestFirst: true }];
      }
    }
  }

  #leasedScan(tenant: string): Scan {
    return {
      rows: (key, ref, limit) => this.#sql.leased.all(tenant, key, ref, limit),
      key: (delivery) => delivery.leasedAtMs ?? 0,
    };
  }

  #waitingScans({ tenant, agentId, isOneLine, purpose }: QueueFilter): readonly Scan[] {
    if (agentId === undefined && isOneLine === true) {
      const rows: Scan["rows"] = (position, _, limit) => this.#lineRows(tenant, position, limit, purpose);
      return [{ rows, key: (delivery) => delivery.position }];
    }
    if (agentId === undefined) {
      const rows: Scan["rows"] = (key, ref, limit) => this.#sql.waiting.all(tenant, key, ref, limit);
      return [{ rows, key: (delivery) => delivery.expiresAtMs }];
    }
    return [
      { rows: (_, ref, limit) => this.#sql.heldOfAgent.all(tenant, agentId, ref, limit), key: () => 0 },
      {
        rows: (position, _, limit) => this.#availableRows(tenant, agentId, position, limit),
        key: (delivery) => delivery.position,
      },
    ];
  }

  /** Skips other purposes in memory. Includes deliveries that have expired and were not swept yet. */
  #lineRows(
    tenant: string,
    afterPosition: number,
    limit: number,
    purpose: QueueFilter["purpose"],
  ): readonly Row[] {
    const line = this.#state.deliveries.availableInLine(tenant, afterPosition, limit, { nowMs: 0, purpose });
    return line.map(({ ref }) => this.#sql.byRef.get(ref)).filter((row) => row !== undefined);
  }

  #availableRows(tenant: string, agentId: string, afterPosition: number, limit: number): readonly Row[] {
    const open = this.#state.deliveries;
    const rows: Row[] = [];
    let next = open.nextAvailable(tenant, agentId, afterPosition);
    while (next !== undefined && rows.length < limit) {
      const row = this.#sql.byRef.get(next.ref);
      if (row !== undefined) rows.push(row);
      next = open.nextAvailable(tenant, agentId, next.position);
    }
    return rows;
  }
}

function matches(delivery: DeliveryRecord, deadlineMs: number | null, filter: QueueFilter): boolean {
  const { tenant, agentId, party, purpose, state, leasedBeforeMs, deadlineBeforeMs } = filter;
  if (delivery.tenant !== tenant) return false;
  if (agentId !== undefined && delivery.agentId !== agentId) return false;
  if (party !== undefined && delivery.agentId !== party && delivery.sender !== party) return false;
  if (purpose !== undefined && delivery.purpose !== purpose) return false;
  if (state !== undefined && delivery.state !== state) return false;
  const isYoungLease =
    delivery.state === "leased" &&
    leasedBeforeMs !== undefined &&
    (delivery.leasedAtMs ?? 0) > leasedBeforeMs;
  if (isYoungLease) return false;
  return deadlineBeforeMs === undefined || (deadlineMs !== null && deadlineMs <= deadlineBeforeMs);
}
