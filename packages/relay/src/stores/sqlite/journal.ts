import type { DatabaseSync } from "node:sqlite";
import { journalTopic, taskTopic } from "../../core/ports/change-feed.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import type { ChainHead, EventDraft, EventFilter, EventPage, EventRecord } from "../../core/ports/journal.ts";
import { GENESIS, sealEvent } from "../../core/rules/event.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import { RowInsert } from "./row-insert.ts";
import { CHAIN_PLACES, EVENT_COLUMNS, eventFromRow } from "./rows.ts";

// A row that cannot be written undoes the whole job, so the statement itself need not be undone: `or fail` spares it
// the copies of pages that it would keep for that.
const INSERT = {
  into: `insert or fail into event (${EVENT_COLUMNS})`,
  row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
};
const PAGE = `
  select ${EVENT_COLUMNS} from event
  where place > ?1 and place <= ?2 and (?3 is null or type = ?3)
    and (?4 is null or actor = ?4 or agent_id = ?4) and (?5 is null or thread_id = ?5)
  order by place limit ?6`;
const OF_TASK = `
  select ${EVENT_COLUMNS} from event indexed by event_task
  where task_id = ?7 and task_id is not null and place > ?1 and place <= ?2 and (?3 is null or type = ?3)
    and (?4 is null or actor = ?4 or agent_id = ?4) and (?5 is null or thread_id = ?5)
  order by place limit ?6`;
const OF_MESSAGE = `
  select ${EVENT_COLUMNS} from event indexed by event_message
  where message_id = ? and message_id is not null and place > ? and place <= ? order by place`;
const ACCEPTANCE = `
  select ${EVENT_COLUMNS} from event
  where place = (select accepted_place from message where tenant = ? and id = ?)`;
const ENTER = `
  update event set message_id = accepted_id, accepted_id = null where place = ? and accepted_id is not null`;
const OLDEST = `select ${EVENT_COLUMNS} from event where place > ? and place <= ? order by place limit ?`;
const LAST = "select max(place) from event where place > ? and place <= ?";
const ANCHOR = "select seq, hash from chain_anchor where tenant = ?";
const SAVE_ANCHOR = `
  insert into chain_anchor (tenant, seq, hash) values (?, ?, ?)
  on conflict do update set seq = excluded.seq, hash = excluded.hash where excluded.seq > seq`;
const FORGET = "delete from event where place > ? and place <= ?";

const NO_LETTERS: ReadonlyMap<string, number> = new Map();

/** Events and the hash chain they make. */
export class Journal {
  readonly #ledger: Ledger;
  readonly #insert: RowInsert;
  readonly #page: Statement;
  readonly #ofTask: Statement;
  readonly #ofMessage: Statement;
  readonly #acceptance: Statement;
  readonly #enter: Statement;
  readonly #oldest: Statement;
  readonly #last: Statement;
  readonly #anchor: Statement;
  readonly #saveAnchor: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#insert = new RowInsert(database, INSERT);
    ledger.gather(this.#insert);
    this.#page = prepare(database, PAGE);
    this.#ofTask = prepare(database, OF_TASK);
    this.#ofMessage = prepare(database, OF_MESSAGE);
    this.#acceptance = prepare(database, ACCEPTANCE);
    this.#enter = prepare(database, ENTER);
    this.#oldest = prepare(database, OLDEST);
    this.#last = prepare(database, LAST);
    this.#anchor = prepare(database, ANCHOR);
    this.#saveAnchor = prepare(database, SAVE_ANCHOR);
    this.#forget = prepare(database, FORGET);
  }

  /** The chain has no gaps, so where a bounded walk ended is known without looking. */
  events(filter: EventFilter): EventPage {
    const { tenant, afterSeq, type = null, agentId = null, threadId = null, taskId, limit } = filter;
    const head = this.chainHead(tenant).seq;
    const start = Math.max(afterSeq, this.chainAnchor(tenant).seq);
    // Events of one task are found without a walk.
    const scanned = taskId === undefined ? start + filter.scanRowsMax : head;
    const end = Math.max(afterSeq, Math.min(head, scanned));
    const { first } = this.#places(tenant);
    const wanted = [first + afterSeq, first + end, type, agentId, threadId, limit] as const;
    const rows = taskId === undefined ? this.#page.all(...wanted) : this.#ofTask.all(...wanted, taskId);
    const events = rows.map((row) => eventFromRow(tenant, row));
    const lastSeq = events.length === limit ? (events.at(-1)?.seq ?? end) : end;
    return { events, lastSeq, hasMore: lastSeq < head };
  }

  eventsOfMessage(tenant: string, messageId: string): readonly EventRecord[] {
    const { first, last } = this.#places(tenant);
    const rows = [...this.#acceptance.all(tenant, messageId), ...this.#ofMessage.all(messageId, first, last)];
    return rows.map((row) => eventFromRow(tenant, row)).toSorted((a, b) => a.seq - b.seq);
  }

  chainHead(tenant: string): ChainHead {
    return this.#ledger.chainHead(tenant);
  }

  lastEventSeq(tenant: string): number {
    const { first, last } = this.#places(tenant);
    const place = this.#last.get(first, last)?.[0];
    return typeof place === "number" ? place - first : this.chainAnchor(tenant).seq;
  }

  chainAnchor(tenant: string): ChainHead {
    const row = this.#anchor.get(tenant);
    return row === undefined ? GENESIS : { seq: row[0] as number, hash: row[1] as string };
  }

  /** Only a beginning of the chain can go, so the walk stops at the first event that must stay. */
  retirableEvents(tenant: string, beforeMs: number, limit: number): readonly EventRecord[] {
    const { first, last } = this.#places(tenant);
    const events = this.#oldest.all(first, last, limit).map((row) => eventFromRow(tenant, row));
    const kept = events.findIndex((event) => event.atMs >= beforeMs);
    return kept === -1 ? events : events.slice(0, kept);
  }

  /**
   * Inside a commit, of what is appended in the same one: where the events will be by which new messages are accepted,
   * by the ids of the messages. Both come in the same order; an event that does not is found like any other.
   */
  acceptances({ tenant, events, messages = [] }: Changes): ReadonlyMap<string, number> {
    const places = new Map<string, number>();
    if (messages.length === 0 || events.length === 0) return places;
    const next = this.#ledger.takeChainNumber(tenant) * CHAIN_PLACES + this.#ledger.chainHead(tenant).seq + 1;
    for (const [index, { type, messageId }] of events.entries()) {
      const isOfNext = type === "message.accepted" && messages[places.size]?.id === messageId;
      if (isOfNext && messageId !== null) places.set(messageId, next + index);
    }
    return places;
  }

  /** Inside a commit: the message whose acceptance this is leaves, so that the event has to be found without it. */
  enterAcceptance(acceptedPlace: number): void {
    this.#enter.run(acceptedPlace);
  }

  /** Inside a commit. */
  append(
    tenant: string,
    drafts: readonly EventDraft[],
    acceptances: ReadonlyMap<string, number> = NO_LETTERS,
  ): void {
    if (drafts.length === 0) return;
    const first = this.#ledger.takeChainNumber(tenant) * CHAIN_PLACES;
    let head = this.#ledger.chainHead(tenant);
    let previousHash = Buffer.from(head.hash, "hex");
    for (const draft of drafts) {
      const event = sealEvent(tenant, head, draft);
      const { type, atMs, actor, agentId, messageId, taskId, threadId, dataJson } = event;
      const hash = Buffer.from(event.hash, "hex");
      const before = previousHash;
      head = { seq: event.seq, hash: event.hash };
      previousHash = hash;
      if (taskId !== null) this.#ledger.wake(taskTopic(tenant, taskId));
      const place = first + event.seq;
      const isOfMessage = messageId !== null && acceptances.get(messageId) === place;
      this.#insert.add([
        place,
        type,
        atMs,
        actor,
        agentId,
        isOfMessage ? null : messageId,
        taskId,
        threadId,
        dataJson,
        before,
        hash,
        isOfMessage ? messageId : null,
      ]);
    }
    this.#ledger.moveChainHead(tenant, head);
    this.#ledger.wake(journalTopic(tenant));
  }

  /** Inside a commit. */
  retireEvents(tenant: string, anchor: ChainHead): void {
    const { first, last } = this.#places(tenant);
    this.#saveAnchor.run(tenant, anchor.seq, anchor.hash);
    // Never a place of another tenant, whatever the anchor says.
    this.#forget.run(first, Math.min(first + anchor.seq, last));
  }

  /** Between which places the tenant's events lie; nowhere while it has none. */
  #places(tenant: string): { readonly first: number; readonly last: number } {
    const number = this.#ledger.chainNumber(tenant);
    if (number === undefined) return { first: 0, last: 0 };
    return { first: number * CHAIN_PLACES, last: (number + 1) * CHAIN_PLACES - 1 };
  }
}
