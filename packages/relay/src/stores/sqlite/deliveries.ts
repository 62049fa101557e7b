import type { AgentId, DeliveryState } from "@a2a-relay/protocol";
import { mailboxTopic } from "../../core/ports/change-feed.ts";
import type {
  DeliveryPurpose,
  DeliveryRecord,
  MailboxLeaseQuery,
  MailboxMessage,
  MailboxReadQuery,
  DeliveryStore,
  LeaseOutcome,
  QueuedDelivery,
  QueueFilter,
} from "../../core/ports/deliveries.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import { leasedEvent } from "../../core/rules/task-changes.ts";
import { ClashError, type CommitQueue, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import { DeliveryQueue } from "./delivery-queue.ts";
import type { Journal } from "./journal.ts";
import type { Messages } from "./messages.ts";
import { type AvailableDelivery, indexedDeliveryFromRow } from "./open-deliveries.ts";
import {
  DELIVERY_COLUMN_COUNT,
  deliveryColumns,
  deliveryFromRow,
  deliveryValues,
  ENVELOPE_COLUMNS,
  MESSAGE_COLUMN_COUNT,
  messageFromRow,
  oneOf,
  OPEN_STATES,
  progressValues,
  WAITING_STATES,
} from "./rows.ts";
import type { StoreState } from "./store-state.ts";

const COLUMNS = deliveryColumns("d.");
/** The first message of an answer is returned whatever its length, so that every reader makes progress. */
const ANY_LENGTH = Number.MAX_SAFE_INTEGER;

const SQL = {
  byRef: `select ${COLUMNS} from delivery d where d.ref = ?`,
  select: `
    select ${COLUMNS} from delivery d
    where d.ref = (select ref from message where tenant = ? and id = ?)`,
  indexed: `
    select version, ref, state, position, expires_at_ms, reserved_for, purpose from delivery
    where ref = (select ref from message where tenant = ? and id = ?)`,
  // Leaves out the text of a message that is longer than the answer may be.
  withMessage: `
    select ${COLUMNS}, ${ENVELOPE_COLUMNS}, case when octet_length(m.json) <= ? then m.json end,
      octet_length(m.json)
    from delivery d join message m on m.ref = d.ref where d.ref = ?`,
  openOfTask: `
    select ${COLUMNS} from delivery d indexed by delivery_open_of_task
    where d.tenant = ? and d.task_id = ? and ${oneOf("d.state", OPEN_STATES)} order by d.ref`,
  heldOfAgent: `
    select ${COLUMNS} from delivery d indexed by delivery_held
    where d.tenant = ? and d.agent_id = ? and d.state = 'held' limit ?`,
  leasedOfAgent: `
    select ${COLUMNS} from delivery d indexed by delivery_leased
    where d.tenant = ? and d.agent_id = ? and d.state = 'leased' limit ?`,
  // Steps from tenant to tenant in the index, so that a sweep reads only what has expired.
  expired: `
    with recursive tenants (tenant) as (
      select min(tenant) from delivery where ${oneOf("state", WAITING_STATES)}
      union all
      select (
        select min(tenant) from delivery where ${oneOf("state", WAITING_STATES)} and tenant > tenants.tenant)
      from tenants where tenants.tenant is not null)
    select ${COLUMNS} from tenants t cross join delivery d indexed by delivery_expiry
    where d.tenant = t.tenant and ${oneOf("d.state", WAITING_STATES)} and d.expires_at_ms <= ? limit ?`,
  timedOut: `
    select ${COLUMNS} from delivery d indexed by delivery_lease_end
    where d.state = 'leased' and d.duplicate_safety = 'idempotent' and d.lease_expires_at_ms is not null
      and d.lease_expires_at_ms <= ?
    order by d.lease_expires_at_ms limit ?`,
  heldWork: `
    select ${COLUMNS} from delivery d indexed by delivery_held
    where d.state = 'held' and d.purpose = 'work' and (d.tenant, d.agent_id, d.ref) > (?, ?, ?)
    order by d.tenant, d.agent_id, d.ref limit ?`,
  insert: `
    insert into delivery (${deliveryColumns("")})
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) on conflict do nothing`,
  update: `
    update delivery set state = ?, position = ?, delivered_at_ms = ?, attempt = ?, lease_id = ?, worker = ?,
      leased_at_ms = ?, lease_expires_at_ms = ?, reserved_for = ?, expires_at_ms = ?, settled_at_ms = ?,
      reason = ?, version = version + 1
    where ref = ?`,
  markDelivered: `
    update delivery set delivered_at_ms = ?, version = version + 1
    where ref = (select ref from message where tenant = ? and id = ?)
      and state = 'available' and delivered_at_ms is null`,
  lease: `
    update delivery set state = 'leased', attempt = ?, lease_id = ?, worker = ?, leased_at_ms = ?,
      lease_expires_at_ms = ?, version = ?
    where ref = ?`,
  renew: `
    update delivery set lease_expires_at_ms = ?, version = version + 1
    where ref = (select ref from message where tenant = ? and id = ?)
      and agent_id = ? and state = 'leased' and lease_id = ?
    returning ${deliveryColumns("")}`,
  remove: "delete from delivery where ref = ?",
};

export interface DeliveryParts {
  readonly messages: Messages;
  readonly journal: Journal;
  /** Writes the changes of a commit, inside a job. */
  readonly apply: (changes: Changes) => void;
}

/** Which message is in which mailbox, and which worker holds it. */
export class Deliveries implements DeliveryStore {
  readonly #state: StoreState;
  readonly #commits: CommitQueue;
  readonly #messages: Messages;
  readonly #journal: Journal;
  readonly #apply: DeliveryParts["apply"];
  readonly #queue: DeliveryQueue;
  readonly #sql: Statements<typeof SQL>;

  constructor(engine: Engine, { messages, journal, apply }: DeliveryParts) {
    const { database, state, commits } = engine;
    this.#queue = new DeliveryQueue(engine);
    this.#state = state;
    this.#commits = commits;
    this.#messages = messages;
    this.#journal = journal;
    this.#apply = apply;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, messageIds: readonly string[]): Promise<readonly (DeliveryRecord | undefined)[]> {
    return messageIds.map((messageId) => this.find(tenant, messageId));
  }

  async available(query: MailboxReadQuery): Promise<readonly MailboxMessage[]> {
    const { tenant, agentId, nowMs, purpose, limit } = query;
    const found: MailboxMessage[] = [];
    let bytesLeft = query.bytesMax;
    let position = query.afterPosition;
    while (found.length < limit) {
      const next = this.#state.deliveries.nextAvailable(tenant, agentId, position, { nowMs, purpose });
      if (next === undefined) break;
      const sized = this.#withMessage(next, found.length === 0 ? ANY_LENGTH : bytesLeft);
      if (sized === undefined) break;
      position = next.position;
      bytesLeft -= sized.bytes;
      found.push(sized.message);
    }
    return found;
  }

  async openOfTasks(tenant: string, taskIds: readonly string[]): Promise<readonly DeliveryRecord[]> {
    return deliveries(taskIds.flatMap((taskId) => this.#sql.openOfTask.all(tenant, taskId)));
  }

  async openOfAgent(tenant: string, agentId: AgentId, limit: number): Promise<readonly DeliveryRecord[]> {
    const open: DeliveryRecord[] = [];
    for (let position = 0; open.length < limit;) {
      const next = this.#state.deliveries.nextAvailable(tenant, agentId, position);
      if (next === undefined) break;
      position = next.position;
      open.push(...deliveries(this.#sql.byRef.all(next.ref)));
    }
    open.push(...deliveries(this.#sql.heldOfAgent.all(tenant, agentId, limit - open.length)));
    open.push(...deliveries(this.#sql.leasedOfAgent.all(tenant, agentId, limit - open.length)));
    return open;
  }

  async queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    return this.#queue.list(filter);
  }

  async oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined> {
    return this.#state.deliveries.oldestMailbox(tenant, { purpose, nowMs });
  }

  async countByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>> {
    return this.#state.deliveries.countOpenByState(tenant, agentId);
  }

  findExpired(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#sql.expired.all(nowMs, limit));
  }

  findTimedOut(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#sql.timedOut.all(nowMs, limit));
  }

  findHeldWork(after: DeliveryRecord | undefined, limit: number): readonly DeliveryRecord[] {
    const ref = after === undefined ? undefined : this.#messages.ref(after.tenant, after.messageId);
    const start = after === undefined || ref === undefined ? ["", "", 0] : [after.tenant, after.agentId, ref];
    return deliveries(this.#sql.heldWork.all(...start, limit));
  }

  async markDelivered({
    tenant,
    deliveredAtMs,
    marks,
  }: Parameters<DeliveryStore["markDelivered"]>[0]): Promise<void> {
    await this.#commits.submit(() => {
      const marked = marks.filter(
        ({ messageId }) => this.#sql.markDelivered.run(deliveredAtMs, tenant, messageId) > 0,
      );
      this.#journal.append(
        tenant,
        marked.map(({ event }) => event),
      );
    });
  }

  async lease(query: MailboxLeaseQuery, changes?: Changes): Promise<LeaseOutcome> {
    const outcome = await this.#commits.attempt(() => {
      if (changes !== undefined) this.#apply(changes);
      const leased = this.#leaseAll(query);
      this.#journal.append(
        query.tenant,
        leased.map(({ delivery }) => leasedEvent(delivery, query.nowMs)),
      );
      return leased;
    });
    return outcome.committed ? { committed: true, messages: outcome.value } : outcome;
  }

  async renew(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>> {
    return this.#commits.submit(() => {
      const renewed = new Map<string, DeliveryRecord>();
      for (const { messageId, leaseId } of leases) {
        const row = this.#sql.renew.get(leaseExpiresAtMs, tenant, messageId, agentId, leaseId);
        if (row !== undefined) renewed.set(messageId, deliveryFromRow(row));
      }
      return renewed;
    });
  }

  find(tenant: string, messageId: string): DeliveryRecord | undefined {
    const row = this.#sql.select.get(tenant, messageId);
    return row === undefined ? undefined : deliveryFromRow(row);
  }

  /** `newRef` is the ref of the message if the same commit writes it; `openMax` limits the mailbox. */
  put(delivery: DeliveryRecord, newRef: number | undefined, openMax: number | undefined): void {
    if (delivery.version === 0) this.#insert(delivery, newRef, openMax);
    else this.#update(delivery);
  }

  remove(ref: number): void {
    this.#sql.remove.run(ref);
  }

  #insert(delivery: DeliveryRecord, newRef: number | undefined, openMax: number | undefined): void {
    const { tenant, agentId, state, expiresAtMs, reservedFor, purpose } = delivery;
    // Counts what other jobs of the same batch have added.
    const isFull = openMax !== undefined && this.#state.deliveries.countOpen(tenant, agentId) >= openMax;
    if (isFull) throw new ClashError("mailbox");
    const ref = newRef ?? this.#messages.ref(tenant, delivery.messageId);
    // Without a row the message was retired since the caller read it.
    if (ref === undefined) throw new ClashError("delivery");
    const position = state === "available" ? (newRef ?? this.#state.nextPosition()) : 0;
    const inserted = this.#sql.insert.run(...deliveryValues(delivery, ref, position));
    if (inserted === 0) throw new ClashError("delivery");
    const added = { ref, state, position, expiresAtMs, reservedFor, purpose };
    this.#state.moveDelivery(tenant, agentId, undefined, added);
    if (state === "available") this.#state.wake(mailboxTopic(tenant, agentId));
  }

  #update(delivery: DeliveryRecord): void {
    const { tenant, agentId, messageId, state, expiresAtMs, reservedFor } = delivery;
    const [version, ...columns] = this.#sql.indexed.get(tenant, messageId) ?? [];
    if (version !== delivery.version) throw new ClashError("delivery");
    const before = indexedDeliveryFromRow(columns);
    const becomesAvailable = state === "available" && before.state !== "available";
    const position = becomesAvailable ? this.#state.nextPosition() : before.position;
    this.#sql.update.run(...progressValues(delivery, position), before.ref);
    this.#state.moveDelivery(tenant, agentId, before, {
      ...before,
      state,
      position,
      expiresAtMs,
      reservedFor,
    });
    if (state === "available") this.#state.wake(mailboxTopic(tenant, agentId));
  }

  #leaseAll(query: MailboxLeaseQuery): readonly MailboxMessage[] {
    const { tenant, agentId, worker, purpose, nowMs } = query;
    const leased: MailboxMessage[] = [];
    let bytesLeft = query.bytesMax;
    for (const leaseId of query.leaseIds) {
      const next = this.#state.deliveries.nextAvailable(tenant, agentId, 0, { nowMs, worker, purpose });
      if (next === undefined) break;
      const sized = this.#withMessage(next, leased.length === 0 ? ANY_LENGTH : bytesLeft);
      if (sized === undefined) break;
      bytesLeft -= sized.bytes;
      const { delivery, message } = sized.message;
      leased.push({ delivery: this.#leaseOne(query, leaseId, next, delivery), message });
    }
    return leased;
  }

  #leaseOne(
    query: MailboxLeaseQuery,
    leaseId: string,
    available: AvailableDelivery,
    before: DeliveryRecord,
  ): DeliveryRecord {
    const { tenant, agentId, worker, nowMs: leasedAtMs, leaseExpiresAtMs } = query;
    const attempt = before.attempt + 1;
    const version = before.version + 1;
    this.#sql.lease.run(attempt, leaseId, worker, leasedAtMs, leaseExpiresAtMs, version, available.ref);
    const from = { ...available, state: "available" } as const;
    this.#state.moveDelivery(tenant, agentId, from, { ...available, state: "leased" });
    return { ...before, state: "leased", attempt, leaseId, worker, leasedAtMs, leaseExpiresAtMs, version };
  }

  /** Undefined if the message is longer than that. */
  #withMessage(
    { ref }: AvailableDelivery,
    bytesMax: number,
  ): { readonly message: MailboxMessage; readonly bytes: number } | undefined {
    const row = this.#sql.withMessage.get(bytesMax, ref);
    if (row === undefined) throw new Error(`delivery ${ref} has lost its message`);
    const bytes = Number(row[DELIVERY_COLUMN_COUNT + MESSAGE_COLUMN_COUNT]);
    if (bytes > bytesMax) return undefined;
    const message = { delivery: deliveryFromRow(row), message: messageFromRow(row, DELIVERY_COLUMN_COUNT) };
    return { message, bytes };
  }
}

function deliveries(rows: readonly Row[]): readonly DeliveryRecord[] {
  return rows.map((row) => deliveryFromRow(row));
}
