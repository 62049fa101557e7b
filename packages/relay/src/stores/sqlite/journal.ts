import type { Anchor } from "../../core/ports/archive.ts";
import { journalTopic, taskTopic } from "../../core/ports/change-feed.ts";
import type {
  Chain,
  ChainHead,
  EventDraft,
  EventFilter,
  EventPage,
  EventRecord,
  EventType,
  JournalStore,
} from "../../core/ports/journal.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import type { StoredJson } from "../../core/ports/stored-json.ts";
import { GENESIS, sealEvent } from "../../core/rules/event.ts";
import type { Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import type { StoreState } from "./store-state.ts";

/** The key of an event is its tenant's chain number times this, plus its seq: events of one tenant lie together. */
export const CHAIN_SPAN = 2 ** 33;

const COLUMNS = `rowid, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json, previous_hash,
  hash, accepted_id`;
const MATCHES = `rowid > ?1 and rowid <= ?2 and (?3 is null or type = ?3)
    and (?4 is null or actor = ?4 or agent_id = ?4) and (?5 is null or thread_id = ?5)
  order by rowid limit ?6`;

const SQL = {
  insert: `insert into event (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  page: `select ${COLUMNS} from event where ${MATCHES}`,
  ofTask: `
    select ${COLUMNS} from event indexed by event_task
    where task_id = ?7 and task_id is not null and ${MATCHES}`,
  ofMessage: `
    select ${COLUMNS} from event indexed by event_message
    where message_id = ? and message_id is not null and rowid > ? and rowid <= ? order by rowid`,
  acceptance: `
    select ${COLUMNS} from event
    where rowid = (select accepted_place from message where tenant = ? and id = ?)`,
  indexAcceptance: `
    update event set message_id = accepted_id, accepted_id = null where rowid = ? and accepted_id is not null`,
  oldest: `select ${COLUMNS} from event where rowid > ? and rowid <= ? order by rowid limit ?`,
  last: "select max(rowid) from event where rowid > ? and rowid <= ?",
  anchor: "select seq, hash from chain_anchor where tenant = ?",
  saveAnchor: `
    insert into chain_anchor (tenant, seq, hash) values (?, ?, ?)
    on conflict do update set seq = excluded.seq, hash = excluded.hash where excluded.seq > seq`,
  newestAnchor: "select seq, hash, at_ms from anchor where tenant = ?",
  putAnchor: `
    insert into anchor (tenant, seq, hash, at_ms) values (?, ?, ?, ?)
    on conflict do update set seq = excluded.seq, hash = excluded.hash, at_ms = excluded.at_ms
    where excluded.at_ms >= at_ms`,
  remove: "delete from event where rowid > ? and rowid <= ?",
};

const NO_ACCEPTANCES: ReadonlyMap<string, number> = new Map();

/**
 * Events and their hash chain. The event that accepts a message has no entry in the index of message ids while the
 * message is kept: the message's row has the key of the event, and the event names the message in `accepted_id`.
 */
export class Journal implements JournalStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  /** The chain has no gaps, so the last seq that a bounded scan reads is known beforehand. */
  async events(filter: EventFilter): Promise<EventPage> {
    const { tenant, afterSeq, type = null, agentId = null, threadId = null, taskId, limit } = filter;
    const head = this.#state.chainHead(tenant).seq;
    const start = Math.max(afterSeq, this.#anchor(tenant).seq);
    const scanned = taskId === undefined ? start + filter.scanRowsMax : head;
    const end = Math.max(afterSeq, Math.min(head, scanned));
    const { first } = this.#keyRange(tenant);
    const wanted = [first + afterSeq, first + end, type, agentId, threadId, limit] as const;
    const rows =
      taskId === undefined ? this.#sql.page.all(...wanted) : this.#sql.ofTask.all(...wanted, taskId);
    const events = rows.map((row) => eventFromRow(tenant, row));
    const lastSeq = events.length === limit ? (events.at(-1)?.seq ?? end) : end;
    return { events, lastSeq, hasMore: lastSeq < head };
  }

  async ofMessages(tenant: string, messageIds: readonly string[]): Promise<readonly EventRecord[]> {
    const { first, last } = this.#keyRange(tenant);
    const rows = messageIds.flatMap((messageId) => [
      ...this.#sql.acceptance.all(tenant, messageId),
      ...this.#sql.ofMessage.all(messageId, first, last),
    ]);
    return rows.map((row) => eventFromRow(tenant, row)).toSorted((a, b) => a.seq - b.seq);
  }

  async chain(tenant: string): Promise<Chain> {
    const { first, last } = this.#keyRange(tenant);
    const start = this.#anchor(tenant);
    const key = this.#sql.last.get(first, last)?.[0];
    const lastSeq = typeof key === "number" ? key - first : start.seq;
    return { head: this.#state.chainHead(tenant), start, lastSeq, newestAnchor: this.#newestAnchor(tenant) };
  }

  /** Retention removes events only from the beginning of the chain, so this stops at the first that must stay. */
  oldest(tenant: string, beforeMs: number, limit: number): readonly EventRecord[] {
    const { first, last } = this.#keyRange(tenant);
    const events = this.#sql.oldest.all(first, last, limit).map((row) => eventFromRow(tenant, row));
    const kept = events.findIndex((event) => event.atMs >= beforeMs);
    return kept === -1 ? events : events.slice(0, kept);
  }

  removeUntil(tenant: string, anchor: ChainHead): void {
    const { first, last } = this.#keyRange(tenant);
    this.#sql.saveAnchor.run(tenant, anchor.seq, anchor.hash);
    // Stays within the tenant's keys, whatever the anchor says.
    this.#sql.remove.run(first, Math.min(first + anchor.seq, last));
  }

  putAnchor({ tenant, seq, hash, atMs }: Anchor): void {
    this.#sql.putAnchor.run(tenant, seq, hash, atMs);
  }

  /** The keys that the events of these changes will have by which new messages are accepted, by message id. */
  acceptances({ tenant, events, messages = [] }: Changes): ReadonlyMap<string, number> {
    if (messages.length === 0) return NO_ACCEPTANCES;
    const ids = new Set(messages.map(({ id }) => id));
    const next = this.#state.takeChainNumber(tenant) * CHAIN_SPAN + this.#state.chainHead(tenant).seq + 1;
    const keys = new Map<string, number>();
    for (const [index, { type, messageId }] of events.entries()) {
      const isAcceptance = type === "message.accepted" && messageId !== null && ids.has(messageId);
      if (isAcceptance && !keys.has(messageId)) keys.set(messageId, next + index);
    }
    return keys;
  }

  /** Puts an acceptance into the index of message ids, because its message is removed. */
  indexAcceptance(acceptanceKey: number): void {
    this.#sql.indexAcceptance.run(acceptanceKey);
  }

  append(
    tenant: string,
    drafts: readonly EventDraft[],
    acceptances: ReadonlyMap<string, number> = NO_ACCEPTANCES,
  ): void {
    if (drafts.length === 0) return;
    const first = this.#state.takeChainNumber(tenant) * CHAIN_SPAN;
    let head = this.#state.chainHead(tenant);
    for (const draft of drafts) {
      const event = sealEvent(tenant, head, draft);
      head = { seq: event.seq, hash: event.hash };
      const key = first + event.seq;
      const { messageId, taskId } = event;
      const isAcceptance = messageId !== null && acceptances.get(messageId) === key;
      this.#sql.insert.run(
        key,
        event.type,
        event.atMs,
        event.actor,
        event.agentId,
        isAcceptance ? null : messageId,
        taskId,
        event.threadId,
        event.dataJson,
        Buffer.from(event.previousHash, "hex"),
        Buffer.from(event.hash, "hex"),
        isAcceptance ? messageId : null,
      );
      if (taskId !== null) this.#state.wake(taskTopic(tenant, taskId));
    }
    this.#state.moveChainHead(tenant, head);
    this.#state.wake(journalTopic(tenant));
  }

  #newestAnchor(tenant: string): Anchor | undefined {
    const row = this.#sql.newestAnchor.get(tenant);
    if (row === undefined) return undefined;
    return { tenant, seq: row[0] as number, hash: row[1] as string, atMs: row[2] as number };
  }

  #anchor(tenant: string): ChainHead {
    const row = this.#sql.anchor.get(tenant);
    return row === undefined ? GENESIS : { seq: row[0] as number, hash: row[1] as string };
  }

  /** Keys of the tenant's events are after `first` and up to `last`; an empty range while it has none. */
  #keyRange(tenant: string): { readonly first: number; readonly last: number } {
    const number = this.#state.chainNumber(tenant);
    if (number === undefined) return { first: 0, last: 0 };
    return { first: number * CHAIN_SPAN, last: (number + 1) * CHAIN_SPAN - 1 };
  }
}

function eventFromRow(tenant: string, row: Row): EventRecord {
  return {
    tenant,
    seq: (row[0] as number) % CHAIN_SPAN,
    type: row[1] as EventType,
    atMs: row[2] as number,
    actor: row[3] as string,
    agentId: row[4] as string | null,
    messageId: (row[5] ?? row[11]) as string | null,
    taskId: row[6] as string | null,
    threadId: row[7] as string | null,
    dataJson: row[8] as StoredJson,
    previousHash: Buffer.from(row[9] as Uint8Array).toString("hex"),
    hash: Buffer.from(row[10] as Uint8Array).toString("hex"),
  };
}
