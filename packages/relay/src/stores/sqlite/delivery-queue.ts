import type { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { DeliveryRecord } from "../../core/mailboxes/delivery-record.ts";
import type { Mail, QueueFilter } from "../../core/mailboxes/mailbox-store.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Messages } from "./messages.ts";
import { DELIVERY_COLUMN_COUNT, deliveryColumns, deliveryFromRow, refFromRow } from "./rows.ts";

/** Deliveries looked at between two turns of the event loop, so that a rare filter holds nobody up. */
const WALK_ROWS = 500;

const WITH_DEADLINE = `${deliveryColumns("d.")}, (select deadline_ms from task t
    where t.tenant = d.tenant and t.id = d.task_id)`;

// Each walk goes on behind (?2, ?3): the key of its order, then the ref.
const WAITING = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_expiry
  where d.tenant = ?1 and d.state in ('held', 'available') and (d.expires_at_ms, d.ref) > (?2, ?3)
  order by d.expires_at_ms, d.ref limit ?4`;
const HELD_OF_AGENT = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_held
  where d.tenant = ?1 and d.agent_id = ?5 and d.state = 'held' and d.ref > ?3 order by d.ref limit ?4`;
const AVAILABLE_OF_AGENT = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_available
  where d.tenant = ?1 and d.agent_id = ?5 and d.state = 'available' and d.position > ?2
  order by d.position limit ?4`;
const LEASED = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_leased
  where d.tenant = ?1 and d.state = 'leased' and (d.leased_at_ms, d.ref) > (?2, ?3)
  order by d.leased_at_ms, d.ref limit ?4`;
const RETURNED = `
  select ${WITH_DEADLINE} from delivery d indexed by delivery_returned
  where d.tenant = ?1 and d.state = ?5 and d.state in ('expired', 'withdrawn', 'dead') and d.ref < ?3
  order by d.ref desc limit ?4`;
const ACKNOWLEDGED = `
  select ${WITH_DEADLINE} from delivery d where d.ref < ?3 order by d.ref desc limit ?4`;

interface Walk {
  readonly statement: Statement;
  readonly key: (delivery: DeliveryRecord) => number;
  readonly newestFirst?: boolean;
  /** The agent or state that the statement asks for as ?5. */
  readonly argument?: string;
}

/** The operator's view of the mail: whatever they filter by, it is found, without holding up the mail. */
export class DeliveryQueue {
  readonly #messages: Messages;
  readonly #waiting: Statement;
  readonly #heldOfAgent: Statement;
  readonly #availableOfAgent: Statement;
  readonly #leased: Statement;
  readonly #returned: Statement;
  readonly #acknowledged: Statement;

  constructor(database: DatabaseSync, messages: Messages) {
    this.#messages = messages;
    this.#waiting = prepare(database, WAITING);
    this.#heldOfAgent = prepare(database, HELD_OF_AGENT);
    this.#availableOfAgent = prepare(database, AVAILABLE_OF_AGENT);
    this.#leased = prepare(database, LEASED);
    this.#returned = prepare(database, RETURNED);
    this.#acknowledged = prepare(database, ACKNOWLEDGED);
  }

  async queue(filter: QueueFilter): Promise<readonly Mail[]> {
    // By ref: mail may move from one walk into the next between two turns, and must not show twice.
    const found = new Map<number, Mail>();
    for (const walk of this.#walks(filter)) await this.#collect(walk, filter, found);
    return [...found.values()];
  }

  async #collect(walk: Walk, filter: QueueFilter, found: Map<number, Mail>): Promise<void> {
    let wanted = filter.limit;
    let key = walk.newestFirst === true ? Number.MAX_SAFE_INTEGER : -1;
    let ref = key;
    for (;;) {
      const rows = rowsOf(walk, filter.tenant, key, ref, wanted);
      for (const row of rows) {
        if (found.size >= filter.limit) return;
        const delivery = deliveryFromRow(row);
        ref = refFromRow(row);
        key = walk.key(delivery);
        if (!matches(delivery, row[DELIVERY_COLUMN_COUNT], filter)) continue;
        found.set(ref, { delivery, message: this.#messages.messageByRef(ref) });
      }
      if (rows.length < wanted || found.size >= filter.limit) return;
      wanted = WALK_ROWS;
      await setImmediate();
    }
  }

  #walks(filter: QueueFilter): readonly Walk[] {
    const { state, agentId } = filter;
    const leased: Walk = { statement: this.#leased, key: (delivery) => delivery.leasedAtMs ?? 0 };
    switch (state) {
      case undefined:
        return [...this.#waitingWalks(agentId), leased];
      case "held":
      case "available":
        return this.#waitingWalks(agentId);
      case "leased":
        return [leased];
      case "acknowledged":
        return [{ statement: this.#acknowledged, key: () => 0, newestFirst: true }];
      default:
        return [{ statement: this.#returned, key: () => 0, newestFirst: true, argument: state }];
    }
  }

  #waitingWalks(agentId: string | undefined): readonly Walk[] {
    if (agentId === undefined) {
      return [{ statement: this.#waiting, key: (delivery) => delivery.expiresAtMs }];
    }
    return [
      { statement: this.#heldOfAgent, key: () => 0, argument: agentId },
      { statement: this.#availableOfAgent, key: (delivery) => delivery.position, argument: agentId },
    ];
  }
}

function rowsOf(walk: Walk, tenant: string, key: number, ref: number, limit: number): readonly Row[] {
  if (walk.argument === undefined) return walk.statement.all(tenant, key, ref, limit);
  return walk.statement.all(tenant, key, ref, limit, walk.argument);
}

function matches(delivery: DeliveryRecord, deadlineMs: unknown, filter: QueueFilter): boolean {
  const { tenant, agentId, state, leasedBeforeMs, deadlineBeforeMs } = filter;
  if (delivery.tenant !== tenant) return false;
  if (agentId !== undefined && delivery.agentId !== agentId) return false;
  if (state !== undefined && delivery.state !== state) return false;
  const isYoungLease =
    delivery.state === "leased" &&
    leasedBeforeMs !== undefined &&
    (delivery.leasedAtMs ?? 0) > leasedBeforeMs;
  if (isYoungLease) return false;
  return (
    deadlineBeforeMs === undefined || (typeof deadlineMs === "number" && deadlineMs <= deadlineBeforeMs)
  );
}
