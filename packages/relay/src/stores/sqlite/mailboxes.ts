import type { DatabaseSync } from "node:sqlite";
import type { AgentId, DeliveryState } from "@a2a-relay/protocol";
import { mailboxTopic } from "../../core/environment/change-feed.ts";
import type { EventDraft } from "../../core/journal/event.ts";
import type { DeliveryRecord } from "../../core/mailboxes/delivery-record.ts";
import type { Mail, MailboxLeaseQuery, MailboxReadQuery } from "../../core/mailboxes/mailbox-store.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Journal } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import type { Messages } from "./messages.ts";
import {
  DELIVERY_COLUMN_COUNT,
  deliveryColumns,
  deliveryFromRow,
  MESSAGE_COLUMNS,
  messageFromRow,
  refFromRow,
} from "./rows.ts";

const COLUMNS = deliveryColumns("d.");

const AVAILABLE = `
  select ${COLUMNS}, ${MESSAGE_COLUMNS} from delivery d indexed by delivery_available
  join message m on m.ref = d.ref
  where d.tenant = ? and d.agent_id = ? and d.state = 'available' and d.position > ? and d.expires_at_ms > ?
  order by d.position limit ?`;
const SELECT = `
  select ${COLUMNS} from delivery d
  where d.ref = (select ref from message where tenant = ? and id = ?)`;
const STATE = "select state, position, version from delivery where ref = ?";
const OPEN_OF_TASK = `
  select ${COLUMNS} from delivery d indexed by delivery_open_of_task
  where d.tenant = ? and d.task_id = ? and d.state in ('held', 'available', 'leased') order by d.ref`;
const OPEN_OF_AGENT = `
  select * from (select ${COLUMNS} from delivery d indexed by delivery_available
    where d.tenant = ?1 and d.agent_id = ?2 and d.state = 'available' limit ?3)
  union all
  select * from (select ${COLUMNS} from delivery d indexed by delivery_held
    where d.tenant = ?1 and d.agent_id = ?2 and d.state = 'held' limit ?3)
  union all
  select * from (select ${COLUMNS} from delivery d indexed by delivery_leased
    where d.tenant = ?1 and d.agent_id = ?2 and d.state = 'leased' limit ?3)
  limit ?3`;
// Steps from tenant to tenant in the index, so that no sweep reads the mail that is still good.
const EXPIRED = `
  with recursive tenants (tenant) as (
    select min(tenant) from delivery where state in ('held', 'available')
    union all
    select (select min(tenant) from delivery where state in ('held', 'available') and tenant > tenants.tenant)
    from tenants where tenants.tenant is not null)
  select ${COLUMNS} from tenants t cross join delivery d indexed by delivery_expiry
  where d.tenant = t.tenant and d.state in ('held', 'available') and d.expires_at_ms <= ? limit ?`;
const TIMED_OUT = `
  select ${COLUMNS} from delivery d indexed by delivery_lease_end
  where d.state = 'leased' and d.duplicate_safety = 'idempotent' and d.lease_expires_at_ms is not null
    and d.lease_expires_at_ms <= ?
  order by d.lease_expires_at_ms limit ?`;
const LEASED = `
  select ${COLUMNS} from delivery d indexed by delivery_leased
  where d.tenant = ? and d.state = 'leased' order by d.leased_at_ms, d.ref limit ?`;

const INSERT = `
  insert into delivery (${deliveryColumns("")})
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) on conflict do nothing`;
const UPDATE = `
  update delivery set state = ?, position = ?, delivered_at_ms = ?, attempt = ?, lease_id = ?, worker = ?,
    leased_at_ms = ?, lease_expires_at_ms = ?, reserved_for = ?, expires_at_ms = ?, settled_at_ms = ?,
    reason = ?, version = version + 1
  where ref = ?`;
const MARK_DELIVERED = `
  update delivery set delivered_at_ms = ?, version = version + 1
  where ref = (select ref from message where tenant = ? and id = ?)
    and state = 'available' and delivered_at_ms is null
  returning ${deliveryColumns("")}`;
// One statement, so that two callers are never handed the same mail.
const LEASE_ONE = `
  update delivery set state = 'leased', attempt = attempt + 1, lease_id = ?, worker = ?, leased_at_ms = ?,
    lease_expires_at_ms = ?, version = version + 1
  where ref = (
    select ref from delivery indexed by delivery_available
    where tenant = ? and agent_id = ? and state = 'available' and expires_at_ms > ?
      and (reserved_for is null or reserved_for = ?)
    order by position limit 1)
  returning ${deliveryColumns("")}`;
const RENEW = `
  update delivery set lease_expires_at_ms = ?, version = version + 1
  where ref = (select ref from message where tenant = ? and id = ?)
    and agent_id = ? and state = 'leased' and lease_id = ?
  returning ${deliveryColumns("")}`;

/** Deliveries: what is in whose mailbox, and who works on it. */
export class Mailboxes {
  readonly #ledger: Ledger;
  readonly #messages: Messages;
  readonly #journal: Journal;
  readonly #available: Statement;
  readonly #select: Statement;
  readonly #state: Statement;
  readonly #openOfTask: Statement;
  readonly #openOfAgent: Statement;
  readonly #expired: Statement;
  readonly #timedOut: Statement;
  readonly #leased: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #markDelivered: Statement;
  readonly #leaseOne: Statement;
  readonly #renew: Statement;

  constructor(database: DatabaseSync, ledger: Ledger, messages: Messages, journal: Journal) {
    this.#ledger = ledger;
    this.#messages = messages;
    this.#journal = journal;
    this.#available = prepare(database, AVAILABLE);
    this.#select = prepare(database, SELECT);
    this.#state = prepare(database, STATE);
    this.#openOfTask = prepare(database, OPEN_OF_TASK);
    this.#openOfAgent = prepare(database, OPEN_OF_AGENT);
    this.#expired = prepare(database, EXPIRED);
    this.#timedOut = prepare(database, TIMED_OUT);
    this.#leased = prepare(database, LEASED);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#markDelivered = prepare(database, MARK_DELIVERED);
    this.#leaseOne = prepare(database, LEASE_ONE);
    this.#renew = prepare(database, RENEW);
  }

  availableMail(query: MailboxReadQuery): readonly Mail[] {
    if (this.#ledger.countAvailable(query.tenant, query.agentId) === 0) return [];
    return this.#available
      .all(query.tenant, query.agentId, query.afterPosition, query.nowMs, query.limit)
      .map((row) => ({ delivery: deliveryFromRow(row), message: messageFromRow(row, DELIVERY_COLUMN_COUNT) }));
  }

  delivery(tenant: string, messageId: string): DeliveryRecord | undefined {
    const row = this.#select.get(tenant, messageId);
    return row === undefined ? undefined : deliveryFromRow(row);
  }

  openDeliveriesOfTask(tenant: string, taskId: string): readonly DeliveryRecord[] {
    return deliveries(this.#openOfTask.all(tenant, taskId));
  }

  openDeliveriesOfAgent(tenant: string, agentId: AgentId, limit: number): readonly DeliveryRecord[] {
    if (this.#ledger.countOpen(tenant, agentId) === 0) return [];
    return deliveries(this.#openOfAgent.all(tenant, agentId, limit));
  }

  countOpen(tenant: string, agentId: AgentId): number {
    return this.#ledger.countOpen(tenant, agentId);
  }

  countAvailable(tenant: string, agentId: AgentId): number {
    return this.#ledger.countAvailable(tenant, agentId);
  }

  countOpenByState(tenant: string): ReadonlyMap<DeliveryState, number> {
    return this.#ledger.countOpenByState(tenant);
  }

  expiredDeliveries(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#expired.all(nowMs, limit));
  }

  timedOutLeases(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#timedOut.all(nowMs, limit));
  }

  leasedMail(tenant: string, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#leased.all(tenant, limit));
  }

  /** Inside a commit. `ref` is known when the message is written in the same commit. */
  put(delivery: DeliveryRecord, ref: number | undefined): void {
    if (delivery.version === 0) this.#insertNew(delivery, ref);
    else this.#updateKnown(delivery);
    if (delivery.state === "available") this.#ledger.wake(mailboxTopic(delivery.tenant, delivery.agentId));
  }

  /** Inside a commit. */
  markDelivered(
    tenant: string,
    messageIds: readonly string[],
    deliveredAtMs: number,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): void {
    for (const messageId of messageIds) {
      const row = this.#markDelivered.get(deliveredAtMs, tenant, messageId);
      if (row !== undefined) this.#journal.append(tenant, event(deliveryFromRow(row)));
    }
  }

  /** Inside a commit. */
  lease(query: MailboxLeaseQuery, event: (delivery: DeliveryRecord) => EventDraft): readonly Mail[] {
    const { tenant, agentId, worker, nowMs, leaseExpiresAtMs } = query;
    const mail: Mail[] = [];
    for (const leaseId of query.leaseIds) {
      const row = this.#leaseOne.get(
        leaseId,
        worker,
        nowMs,
        leaseExpiresAtMs,
        tenant,
        agentId,
        nowMs,
        worker,
      );
      if (row === undefined) break;
      const delivery = deliveryFromRow(row);
      this.#ledger.moveDelivery(tenant, agentId, "available", "leased");
      this.#journal.append(tenant, event(delivery));
      mail.push({ delivery, message: this.#messages.messageByRef(refFromRow(row)) });
    }
    return mail;
  }

  /** Inside a commit. */
  renewLeases(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): ReadonlyMap<string, DeliveryRecord> {
    const renewed = new Map<string, DeliveryRecord>();
    for (const { messageId, leaseId } of leases) {
      const row = this.#renew.get(leaseExpiresAtMs, tenant, messageId, agentId, leaseId);
      if (row !== undefined) renewed.set(messageId, deliveryFromRow(row));
    }
    return renewed;
  }

  #insertNew(delivery: DeliveryRecord, newRef: number | undefined): void {
    const ref = newRef ?? this.#refOf(delivery);
    const { changes } = this.#insert.run(
      ref,
      delivery.tenant,
      delivery.messageId,
      delivery.agentId,
      delivery.sender,
      delivery.taskId,
      delivery.state,
      delivery.state === "available" ? (newRef ?? this.#ledger.nextPosition()) : 0,
      delivery.deliveredAtMs,
      delivery.attempt,
      delivery.leaseId,
      delivery.worker,
      delivery.leasedAtMs,
      delivery.leaseExpiresAtMs,
      delivery.reservedFor,
      delivery.expiresAtMs,
      delivery.settledAtMs,
      delivery.reason,
      delivery.duplicateSafety,
      delivery.idempotencyKey,
      delivery.quiet ? 1 : 0,
    );
    if (changes === 0) throw new ClashError("delivery");
    this.#ledger.moveDelivery(delivery.tenant, delivery.agentId, undefined, delivery.state);
  }

  #updateKnown(delivery: DeliveryRecord): void {
    const ref = this.#refOf(delivery);
    const [state, position, version] = this.#state.get(ref) ?? [];
    if (version !== delivery.version) throw new ClashError("delivery");
    const becomesAvailable = delivery.state === "available" && state !== "available";
    this.#update.run(
      delivery.state,
      becomesAvailable ? this.#ledger.nextPosition() : (position as number),
      delivery.deliveredAtMs,
      delivery.attempt,
      delivery.leaseId,
      delivery.worker,
      delivery.leasedAtMs,
      delivery.leaseExpiresAtMs,
      delivery.reservedFor,
      delivery.expiresAtMs,
      delivery.settledAtMs,
      delivery.reason,
      ref,
    );
    this.#ledger.moveDelivery(delivery.tenant, delivery.agentId, state as DeliveryState, delivery.state);
  }

  /** The message may have been retired since its delivery was read. */
  #refOf(delivery: DeliveryRecord): number {
    const ref = this.#messages.ref(delivery.tenant, delivery.messageId);
    if (ref === undefined) throw new ClashError("delivery");
    return ref;
  }
}

function deliveries(rows: readonly Row[]): readonly DeliveryRecord[] {
  return rows.map((row) => deliveryFromRow(row));
}
