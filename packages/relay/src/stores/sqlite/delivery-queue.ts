import type { DatabaseSync } from "node:sqlite";
import type { MessageKind } from "@a2a-relay/protocol";
import type { DeliveryRecord, QueuedDelivery, QueueFilter } from "../../core/ports/deliveries.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import { FairShare } from "./fair-share.ts";
import type { Ledger } from "./ledger.ts";
import { oneOf, RETURNED_STATES, WAITING_STATES } from "./index-conditions.ts";
import {
  DELIVERY_COLUMN_COUNT,
  deliveryColumns,
  deliveryFromRow,
  refFromRow,
  SUBJECT_COLUMN,
  subjectFrom,
} from "./rows.ts";

/** Deliveries read at a time when the first did not match. */
const WALK_ROWS = 500;

const WITH_DEADLINE = `${deliveryColumns("d.")}, (select deadline_ms from task t
    where t.tenant = d.tenant and t.id = d.task_id)`;

// Each walk goes on where the last one ended: the key of its order, then the ref.
const WAITING = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_expiry
  where d.tenant = ? and ${oneOf("d.state", WAITING_STATES)} and (d.expires_at_ms, d.ref) > (?, ?)
  order by d.expires_at_ms, d.ref limit ?`;
const HELD_OF_AGENT = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_held
  where d.tenant = ? and d.agent_id = ? and d.state = 'held' and d.ref > ? order by d.ref limit ?`;
const BY_REF = `select ${WITH_DEADLINE} from delivery d where d.ref = ?`;
const LEASED = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_leased
  where d.tenant = ? and d.state = 'leased' and (d.leased_at_ms, d.ref) > (?, ?)
  order by d.leased_at_ms, d.ref limit ?`;
const RETURNED = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_returned
  where d.tenant = ? and d.state = ? and ${oneOf("d.state", RETURNED_STATES)} and d.ref < ?
  order by d.ref desc limit ?`;
const ACKNOWLEDGED = `
  select ${WITH_DEADLINE} from delivery d where d.ref < ? order by d.ref desc limit ?`;
const LETTER = `
  select m.kind, m.accepted_at_ms, octet_length(m.json), ${SUBJECT_COLUMN} from message m where m.ref = ?`;

/** Deliveries in one order, some at a time. `key` and `ref` say where the last ones ended. */
interface Walk {
  readonly rows: (key: number, ref: number, limit: number) => readonly Row[];
  readonly key: (delivery: DeliveryRecord) => number;
  readonly newestFirst?: boolean;
}

/** The operator's view of the mail: whatever they filter by, it is found, without holding up the mail. */
export class DeliveryQueue {
  readonly #ledger: Ledger;
  readonly #waiting: Statement;
  readonly #heldOfAgent: Statement;
  readonly #leased: Statement;
  readonly #returned: Statement;
  readonly #acknowledged: Statement;
  readonly #byRef: Statement;
  readonly #message: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#waiting = prepare(database, WAITING);
    this.#heldOfAgent = prepare(database, HELD_OF_AGENT);
    this.#leased = prepare(database, LEASED);
    this.#returned = prepare(database, RETURNED);
    this.#acknowledged = prepare(database, ACKNOWLEDGED);
    this.#byRef = prepare(database, BY_REF);
    this.#message = prepare(database, LETTER);
  }

  async queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    // By ref: mail may move from one walk into the next between two turns, and must not show twice.
    const found = new Map<number, QueuedDelivery>();
    const share = new FairShare();
    for (const walk of this.#walks(filter)) await this.#collect(walk, filter, share, found);
    return [...found.values()];
  }

  async #collect(
    walk: Walk,
    filter: QueueFilter,
    share: FairShare,
    found: Map<number, QueuedDelivery>,
  ): Promise<void> {
    let wanted = filter.limit;
    let key = walk.newestFirst === true ? Number.MAX_SAFE_INTEGER : -1;
    let ref = key;
    for (;;) {
      const rows = walk.rows(key, ref, wanted);
      for (const row of rows) {
        if (found.size >= filter.limit) return;
        const delivery = deliveryFromRow(row);
        ref = refFromRow(row);
        key = walk.key(delivery);
        const deadlineMs = row[DELIVERY_COLUMN_COUNT] as number | null;
        if (!matches(delivery, deadlineMs, filter)) continue;
        const message = this.#message.get(ref);
        // Between two turns it may have been retired.
        if (message === undefined) continue;
        const [kind, acceptedAtMs, bytes, subject] = message;
        found.set(ref, {
          delivery,
          kind: kind as MessageKind,
          subject: subjectFrom(subject),
          acceptedAtMs: acceptedAtMs as number,
          deadlineMs,
        });
        await share.spend(1, bytes as number);
      }
      if (rows.length < wanted || found.size >= filter.limit) return;
      wanted = WALK_ROWS;
      await share.spend(rows.length);
    }
  }

  #walks(filter: QueueFilter): readonly Walk[] {
    const { tenant, state } = filter;
    switch (state) {
      case undefined:
        return [this.#leasedWalk(tenant), ...this.#waitingWalks(filter)];
      case "held":
      case "available":
        return this.#waitingWalks(filter);
      case "leased":
        return [this.#leasedWalk(tenant)];
      case "acknowledged": {
        const rows: Walk["rows"] = (_, ref, limit) => this.#acknowledged.all(ref, limit);
        return [{ rows, key: () => 0, newestFirst: true }];
      }
      default: {
        const rows: Walk["rows"] = (_, ref, limit) => this.#returned.all(tenant, state, ref, limit);
        return [{ rows, key: () => 0, newestFirst: true }];
      }
    }
  }

  #leasedWalk(tenant: string): Walk {
    return {
      rows: (key, ref, limit) => this.#leased.all(tenant, key, ref, limit),
      key: (delivery) => delivery.leasedAtMs ?? 0,
    };
  }

  #waitingWalks({ tenant, agentId, isOneLine, purpose }: QueueFilter): readonly Walk[] {
    if (agentId === undefined && isOneLine === true) {
      const rows: Walk["rows"] = (position, _, limit) => this.#lineRows(tenant, position, limit, purpose);
      return [{ rows, key: (delivery) => delivery.position }];
    }
    if (agentId === undefined) {
      const rows: Walk["rows"] = (key, ref, limit) => this.#waiting.all(tenant, key, ref, limit);
      return [{ rows, key: (delivery) => delivery.expiresAtMs }];
    }
    return [
      { rows: (_, ref, limit) => this.#heldOfAgent.all(tenant, agentId, ref, limit), key: () => 0 },
      {
        rows: (position, _, limit) => this.#availableRows(tenant, agentId, position, limit),
        key: (delivery) => delivery.position,
      },
    ];
  }

  /** MailboxMessage for other purposes is passed over in memory. Also shown is what expired and was not swept yet. */
  #lineRows(
    tenant: string,
    afterPosition: number,
    limit: number,
    purpose: QueueFilter["purpose"],
  ): readonly Row[] {
    const line = this.#ledger.mailboxes.availableInLine(tenant, afterPosition, limit, { nowMs: 0, purpose });
    return line.map(({ ref }) => this.#byRef.get(ref)).filter((row) => row !== undefined);
  }

  #availableRows(tenant: string, agentId: string, afterPosition: number, limit: number): readonly Row[] {
    const { mailboxes } = this.#ledger;
    const rows: Row[] = [];
    let next = mailboxes.nextAvailable(tenant, agentId, afterPosition);
    while (next !== undefined && rows.length < limit) {
      const row = this.#byRef.get(next.ref);
      if (row !== undefined) rows.push(row);
      next = mailboxes.nextAvailable(tenant, agentId, next.position);
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
