import type { Anchor } from "../../core/ports/archive.ts";
import { journalTopic, taskTopic } from "../../core/ports/change-feed.ts";
import type {
  Chain,
  ChainHead,
  EventFilter,
  EventPage,
  EventRecord,
  EventType,
  JournalStore,
} from "../../core/ports/journal.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import type { StoredJson } from "../../core/ports/stored-json.ts";
import { toStoredJson } from "../../core/mechanisms/stored-json.ts";
import { eventHash, GENESIS } from "../../core/rules/event.ts";
import type { Database, Row, Transaction } from "./database.ts";
import { relayErrorFrom } from "./connections/postgres-error.ts";
import type { Engine } from "./postgres-relay-store.ts";

/** Of the advisory lock that the sealer of a schema holds. */
const SEAL_LOCK = 0x73_65_61;
/** Events that one transaction seals. */
const SEALED_MAX = 2_000;
/** How long committed events may wait for their seal when no reader asks for them. */
const SEAL_AFTER_MS = 500;

const DRAFT_COLUMNS = "tenant, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json";
const COLUMNS = `s.seq, s.previous_hash, s.hash, e.tenant, e.type, e.at_ms, e.actor, e.agent_id, e.message_id,
  e.task_id, e.thread_id, e.data_json`;
const START = "coalesce((select seq from chain_start where tenant = $1), 0)";
const MATCHES = `s.tenant = $1 and s.seq > $2 and s.seq <= $3 and ($4::text is null or e.type = $4)
    and ($5::text is null or e.actor = $5 or e.agent_id = $5) and ($6::text is null or e.thread_id = $6)
  order by s.seq limit $7`;

/** A snapshot of the future is that of another server, from which the schema was copied. */
const IS_COPY = `(pg_snapshot_xmin(h.sealed) > pg_snapshot_xmin(pg_current_snapshot())
  or pg_snapshot_xmax(h.sealed) > pg_snapshot_xmax(pg_current_snapshot()))`;

const UNSEALED = `event.position >= h.floor and not pg_visible_in_snapshot(event.xid, h.sealed)
  and pg_visible_in_snapshot(event.xid, h.target)`;
/** Of the day before, in which no transaction can still be open. */
const FLOOR = "first_of_day(partition_day() - 1)";

const SQL = {
  append: `
    insert into event (${DRAFT_COLUMNS})
    select ${DRAFT_COLUMNS} from rows from (json_to_recordset($1) as (tenant text, type text, at_ms bigint,
      actor text, agent_id text, message_id text, task_id text, thread_id text, data_json text))
      with ordinality as draft (${DRAFT_COLUMNS}, n) order by n`,

  mustSeal: `
    select h.target is not null or ${IS_COPY} or exists (
      select 1 from event where event.position >= h.floor and event.xid >= pg_snapshot_xmin(h.sealed)
        and not pg_visible_in_snapshot(event.xid, h.sealed)) as must_seal
    from seal_horizon h`,
  lock: `select pg_advisory_xact_lock(${SEAL_LOCK}, hashtext($1))`,
  // The events and the target are of one snapshot. What it sees includes the causes of everything it sees. It is read
  // by the index of xids first, then on from a position; the sum keeps the planner from the other index.
  unsealed: `
    with horizon as materialized (
      select sealed, position, floor, target is not null as is_continued,
        coalesce(target, pg_current_snapshot()) as target
      from seal_horizon)
    select h.target, h.is_continued, ${IS_COPY} as is_copy, e.*
    from horizon h left join lateral (
      (select position, ${DRAFT_COLUMNS} from event
      where h.position = 0 and event.xid >= pg_snapshot_xmin(h.sealed) and ${UNSEALED}
      order by position + 0 limit $1)
      union all
      (select position, ${DRAFT_COLUMNS} from event where h.position > 0 and event.position > h.position and ${UNSEALED}
      order by position limit $1)) e on true
    order by e.position`,
  heads: "select tenant, seq, hash from chain_head where tenant = any ($1)",
  seal: `
    with sealed as (
      insert into event_seal (tenant, seq, position, previous_hash, hash)
      select tenant, seq, position, previous_hash, hash from json_populate_recordset(null::event_seal, $1)
    ), heads as (
      insert into chain_head (tenant, seq, hash)
      select tenant, seq, hash from json_populate_recordset(null::chain_head, $2)
      on conflict (tenant) do update set seq = excluded.seq, hash = excluded.hash
    )
    update seal_horizon set position = $4::bigint, sealed = case when $4 = 0 then $3::pg_snapshot else sealed end,
      target = case when $4 <> 0 then $3 end, floor = case when $4 = 0 then ${FLOOR} else floor end`,
  // Transactions of this server get its own numbers.
  renumber: `
    with renumbered as (
      update event e set xid =
        case when pg_visible_in_snapshot(e.xid, h.sealed)
            or exists (select 1 from event_seal s where s.position = e.position) then '0'::xid8
        else pg_current_xact_id() end
      from seal_horizon h
    )
    update seal_horizon set sealed = pg_current_snapshot(), target = null, position = 0, floor = 0`,

  bounds: `
    select coalesce((select seq from chain_head where tenant = $1), 0) as head, ${START} as start`,
  page: `select ${COLUMNS} from event_seal s join event e on e.position = s.position where ${MATCHES}`,
  // Finds the seals by position, not by seq.
  ofTask: `
    select ${COLUMNS} from event e
    cross join lateral (select * from event_seal where event_seal.position = e.position offset 0) s
    where e.tenant = $1 and e.task_id = $8 and ${MATCHES}`,
  // No event of a message is of a day before the message.
  ofMessages: `
    select ${COLUMNS} from unnest($2::text[]) as wanted (id)
    left join message_key k on k.tenant = $1 and k.id = wanted.id
    join event e on e.tenant = $1 and e.message_id = wanted.id and e.position >= coalesce((k.ref >> 38) << 38, 0)
    join event_seal s on s.position = e.position
    order by s.seq`,
  oldest: `
    select ${COLUMNS} from event_seal s join event e on e.position = s.position
    where s.tenant = $1 and s.seq > ${START} and s.seq <= ${START} + $2 order by s.seq`,
  chain: `
    select head.seq as head_seq, head.hash as head_hash, start.seq as start_seq, start.hash as start_hash,
      anchor.seq as anchor_seq, anchor.hash as anchor_hash, anchor.at_ms as anchor_at_ms,
      (select s.seq from event_seal s join event e on e.position = s.position
        where s.tenant = $1 order by s.seq desc limit 1) as last_seq
    from (select 1) as one left join chain_head head on head.tenant = $1
    left join chain_start start on start.tenant = $1 left join anchor on anchor.tenant = $1`,
  moveStart: `
    insert into chain_start as kept (tenant, seq, hash) values ($1, $2, $3)
    on conflict (tenant) do update set seq = excluded.seq, hash = excluded.hash where excluded.seq > kept.seq`,
  // The events go with their partition.
  remove: "delete from event_seal where tenant = $1 and seq <= $2",
  putAnchors: `
    insert into anchor as kept (tenant, seq, hash, at_ms)
    select distinct on (tenant) tenant, seq, hash, at_ms
    from rows from (json_to_recordset($1) as (tenant text, seq bigint, hash text, at_ms bigint))
      with ordinality as put (tenant, seq, hash, at_ms, n)
    order by tenant, at_ms desc, n desc
    on conflict (tenant) do update set seq = excluded.seq, hash = excluded.hash, at_ms = excluded.at_ms
    where excluded.at_ms >= kept.at_ms`,
};

/**
 * Events and their hash chain. Commits only insert events, so that they do not wait for each other. Soon after a
 * commit, and before every read, they are sealed: the events of finished transactions are appended to the chain. All
 * that is read is sealed.
 */
export class Journal implements JournalStore {
  readonly #database: Database;
  #running: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor({ database }: Pick<Engine, "database">) {
    this.#database = database;
  }

  /** The chain has no gaps, so the last seq that a bounded scan reads is known beforehand. */
  async events(filter: EventFilter): Promise<EventPage> {
    await this.#sealCommitted();
    const { tenant, afterSeq, type, agentId, threadId, taskId, limit } = filter;
    const bounds = await this.#database.ofTenant(tenant).row(SQL.bounds, [tenant]);
    const head = bounds?.["head"] as number;
    const start = Math.max(afterSeq, bounds?.["start"] as number);
    const scanned = taskId === undefined ? start + filter.scanRowsMax : head;
    const end = Math.max(afterSeq, Math.min(head, scanned));
    const wanted = [tenant, afterSeq, end, type, agentId, threadId, limit];
    const reader = this.#database.ofTenant(tenant);
    const rows =
      taskId === undefined
        ? await reader.rows(SQL.page, wanted)
        : await reader.rows(SQL.ofTask, [...wanted, taskId]);
    const events = rows.map((row) => eventFromRow(row));
    const lastSeq = events.length === limit ? (events.at(-1)?.seq ?? end) : end;
    return { events, lastSeq, hasMore: lastSeq < head };
  }

  async ofMessages(tenant: string, messageIds: readonly string[]): Promise<readonly EventRecord[]> {
    await this.#sealCommitted();
    const rows = await this.#database.ofTenant(tenant).rows(SQL.ofMessages, [tenant, messageIds]);
    return rows.map((row) => eventFromRow(row));
  }

  async chain(tenant: string): Promise<Chain> {
    await this.#sealCommitted();
    const row = (await this.#database.ofTenant(tenant).row(SQL.chain, [tenant])) ?? {};
    const start = headFrom(row["start_seq"], row["start_hash"]);
    return {
      head: headFrom(row["head_seq"], row["head_hash"]),
      start,
      lastSeq: (row["last_seq"] as number | null) ?? start.seq,
      newestAnchor:
        row["anchor_seq"] === null
          ? undefined
          : {
              tenant,
              ...headFrom(row["anchor_seq"], row["anchor_hash"]),
              atMs: row["anchor_at_ms"] as number,
            },
    };
  }

  /** Retention removes events only from the beginning of the chain, so this stops at the first that must stay. */
  async oldest(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]> {
    await this.#sealCommitted();
    const events = (await this.#database.ofTenant(tenant).rows(SQL.oldest, [tenant, limit])).map((row) =>
      eventFromRow(row),
    );
    const kept = events.findIndex((event) => event.atMs >= beforeMs);
    return kept === -1 ? events : events.slice(0, kept);
  }

  async removeUntil(transaction: Transaction, tenant: string, { seq, hash }: ChainHead): Promise<void> {
    await transaction.run(SQL.moveStart, [tenant, seq, hash]);
    await transaction.run(SQL.remove, [tenant, seq]);
  }

  async putAnchors(transaction: Transaction, anchors: readonly Anchor[]): Promise<void> {
    if (anchors.length === 0) return;
    const rows = anchors.map(({ tenant, seq, hash, atMs }) => ({ tenant, seq, hash, at_ms: atMs }));
    await transaction.run(SQL.putAnchors, [JSON.stringify(rows)]);
  }

  async append(transaction: Transaction, all: readonly Pick<Changes, "tenant" | "events">[]): Promise<void> {
    const rows = all.flatMap(({ tenant, events }) =>
      events.map((draft) => ({
        tenant,
        type: draft.type,
        at_ms: draft.atMs,
        actor: draft.actor,
        agent_id: draft.agentId,
        message_id: draft.messageId,
        task_id: draft.taskId,
        thread_id: draft.threadId,
        data_json: toStoredJson(draft.data),
      })),
    );
    if (rows.length === 0) return;
    await transaction.run(SQL.append, [JSON.stringify(rows)]);
    for (const { tenant, task_id: taskId } of rows) {
      if (taskId !== null) transaction.wake(taskTopic(tenant, taskId));
      transaction.wake(journalTopic(tenant));
    }
  }

  sealSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      // What fails now is sealed after the next commit, or by the next reader.
      void this.#sealCommitted().catch(() => undefined);
    }, SEAL_AFTER_MS).unref();
  }

  /** Before the database is closed. */
  async stopSealing(): Promise<void> {
    clearTimeout(this.#soon);
    await this.#running?.catch(() => undefined);
  }

  /**
   * Callers at the same time share a run, but none that had begun: it may not see what they have committed. Returns
   * whether more events can be sealed at once.
   */
  seal(): Promise<boolean> {
    this.#next ??= this.#sealNext();
    return this.#next;
  }

  async #sealNext(): Promise<boolean> {
    await this.#running?.catch(() => undefined);
    this.#next = undefined;
    this.#running = this.#database.transaction(sealBatch);
    return this.#running;
  }

  /** Seals what was committed before the call. */
  async #sealCommitted(): Promise<void> {
    const row = await this.#database.row(SQL.mustSeal);
    if (row?.["must_seal"] !== true) return;
    try {
      while (await this.seal());
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }
}

async function sealBatch(transaction: Transaction): Promise<boolean> {
  await transaction.rows(SQL.lock, [transaction.schema]);
  const rows = await transaction.rows(SQL.unsealed, [SEALED_MAX]);
  const [first] = rows;
  if (first?.["is_copy"] === true) {
    await transaction.run(SQL.renumber);
    return true;
  }
  const isContinued = first?.["is_continued"] === true;
  const drafts = rows.filter((row) => row["position"] !== null);
  if (drafts.length === 0 && !isContinued) return false;
  const heads = await headsOf(transaction, drafts);
  const seals = drafts.map((row) => sealOf(row, heads));
  const isFull = drafts.length === SEALED_MAX;
  await transaction.run(SQL.seal, [
    JSON.stringify(seals),
    JSON.stringify([...heads].map(([tenant, head]) => ({ tenant, ...head }))),
    first?.["target"],
    isFull ? drafts.at(-1)?.["position"] : 0,
  ]);
  // The target of a continued run is older than the call.
  return isFull || isContinued;
}

async function headsOf(transaction: Transaction, rows: readonly Row[]): Promise<Map<string, ChainHead>> {
  const tenants = new Set(rows.map((row) => row["tenant"] as string));
  const heads = await transaction.rows(SQL.heads, [[...tenants]]);
  return new Map(heads.map((row) => [row["tenant"] as string, headFrom(row["seq"], row["hash"])]));
}

/** Moves the head of the event's chain to it. */
function sealOf(row: Row, heads: Map<string, ChainHead>): Row {
  const tenant = row["tenant"] as string;
  const head = heads.get(tenant) ?? GENESIS;
  const event = eventFromRow({ ...row, seq: head.seq + 1, previous_hash: head.hash, hash: "" });
  const hash = eventHash(event);
  heads.set(tenant, { seq: event.seq, hash });
  return { tenant, seq: event.seq, position: row["position"], previous_hash: head.hash, hash };
}

function headFrom(seq: unknown, hash: unknown): ChainHead {
  return seq === null ? GENESIS : { seq: seq as number, hash: hash as string };
}

function eventFromRow(row: Row): EventRecord {
  return {
    tenant: row["tenant"] as string,
    seq: row["seq"] as number,
    type: row["type"] as EventType,
    atMs: row["at_ms"] as number,
    actor: row["actor"] as string,
    agentId: row["agent_id"] as string | null,
    messageId: row["message_id"] as string | null,
    taskId: row["task_id"] as string | null,
    threadId: row["thread_id"] as string | null,
    dataJson: row["data_json"] as StoredJson,
    previousHash: row["previous_hash"] as string,
    hash: row["hash"] as string,
  };
}
