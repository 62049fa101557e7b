import type { DatabaseSync } from "node:sqlite";
import type { AgentId } from "@a2a-relay/protocol";
import { mailboxTopic } from "../../core/ports/change-feed.ts";
import type { EventDraft } from "../../core/ports/journal.ts";
import type {
  DeliveryRecord,
  MailboxLeaseQuery,
  MailboxMessage,
  MailboxReadQuery,
} from "../../core/ports/deliveries.ts";
import type { MessageRecord } from "../../core/ports/messages.ts";
import type { AvailablePlace } from "./available-mail.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Journal } from "./journal.ts";
import { KnownPlaces } from "./known-places.ts";
import type { Ledger } from "./ledger.ts";
import { type Place, placeFromRow } from "./mailbox-index.ts";
import { MailByRef, type SizedMail } from "./mail-by-ref.ts";
import type { Messages } from "./messages.ts";
import { oneOf, OPEN_STATES, WAITING_STATES } from "./index-conditions.ts";
import { isPlain, PLAIN_DELIVERY_ROW, plainDeliveryValues } from "./plain-delivery.ts";
import { RowInsert } from "./row-insert.ts";
import { courseValues, deliveryColumns, deliveryFromRow, deliveryValues, refFromRow } from "./rows.ts";

const COLUMNS = deliveryColumns("d.");
/** The first message of an answer comes whatever its length, so that every reader gets on. */
const ANY_LENGTH = Number.MAX_SAFE_INTEGER;

const BY_REF = `select ${COLUMNS} from delivery d where d.ref = ?`;
const SELECT = `
  select ${COLUMNS} from delivery d
  where d.ref = (select ref from message where tenant = ? and id = ?)`;
const PLACE = `
  select ref, version, state, position, expires_at_ms, reserved_for, purpose from delivery
  where ref = (select ref from message where tenant = ? and id = ?)`;
const OPEN_OF_TASK = `
  select ${COLUMNS} from delivery d indexed by delivery_open_of_task
  where d.tenant = ? and d.task_id = ? and ${oneOf("d.state", OPEN_STATES)} order by d.ref`;
const HELD_OF_AGENT = `
  select ${COLUMNS} from delivery d indexed by delivery_held
  where d.tenant = ? and d.agent_id = ? and d.state = 'held' limit ?`;
const LEASED_OF_AGENT = `
  select ${COLUMNS} from delivery d indexed by delivery_leased
  where d.tenant = ? and d.agent_id = ? and d.state = 'leased' limit ?`;
// Steps from tenant to tenant in the index, so that no sweep reads the mail that is still good.
const EXPIRED = `
  with recursive tenants (tenant) as (
    select min(tenant) from delivery where ${oneOf("state", WAITING_STATES)}
    union all
    select (
      select min(tenant) from delivery where ${oneOf("state", WAITING_STATES)} and tenant > tenants.tenant)
    from tenants where tenants.tenant is not null)
  select ${COLUMNS} from tenants t cross join delivery d indexed by delivery_expiry
  where d.tenant = t.tenant and ${oneOf("d.state", WAITING_STATES)} and d.expires_at_ms <= ? limit ?`;
const TIMED_OUT = `
  select ${COLUMNS} from delivery d indexed by delivery_lease_end
  where d.state = 'leased' and d.duplicate_safety = 'idempotent' and d.lease_expires_at_ms is not null
    and d.lease_expires_at_ms <= ?
  order by d.lease_expires_at_ms limit ?`;
const HELD_WORK = `
  select ${COLUMNS} from delivery d indexed by delivery_held
  where d.state = 'held' and d.purpose = 'work' and (d.tenant, d.agent_id, d.ref) > (?, ?, ?)
  order by d.tenant, d.agent_id, d.ref limit ?`;

const INSERT = {
  into: `insert into delivery (${deliveryColumns("")})`,
  row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
  onConflict: "on conflict do nothing",
  clash: "delivery",
} as const;
const INSERT_PLAIN = { ...INSERT, row: PLAIN_DELIVERY_ROW } as const;
const UPDATE = `
  update delivery set state = ?, position = ?, delivered_at_ms = ?, attempt = ?, lease_id = ?, worker = ?,
    leased_at_ms = ?, lease_expires_at_ms = ?, reserved_for = ?, expires_at_ms = ?, settled_at_ms = ?,
    reason = ?, version = version + 1
  where ref = ? and version = ?`;
const MARK_DELIVERED = `
  update delivery set delivered_at_ms = ?, version = version + 1
  where ref = (select ref from message where tenant = ? and id = ?)
    and state = 'available' and delivered_at_ms is null
  returning ${deliveryColumns("")}`;
// Without `returning`, for which SQLite builds a table each time: the row has just been read.
const LEASE = `
  update delivery set state = 'leased', attempt = ?, lease_id = ?, worker = ?, leased_at_ms = ?,
    lease_expires_at_ms = ?, version = ?
  where ref = ?`;
const RENEW = `
  update delivery set lease_expires_at_ms = ?, version = version + 1
  where ref = (select ref from message where tenant = ? and id = ?)
    and agent_id = ? and state = 'leased' and lease_id = ?
  returning ${deliveryColumns("")}`;

interface NextMail extends SizedMail {
  readonly place: AvailablePlace;
}

/** What a commit writes of messages, beside their deliveries. */
interface NewMessages {
  readonly messages: readonly MessageRecord[];
  /** By the ids of the messages. */
  readonly refs: ReadonlyMap<string, number>;
}

/** Deliveries: what is in whose mailbox, and who works on it. */
export class Mailboxes {
  readonly #ledger: Ledger;
  readonly #messages: Messages;
  readonly #journal: Journal;
  readonly #mail: MailByRef;
  readonly #select: Statement;
  readonly #byRef: Statement;
  readonly #place: Statement;
  readonly #openOfTask: Statement;
  readonly #heldOfAgent: Statement;
  readonly #leasedOfAgent: Statement;
  readonly #expired: Statement;
  readonly #timedOut: Statement;
  readonly #heldWork: Statement;
  readonly #insert: RowInsert;
  readonly #insertPlain: RowInsert;
  readonly #update: Statement;
  readonly #markDelivered: Statement;
  readonly #lease: Statement;
  readonly #renew: Statement;
  readonly #known: KnownPlaces;

  constructor(database: DatabaseSync, ledger: Ledger, messages: Messages, journal: Journal) {
    this.#ledger = ledger;
    this.#known = new KnownPlaces(ledger);
    this.#messages = messages;
    this.#journal = journal;
    this.#mail = new MailByRef(database, ledger);
    this.#select = prepare(database, SELECT);
    this.#byRef = prepare(database, BY_REF);
    this.#place = prepare(database, PLACE);
    this.#openOfTask = prepare(database, OPEN_OF_TASK);
    this.#heldOfAgent = prepare(database, HELD_OF_AGENT);
    this.#leasedOfAgent = prepare(database, LEASED_OF_AGENT);
    this.#expired = prepare(database, EXPIRED);
    this.#timedOut = prepare(database, TIMED_OUT);
    this.#heldWork = prepare(database, HELD_WORK);
    this.#insert = new RowInsert(database, INSERT);
    this.#insertPlain = new RowInsert(database, INSERT_PLAIN);
    ledger.gather(this.#insert);
    ledger.gather(this.#insertPlain);
    this.#update = prepare(database, UPDATE);
    this.#markDelivered = prepare(database, MARK_DELIVERED);
    this.#lease = prepare(database, LEASE);
    this.#renew = prepare(database, RENEW);
  }

  availableMessages(query: MailboxReadQuery): readonly MailboxMessage[] {
    const { tenant, agentId, nowMs, purpose, limit } = query;
    const { mailboxes } = this.#ledger;
    const mail: MailboxMessage[] = [];
    let bytesLeft = query.bytesMax;
    let position = query.afterPosition;
    while (mail.length < limit) {
      const next = mailboxes.nextAvailable(tenant, agentId, position, { nowMs, purpose });
      if (next === undefined) break;
      position = next.position;
      const bytesMax = mail.length === 0 ? ANY_LENGTH : bytesLeft;
      const found = this.#mail.shown(next.ref, bytesMax);
      if (found === undefined) continue;
      if (found.bytes > bytesMax) break;
      bytesLeft -= found.bytes;
      mail.push(found.mail);
    }
    return mail;
  }

  delivery(tenant: string, messageId: string): DeliveryRecord | undefined {
    const leased = this.#known.leased(tenant, messageId);
    if (leased !== undefined) return leased;
    const row = this.#select.get(tenant, messageId);
    if (row === undefined) return undefined;
    const delivery = deliveryFromRow(row);
    this.#known.noteRead({ delivery, ref: refFromRow(row) });
    return delivery;
  }

  openDeliveriesOfTask(tenant: string, taskId: string): readonly DeliveryRecord[] {
    return deliveries(this.#openOfTask.all(tenant, taskId));
  }

  openDeliveriesOfAgent(tenant: string, agentId: AgentId, limit: number): readonly DeliveryRecord[] {
    if (this.#ledger.mailboxes.countOpen(tenant, agentId) === 0) return [];
    const open: DeliveryRecord[] = [];
    for (let position = 0; open.length < limit;) {
      const next = this.#ledger.mailboxes.nextAvailable(tenant, agentId, position);
      if (next === undefined) break;
      position = next.position;
      open.push(...deliveries(this.#byRef.all(next.ref)));
    }
    open.push(...deliveries(this.#heldOfAgent.all(tenant, agentId, limit - open.length)));
    open.push(...deliveries(this.#leasedOfAgent.all(tenant, agentId, limit - open.length)));
    return open;
  }

  expiredDeliveries(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#expired.all(nowMs, limit));
  }

  timedOutLeases(nowMs: number, limit: number): readonly DeliveryRecord[] {
    return deliveries(this.#timedOut.all(nowMs, limit));
  }

  heldWork(after: DeliveryRecord | undefined, limit: number): readonly DeliveryRecord[] {
    const ref = after === undefined ? undefined : this.#messages.ref(after.tenant, after.messageId);
    const start = after === undefined || ref === undefined ? ["", "", 0] : [after.tenant, after.agentId, ref];
    return deliveries(this.#heldWork.all(...start, limit));
  }

  /** Inside a commit, with the messages of the same one; `openMax` is of mailboxes. */
  putAll(
    records: readonly DeliveryRecord[],
    { messages, refs }: NewMessages,
    openMax: ReadonlyMap<AgentId, number>,
  ): void {
    for (const [index, delivery] of records.entries()) {
      const { agentId, messageId, version } = delivery;
      if (version === 0) {
        this.#assertRoom(delivery, openMax.get(agentId));
        // Messages and their deliveries nearly always come side by side; any other is read when it is asked for.
        this.#add(delivery, refs.get(messageId), messages[index]);
      } else {
        this.#updateKnown(delivery);
      }
    }
  }

  /** Inside a commit. */
  markDelivered(
    tenant: string,
    messageIds: readonly string[],
    deliveredAtMs: number,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): void {
    const events: EventDraft[] = [];
    for (const messageId of messageIds) {
      const row = this.#markDelivered.get(deliveredAtMs, tenant, messageId);
      if (row === undefined) continue;
      this.#mail.forget(refFromRow(row));
      events.push(event(deliveryFromRow(row)));
    }
    this.#journal.append(tenant, events);
  }

  /** Inside a commit. */
  lease(
    query: MailboxLeaseQuery,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): readonly MailboxMessage[] {
    const mail: MailboxMessage[] = [];
    let bytesLeft = query.bytesMax;
    let position = 0;
    for (const leaseId of query.leaseIds) {
      const next = this.#nextMail(query, position, mail.length === 0 ? ANY_LENGTH : bytesLeft);
      if (next === undefined) break;
      bytesLeft -= next.bytes;
      position = next.mail.delivery.position;
      mail.push({ delivery: this.#leaseTo(query, leaseId, next), message: next.mail.message });
    }
    this.#journal.append(
      query.tenant,
      mail.map(({ delivery }) => event(delivery)),
    );
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
      this.#known.forget(messageId);
      if (row !== undefined) renewed.set(messageId, deliveryFromRow(row));
    }
    return renewed;
  }

  /** The oldest mail after the position that this worker may have; none if it is too long. */
  #nextMail(query: MailboxLeaseQuery, afterPosition: number, bytesMax: number): NextMail | undefined {
    const { tenant, agentId, worker, purpose, nowMs } = query;
    const wanted = { nowMs, worker, purpose };
    const next = this.#ledger.mailboxes.nextAvailable(tenant, agentId, afterPosition, wanted);
    const found = next === undefined ? undefined : this.#mail.found(next.ref, bytesMax);
    if (next === undefined || found === undefined || found.bytes > bytesMax) return undefined;
    return { place: next, ...found };
  }

  /** Nobody else can have taken it: jobs run one after the other. */
  #leaseTo(query: MailboxLeaseQuery, leaseId: string, { place: found, mail }: NextMail): DeliveryRecord {
    const { delivery } = mail;
    const { tenant, agentId, worker, nowMs: leasedAtMs, leaseExpiresAtMs } = query;
    const { ref, ...place } = found;
    const attempt = delivery.attempt + 1;
    const version = delivery.version + 1;
    this.#lease.run(attempt, leaseId, worker, leasedAtMs, leaseExpiresAtMs, version, ref);
    const from = { ...place, state: "available" } as const;
    this.#ledger.moveDelivery(tenant, agentId, ref, from, { ...place, state: "leased" });
    const lease = {
      state: "leased",
      attempt,
      leaseId,
      worker,
      leasedAtMs,
      leaseExpiresAtMs,
      version,
    } as const;
    const leased = { ...delivery, ...lease };
    this.#known.noteLeased({ delivery: leased, ref });
    return leased;
  }

  /** All that came before in the same batch counts. */
  #assertRoom({ tenant, agentId }: DeliveryRecord, openMax: number | undefined): void {
    if (openMax === undefined || this.#ledger.mailboxes.countOpen(tenant, agentId) < openMax) return;
    throw new ClashError("mailbox");
  }

  #add(delivery: DeliveryRecord, newRef: number | undefined, message: MessageRecord | undefined): void {
    const ref = newRef ?? this.#refOf(delivery);
    const { tenant, agentId, state, expiresAtMs, reservedFor, purpose } = delivery;
    const position = state === "available" ? (newRef ?? this.#ledger.nextPosition()) : 0;
    const place = { state, position, expiresAtMs, reservedFor, purpose };
    this.#ledger.moveDelivery(tenant, agentId, ref, undefined, place);
    if (isPlain(delivery)) this.#insertPlain.add(plainDeliveryValues(delivery, ref, position));
    else this.#insert.add(deliveryValues(delivery, ref, position));
    if (state !== "available") return;
    const isAwaited = this.#ledger.wake(mailboxTopic(tenant, agentId));
    if (!isAwaited || message?.id !== delivery.messageId) return;
    this.#mail.noteNew(ref, { delivery: { ...delivery, position, version: 1 }, message });
  }

  #updateKnown(delivery: DeliveryRecord): void {
    const { tenant, agentId, state, expiresAtMs, reservedFor } = delivery;
    const { ref, before } = this.#placeOf(delivery);
    const becomesAvailable = state === "available" && before.state !== "available";
    const position = becomesAvailable ? this.#ledger.nextPosition() : before.position;
    const { changes } = this.#update.run(...courseValues(delivery, position), ref, delivery.version);
    if (changes === 0) throw new ClashError("delivery");
    this.#mail.forget(ref);
    if (state === "available") this.#ledger.wake(mailboxTopic(tenant, agentId));
    const hasMoved =
      state !== before.state || expiresAtMs !== before.expiresAtMs || reservedFor !== before.reservedFor;
    if (!hasMoved) return;
    const after = { ...before, state, position, expiresAtMs, reservedFor };
    this.#ledger.moveDelivery(tenant, agentId, ref, before, after);
  }

  /** Of the version that the change was made from: all that moves mail makes a new version. */
  #placeOf(changed: DeliveryRecord): { readonly ref: number; readonly before: Place } {
    const { tenant, messageId, version } = changed;
    const known = this.#known.take(changed);
    if (known !== undefined) {
      const { state, position, expiresAtMs, reservedFor, purpose } = known.delivery;
      return { ref: known.ref, before: { state, position, expiresAtMs, reservedFor, purpose } };
    }
    const [ref, current, ...place] = this.#place.get(tenant, messageId) ?? [];
    // No row: the message was retired since its delivery was read.
    if (typeof ref !== "number" || current !== version) throw new ClashError("delivery");
    return { ref, before: placeFromRow(place) };
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
