import { type DeliveryState, isSettled } from "@a2a-relay/protocol";
import { mailboxTopic } from "../../core/ports/change-feed.ts";
import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import { ClashError } from "./commit-queue.ts";
import type { Row, Transaction } from "./database.ts";

const PROGRESS_COLUMNS = [
  "state",
  "delivered_at_ms",
  "attempt",
  "lease_id",
  "worker",
  "leased_at_ms",
  "lease_expires_at_ms",
  "reserved_for",
  "expires_at_ms",
  "settled_at_ms",
  "reason",
];
const COLUMNS = [
  "tenant",
  "message_id",
  "agent_id",
  "sender",
  "task_id",
  "duplicate_safety",
  "idempotency_key",
  "quiet",
  "thread_id",
  "purpose",
  ...PROGRESS_COLUMNS,
].join(", ");

const SQL = {
  lock: `
    select d.tenant, d.message_id, d.state, d.position, d.version
    from json_populate_recordset(null::delivery, $1) r
    join delivery d on d.tenant = r.tenant and d.message_id = r.message_id
    order by d.tenant, d.message_id for update of d`,
  // Locks them until the commit, also those whose count stays.
  mailboxes: `
    insert into mailbox (tenant, agent_id, open_count)
    select tenant, agent_id, open_count from json_populate_recordset(null::mailbox, $1) order by tenant, agent_id
    on conflict (tenant, agent_id) do update set open_count = mailbox.open_count + excluded.open_count
    returning tenant, agent_id, open_count`,
  // Those of one caller in the order of their messages. r.position is the number of the caller.
  insert: `
    insert into delivery (${COLUMNS}, ref, position, version)
    select ${COLUMNS}, message_ref, case state when 'available' then nextval('delivery_position') else 0 end, 1
    from (
      select r.*, k.ref as message_ref from json_populate_recordset(null::delivery, $1) r
      join message_key k on k.tenant = r.tenant and k.id = r.message_id
      order by r.position, k.ref) r
    on conflict do nothing`,
  update: `
    with r as materialized (
      select r.*, coalesce(r.position, nextval('delivery_position')) as next_position
      from json_populate_recordset(null::delivery, $1) r)
    update delivery d set ${PROGRESS_COLUMNS.map((column) => `${column} = r.${column}`).join(", ")},
      position = r.next_position, version = d.version + 1
    from r where d.tenant = r.tenant and d.message_id = r.message_id`,
  // Moves what is no longer open.
  settle: `
    with r as materialized (select * from json_populate_recordset(null::delivery, $1)),
    moved as (
      delete from delivery d using r where d.tenant = r.tenant and d.message_id = r.message_id
      returning ${COLUMNS.split(", ")
        .map((column) => `r.${column}`)
        .join(", ")}, d.ref, d.position, r.version)
    insert into settled_delivery (${COLUMNS}, ref, position, version)
    select ${COLUMNS}, ref, position, version from moved`,
};

interface Before {
  readonly state: DeliveryState;
  readonly position: number;
}

export interface DeliveryChange {
  readonly delivery: DeliveryRecord;
  /** Undefined if it is new. */
  readonly before: Before | undefined;
  readonly caller: number;
  readonly openMax: number | undefined;
}

/** Locks deliveries first, then mailboxes, each in the order of their keys. */
export async function lockMailboxes(
  transaction: Transaction,
  all: readonly Changes[],
): Promise<readonly DeliveryChange[]> {
  const changes = await changesOf(transaction, all);
  await countOpen(transaction, changes);
  return changes;
}

/** Their mailboxes are locked. */
export async function putDeliveries(
  transaction: Transaction,
  changes: readonly DeliveryChange[],
): Promise<void> {
  const fresh = changes.filter(({ before }) => before === undefined);
  if (fresh.length > 0) {
    const rows = fresh.map(({ delivery, caller }) => rowOf(delivery, caller));
    // One that is missing exists already, or its message was retired since the caller read it.
    const written = await transaction.run(SQL.insert, [JSON.stringify(rows)]);
    if (written !== fresh.length) throw new ClashError("delivery");
  }
  const settled = changes.filter(({ delivery }) => isSettled(delivery.state));
  const open = changes.filter(({ delivery }) => !isSettled(delivery.state));
  const rows = open.flatMap(({ delivery, before }) =>
    before === undefined
      ? []
      : [rowOf(delivery, becomesAvailable(delivery, before) ? null : before.position)],
  );
  if (rows.length > 0) await transaction.run(SQL.update, [JSON.stringify(rows)]);
  if (settled.length > 0) {
    const settledRows = settled.map(({ delivery }) => rowOf(delivery, null));
    await transaction.run(SQL.settle, [JSON.stringify(settledRows)]);
  }
  for (const { delivery } of changes) {
    if (delivery.state === "available") transaction.wake(mailboxTopic(delivery.tenant, delivery.agentId));
  }
}

async function changesOf(
  transaction: Transaction,
  all: readonly Changes[],
): Promise<readonly DeliveryChange[]> {
  const existing = await lockExisting(
    transaction,
    all.flatMap(({ deliveries }) => deliveries?.filter(({ version }) => version > 0) ?? []),
  );
  return all.flatMap(({ deliveries = [], room = [] }, caller) => {
    const openMax = new Map(room.map((each) => [each.agentId, each.openMax]));
    return deliveries.map((delivery) => ({
      delivery,
      before: existing.get(keyOf(delivery.tenant, delivery.messageId)),
      caller,
      openMax: openMax.get(delivery.agentId),
    }));
  });
}

/** A delivery that is missing, has another version or is written twice is a clash. */
async function lockExisting(
  transaction: Transaction,
  deliveries: readonly DeliveryRecord[],
): Promise<ReadonlyMap<string, Before>> {
  if (deliveries.length === 0) return new Map();
  const keys = deliveries.map(({ tenant, messageId }) => ({ tenant, message_id: messageId }));
  const rows = await transaction.rows(SQL.lock, [JSON.stringify(keys)]);
  const found = new Map(
    rows.map((row) => [keyOf(row["tenant"] as string, row["message_id"] as string), row]),
  );
  const isCurrent = ({ tenant, messageId, version }: DeliveryRecord): boolean =>
    found.get(keyOf(tenant, messageId))?.["version"] === version;
  if (found.size !== deliveries.length || !deliveries.every(isCurrent)) throw new ClashError("delivery");
  return new Map([...found].map(([key, row]) => [key, beforeFrom(row)]));
}

/** Locks and counts the mailboxes; a new delivery to one that is full is a clash. */
async function countOpen(transaction: Transaction, changes: readonly DeliveryChange[]): Promise<void> {
  const added = new Map<string, { tenant: string; agent_id: string; open_count: number }>();
  for (const { delivery, before } of changes) {
    const { tenant, agentId } = delivery;
    const count = addedTo(delivery, before);
    if (before !== undefined && count === 0 && !becomesAvailable(delivery, before)) continue;
    const key = keyOf(tenant, agentId);
    const mailbox = added.get(key) ?? { tenant, agent_id: agentId, open_count: 0 };
    mailbox.open_count += count;
    added.set(key, mailbox);
  }
  if (added.size === 0) return;
  const rows = await transaction.rows(SQL.mailboxes, [JSON.stringify([...added.values()])]);
  const counts = new Map<string, number>();
  for (const row of rows) {
    const key = keyOf(row["tenant"] as string, row["agent_id"] as string);
    counts.set(key, (row["open_count"] as number) - (added.get(key)?.open_count ?? 0));
  }
  for (const { delivery, before, openMax = Infinity } of changes) {
    const key = keyOf(delivery.tenant, delivery.agentId);
    const count = counts.get(key) ?? 0;
    if (before === undefined && count >= openMax) throw new ClashError("mailbox");
    counts.set(key, count + addedTo(delivery, before));
  }
}

function addedTo({ state }: DeliveryRecord, before: Before | undefined): number {
  return openCount(state) - (before === undefined ? 0 : openCount(before.state));
}

function openCount(state: DeliveryState): number {
  return isSettled(state) ? 0 : 1;
}

function becomesAvailable({ state }: DeliveryRecord, before: Before): boolean {
  return state === "available" && before.state !== "available";
}

function keyOf(tenant: string, id: string): string {
  return `${tenant}\0${id}`;
}

function beforeFrom(row: Row): Before {
  return { state: row["state"] as DeliveryState, position: row["position"] as number };
}

function rowOf(delivery: DeliveryRecord, position: number | null): Row {
  return {
    tenant: delivery.tenant,
    message_id: delivery.messageId,
    agent_id: delivery.agentId,
    sender: delivery.sender,
    task_id: delivery.taskId,
    duplicate_safety: delivery.duplicateSafety,
    idempotency_key: delivery.idempotencyKey,
    quiet: delivery.quiet ? 1 : 0,
    thread_id: delivery.threadId,
    purpose: delivery.purpose,
    state: delivery.state,
    delivered_at_ms: delivery.deliveredAtMs,
    attempt: delivery.attempt,
    lease_id: delivery.leaseId,
    worker: delivery.worker,
    leased_at_ms: delivery.leasedAtMs,
    lease_expires_at_ms: delivery.leaseExpiresAtMs,
    reserved_for: delivery.reservedFor,
    expires_at_ms: delivery.expiresAtMs,
    settled_at_ms: delivery.settledAtMs,
    reason: delivery.reason,
    position,
    version: delivery.version + 1,
  };
}
