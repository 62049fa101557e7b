import type { AgentId, DeliveryState, DuplicateSafety, MessageKind } from "@a2a-relay/protocol";
import type {
  DeliveryPurpose,
  DeliveryRecord,
  DeliveryStore,
  LeaseOutcome,
  MailboxLeaseQuery,
  MailboxMessage,
  MailboxReadQuery,
  QueuedDelivery,
  QueueFilter,
} from "../../core/ports/deliveries.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import type { StoredJson } from "../../core/ports/stored-json.ts";
import { leasedEvent } from "../../core/rules/task-changes.ts";
import type { CommitQueue } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Journal } from "./journal.ts";
import type { Engine } from "./postgres-relay-store.ts";

/** How often a lease asks again that found only deliveries which other transactions had locked. */
const LEASE_REPEATS_MAX = 5;

const WITH_MESSAGE = `d.*, m.sender as m_sender, m.recipient as m_recipient, m.kind as m_kind,
  m.thread_id as m_thread_id, m.task_id as m_task_id, m.accepted_at_ms as m_accepted_at_ms, m.json as m_json`;

const AVAILABLE = "d.tenant = $1 and d.agent_id = $2 and d.state = 'available' and d.expires_at_ms > $3";
const FOR_WORKER = "(d.reserved_for is null or d.reserved_for = $4)";

/** The first of a mailbox, as many as fit into $5 bytes; the first one always does. */
function fitting(where: string, limit: string): string {
  return `
    with picked as materialized (
      select d.*, octet_length(m.json) as bytes from delivery d join message m on m.tenant = d.tenant and m.ref = d.ref
      where ${AVAILABLE} and ${where} order by d.position ${limit}),
    sized as (
      select *, row_number() over line as n, sum(bytes) over line as total from picked
      window line as (order by position)),
    fitting as (select * from sized where n = 1 or total <= $5)`;
}

function readSql(where = ""): string {
  return `${fitting(`d.position > $4 ${where}`, "limit $6")}
    select ${WITH_MESSAGE} from fitting d join message m on m.tenant = d.tenant and m.ref = d.ref order by d.position`;
}

function leaseSql(where = ""): string {
  return `${fitting(`${FOR_WORKER} ${where}`, "limit cardinality($6::text[]) for update of d skip locked")},
    leased as (
      update delivery d set state = 'leased', attempt = d.attempt + 1, lease_id = ($6::text[])[f.n],
        worker = $4, leased_at_ms = $3, lease_expires_at_ms = $7, version = d.version + 1
      from fitting f where d.tenant = f.tenant and d.message_id = f.message_id
      returning d.*)
    select ${WITH_MESSAGE} from leased d join message m on m.tenant = d.tenant and m.ref = d.ref order by d.position`;
}

/** The purpose is part of the statement, so that it may use an index of few purposes. */
function oldestSql(purpose: DeliveryPurpose): string {
  return `
    select d.agent_id from delivery d
    where d.tenant = $1 and d.purpose = '${purpose}' and d.state = 'available' and d.expires_at_ms > $2
    order by d.position limit 1`;
}

const LISTED = `
  d.tenant = $1
  and ($3::text is null or d.agent_id = $3)
  and ($4::text is null or d.agent_id = $4 or d.sender = $4)
  and ($5::text is null or d.purpose = $5)
  and ($6::text is null or d.state = $6)
  and ($7::bigint is null or d.state <> 'leased' or coalesce(d.leased_at_ms, 0) <= $7)
  and ($8::bigint is null or t.deadline_ms <= $8)`;

/** Without those of retired messages. */
const SETTLED = `settled_delivery d
  join message_key k on k.tenant = d.tenant and k.id = d.message_id`;

/** The subject is null where PostgreSQL may refuse to read an escape of the message. */
function listSql(where: string, order: string, from = "delivery d"): string {
  return `
    with listed as materialized (
      select d.*, t.deadline_ms from ${from} left join task t on t.tenant = d.tenant and t.id = d.task_id
      where ${where} and ${LISTED} order by ${order} limit $2)
    select d.*, m.kind, m.accepted_at_ms,
      case strpos(m.json, '\\u') when 0 then coalesce(m.json::json ->> 'subject', '') end as subject
    from listed d join message m on m.tenant = d.tenant and m.ref = d.ref order by ${order}`;
}

const SQL = {
  select: `
    select d.* from message_key k
    join any_delivery d on d.tenant = k.tenant and d.message_id = k.id and d.ref = k.ref
    where k.tenant = $1 and k.id = any ($2)`,
  available: readSql(),
  availableOfPurpose: readSql("and d.purpose = $7"),
  lease: leaseSql(),
  leaseOfPurpose: leaseSql("and d.purpose = $8"),
  leasable: `
    select 1 from delivery d where ${AVAILABLE} and ${FOR_WORKER} and ($5::text is null or d.purpose = $5)
    order by d.position limit 1`,
  openOfTasks: `
    select d.* from unnest($2::text[]) with ordinality as wanted (task_id, n)
    cross join lateral (
      select * from delivery d where d.tenant = $1 and d.task_id = wanted.task_id offset 0) d
    order by wanted.n, d.ref`,
  openOfAgent: `
    (select * from delivery where tenant = $1 and agent_id = $2 and state = 'available' order by position limit $3)
    union all
    (select * from delivery where tenant = $1 and agent_id = $2 and state = 'held' order by ref limit $3)
    union all
    (select * from delivery where tenant = $1 and agent_id = $2 and state = 'leased' limit $3)
    limit $3`,
  oldest: { work: oldestSql("work"), result: oldestSql("result"), ["mail"]: oldestSql("mail") },
  count: `
    select
      (select count(*) from delivery where tenant = $1 and state = 'held') as held,
      (select count(*) from delivery where tenant = $1 and state = 'available') as available,
      (select count(*) from delivery where tenant = $1 and state = 'leased') as leased`,
  countOfAgent: `
    select
      (select count(*) from delivery where tenant = $1 and agent_id = $2 and state = 'held') as held,
      (select count(*) from delivery where tenant = $1 and agent_id = $2 and state = 'available') as available,
      (select count(*) from delivery where tenant = $1 and agent_id = $2 and state = 'leased') as leased`,
  leased: listSql("d.state = 'leased'", "d.leased_at_ms, d.ref"),
  waiting: listSql(
    "(d.state = 'held' or d.state = 'available') and d.position >= 0",
    "d.expires_at_ms, d.ref",
  ),
  heldOfAgent: listSql("d.agent_id = $3 and d.state = 'held'", "d.ref"),
  availableOfAgent: listSql("d.agent_id = $3 and d.state = 'available'", "d.position"),
  // The purpose is part of the statement, so that it may use an index of few purposes.
  line: {
    any: listSql("d.state = 'available'", "d.position"),
    work: listSql("d.state = 'available' and d.purpose = 'work'", "d.position"),
    result: listSql("d.state = 'available' and d.purpose = 'result'", "d.position"),
    ["mail"]: listSql("d.state = 'available' and d.purpose = 'mail'", "d.position"),
  },
  returned: listSql("d.state = $6 and d.state <> 'acknowledged'", "d.ref desc", SETTLED),
  // Without an index of the state: most settled deliveries are acknowledged.
  acknowledged: listSql("d.state = 'acknowledged'", "d.ref desc", SETTLED),
  json: "select json from message where tenant = $1 and ref = $2",
  // In writes by key `coalesce` keeps the planner from an index of the state.
  markDelivered: `
    update delivery set delivered_at_ms = $2, version = version + 1
    where tenant = $1 and message_id = any ($3) and coalesce(state, '') = 'available' and delivered_at_ms is null
    returning message_id`,
  renew: `
    update delivery d set lease_expires_at_ms = $5, version = d.version + 1
    from unnest($3::text[], $4::text[]) as current (message_id, lease_id)
    where d.tenant = $1 and d.message_id = current.message_id and d.agent_id = $2 and coalesce(d.state, '') = 'leased'
      and d.lease_id = current.lease_id
    returning d.*`,
};

/** Which message is in which mailbox, and which worker holds it. */
export class Deliveries implements DeliveryStore {
  readonly #database: Database;
  readonly #commits: CommitQueue;
  readonly #journal: Journal;

  constructor({ database, commits }: Engine, journal: Journal) {
    this.#database = database;
    this.#commits = commits;
    this.#journal = journal;
  }

  async get(tenant: string, messageIds: readonly string[]): Promise<readonly (DeliveryRecord | undefined)[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.select, [tenant, messageIds]);
    const found = new Map(rows.map((row) => [row["message_id"], deliveryFromRow(row)]));
    return messageIds.map((messageId) => found.get(messageId));
  }

  async available(query: MailboxReadQuery): Promise<readonly MailboxMessage[]> {
    const { tenant, agentId, nowMs, afterPosition, bytesMax, limit, purpose } = query;
    const values = [tenant, agentId, nowMs, afterPosition, bytesMax, limit];
    const reader = this.#database.ofTenant(tenant);
    const rows =
      purpose === undefined
        ? await reader.rows(SQL.available, values)
        : await reader.rows(SQL.availableOfPurpose, [...values, purpose]);
    return rows.map((row) => mailboxMessageFromRow(row));
  }

  async openOfTasks(tenant: string, taskIds: readonly string[]): Promise<readonly DeliveryRecord[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.openOfTasks, [tenant, taskIds]);
    return rows.map((row) => deliveryFromRow(row));
  }

  async openOfAgent(tenant: string, agentId: AgentId, limit: number): Promise<readonly DeliveryRecord[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.openOfAgent, [tenant, agentId, limit]);
    return rows.map((row) => deliveryFromRow(row));
  }

  async queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    const { tenant, agentId, party, purpose, state, leasedBeforeMs, deadlineBeforeMs, limit } = filter;
    const values = [tenant, limit, agentId, party, purpose, state, leasedBeforeMs, deadlineBeforeMs];
    const reader = this.#database.ofTenant(tenant);
    // By message: a delivery may move from one list into the next between the statements.
    const found = new Map<unknown, Row>();
    for (const sql of listsOf(filter)) {
      if (found.size >= limit) break;
      for (const row of await reader.rows(sql, values)) found.set(row["message_id"], row);
    }
    const queued: QueuedDelivery[] = [];
    for (const row of [...found.values()].slice(0, limit)) {
      queued.push({
        delivery: deliveryFromRow(row),
        kind: row["kind"] as MessageKind,
        subject: (row["subject"] as string | null) ?? (await this.#subject(row)),
        acceptedAtMs: row["accepted_at_ms"] as number,
        deadlineMs: row["deadline_ms"] as number | null,
      });
    }
    return queued;
  }

  async oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.oldest[purpose], [tenant, nowMs]);
    return row?.["agent_id"] as AgentId | undefined;
  }

  async countByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>> {
    const row =
      agentId === undefined
        ? await this.#database.ofTenant(tenant).row(SQL.count, [tenant])
        : await this.#database.ofTenant(tenant).row(SQL.countOfAgent, [tenant, agentId]);
    return new Map(
      (["held", "available", "leased"] as const).map((state) => [state, row?.[state] as number]),
    );
  }

  async markDelivered({
    tenant,
    deliveredAtMs,
    marks,
  }: Parameters<DeliveryStore["markDelivered"]>[0]): Promise<void> {
    const ids = marks.map(({ messageId }) => messageId);
    await this.#commits.submit(tenant, async (transaction) => {
      const rows = await transaction.rows(SQL.markDelivered, [tenant, deliveredAtMs, ids]);
      const marked = new Set(rows.map((row) => row["message_id"]));
      const events = marks.filter(({ messageId }) => marked.delete(messageId)).map(({ event }) => event);
      await this.#journal.append(transaction, [{ tenant, events }]);
    });
  }

  async lease(query: MailboxLeaseQuery, changes?: Changes): Promise<LeaseOutcome> {
    const leaseAll = (transaction: Transaction) => this.#leaseAll(transaction, query);
    const outcome = await this.#commits.attempt(query.tenant, leaseAll, changes);
    if (!outcome.committed) return outcome;
    let messages = outcome.value;
    // No wake-up may come when the other transaction leaves them available.
    for (let repeats = 0; messages === "locked" && repeats < LEASE_REPEATS_MAX; repeats += 1) {
      messages = await this.#commits.submit(query.tenant, leaseAll);
    }
    return { committed: true, messages: messages === "locked" ? [] : messages };
  }

  async renew(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>> {
    const messageIds = leases.map(({ messageId }) => messageId);
    const leaseIds = leases.map(({ leaseId }) => leaseId);
    const values = [tenant, agentId, messageIds, leaseIds, leaseExpiresAtMs];
    const rows = await this.#commits.submit(tenant, (transaction) => transaction.rows(SQL.renew, values));
    return new Map(rows.map((row) => [row["message_id"] as string, deliveryFromRow(row)]));
  }

  /** Of one message at a time, because they are long. */
  async #subject(row: Row): Promise<string> {
    const tenant = row["tenant"] as string;
    const message = await this.#database.ofTenant(tenant).row(SQL.json, [tenant, row["ref"]]);
    return (JSON.parse((message?.["json"] ?? "{}") as string) as { readonly subject?: string }).subject ?? "";
  }

  /** `locked`: all that it may have are locked by other transactions. */
  async #leaseAll(
    transaction: Transaction,
    query: MailboxLeaseQuery,
  ): Promise<readonly MailboxMessage[] | "locked"> {
    const { tenant, agentId, nowMs, worker, bytesMax, leaseIds, leaseExpiresAtMs, purpose } = query;
    const values = [tenant, agentId, nowMs, worker, bytesMax, leaseIds, leaseExpiresAtMs];
    const rows =
      purpose === undefined
        ? await transaction.rows(SQL.lease, values)
        : await transaction.rows(SQL.leaseOfPurpose, [...values, purpose]);
    if (rows.length === 0) {
      const locked = await transaction.row(SQL.leasable, [tenant, agentId, nowMs, worker, purpose]);
      return locked === undefined || leaseIds.length === 0 ? [] : "locked";
    }
    const leased = rows.map((row) => mailboxMessageFromRow(row));
    const events = leased.map(({ delivery }) => leasedEvent(delivery, nowMs));
    await this.#journal.append(transaction, [{ tenant, events }]);
    return leased;
  }
}

function listsOf({ agentId, state, isOneLine, purpose }: QueueFilter): readonly string[] {
  const waiting = agentId === undefined ? [SQL.waiting] : [SQL.heldOfAgent, SQL.availableOfAgent];
  switch (state) {
    case undefined:
      return [SQL.leased, ...waiting];
    case "held":
    case "available":
      return agentId === undefined && isOneLine === true ? [SQL.line[purpose ?? "any"]] : waiting;
    case "leased":
      return [SQL.leased];
    case "acknowledged":
      return [SQL.acknowledged];
    default:
      return [SQL.returned];
  }
}

export function deliveryFromRow(row: Row): DeliveryRecord {
  return {
    tenant: row["tenant"] as string,
    messageId: row["message_id"] as string,
    agentId: row["agent_id"] as AgentId,
    sender: row["sender"] as AgentId,
    taskId: row["task_id"] as string | null,
    state: row["state"] as DeliveryState,
    position: row["position"] as number,
    deliveredAtMs: row["delivered_at_ms"] as number | null,
    attempt: row["attempt"] as number,
    leaseId: row["lease_id"] as string | null,
    worker: row["worker"] as string | null,
    leasedAtMs: row["leased_at_ms"] as number | null,
    leaseExpiresAtMs: row["lease_expires_at_ms"] as number | null,
    reservedFor: row["reserved_for"] as string | null,
    expiresAtMs: row["expires_at_ms"] as number,
    settledAtMs: row["settled_at_ms"] as number | null,
    reason: row["reason"] as string | null,
    duplicateSafety: row["duplicate_safety"] as DuplicateSafety,
    idempotencyKey: row["idempotency_key"] as string | null,
    quiet: row["quiet"] === 1,
    threadId: row["thread_id"] as string,
    purpose: row["purpose"] as DeliveryPurpose,
    version: row["version"] as number,
  };
}

function mailboxMessageFromRow(row: Row): MailboxMessage {
  return {
    delivery: deliveryFromRow(row),
    message: {
      tenant: row["tenant"] as string,
      id: row["message_id"] as string,
      sender: row["m_sender"] as AgentId,
      recipient: row["m_recipient"] as AgentId,
      kind: row["m_kind"] as MessageKind,
      threadId: row["m_thread_id"] as string,
      taskId: row["m_task_id"] as string | null,
      acceptedAtMs: row["m_accepted_at_ms"] as number,
      json: row["m_json"] as StoredJson,
    },
  };
}
