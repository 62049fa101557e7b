import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { journalTopic } from "../../core/environment/change-feed.ts";
import {
  type ChainHead,
  type EventDraft,
  type EventRecord,
  GENESIS,
  sealEvent,
} from "../../core/journal/event.ts";
import type { EventFilter, EventPage } from "../../core/journal/journal-store.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import { EVENT_COLUMNS, eventFromRow } from "./rows.ts";

const INSERT = `insert into event (${EVENT_COLUMNS}) values `;
const INSERTED = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/** Events that one statement writes: together they cost less. */
const TOGETHER_MAX = 16;
const PAGE = `
  select ${EVENT_COLUMNS} from event
  where tenant = ?1 and seq > ?2 and seq <= ?3 and (?4 is null or type = ?4)
    and (?5 is null or actor = ?5 or agent_id = ?5) and (?6 is null or thread_id = ?6)
  order by seq limit ?7`;
const OF_MESSAGE = `
  select ${EVENT_COLUMNS} from event indexed by event_message
  where tenant = ? and message_id = ? and message_id is not null order by seq`;
const OLDEST = `select ${EVENT_COLUMNS} from event where tenant = ? order by seq limit ?`;
const LAST_SEQ = "select max(seq) from event where tenant = ?";
const ANCHOR = "select seq, hash from chain_anchor where tenant = ?";
const SAVE_ANCHOR = `
  insert into chain_anchor (tenant, seq, hash) values (?, ?, ?)
  on conflict do update set seq = excluded.seq, hash = excluded.hash where excluded.seq > seq`;
const FORGET = "delete from event where tenant = ? and seq <= ?";

/** Events and the hash chain they make. */
export class Journal {
  readonly #ledger: Ledger;
  /** For one event, for two, and so on. */
  readonly #inserts: readonly Statement[];
  readonly #page: Statement;
  readonly #ofMessage: Statement;
  readonly #oldest: Statement;
  readonly #lastSeq: Statement;
  readonly #anchor: Statement;
  readonly #saveAnchor: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#inserts = Array.from({ length: TOGETHER_MAX }, (_, index) =>
      prepare(database, INSERT + Array.from({ length: index + 1 }, () => INSERTED).join(", ")),
    );
    this.#page = prepare(database, PAGE);
    this.#ofMessage = prepare(database, OF_MESSAGE);
    this.#oldest = prepare(database, OLDEST);
    this.#lastSeq = prepare(database, LAST_SEQ);
    this.#anchor = prepare(database, ANCHOR);
    this.#saveAnchor = prepare(database, SAVE_ANCHOR);
    this.#forget = prepare(database, FORGET);
  }

  /** The chain has no gaps, so where a bounded walk ended is known without looking. */
  events(filter: EventFilter): EventPage {
    const head = this.chainHead(filter.tenant).seq;
    const start = Math.max(filter.afterSeq, this.chainAnchor(filter.tenant).seq);
    const end = Math.max(filter.afterSeq, Math.min(head, start + filter.scanRowsMax));
    const { tenant, type = null, agentId = null, threadId = null, limit } = filter;
    const events = this.#page
      .all(tenant, filter.afterSeq, end, type, agentId, threadId, limit)
      .map((row) => eventFromRow(row));
    const lastSeq = events.length === limit ? (events.at(-1)?.seq ?? end) : end;
    return { events, lastSeq, hasMore: lastSeq < head };
  }

  eventsOfMessage(tenant: string, messageId: string): readonly EventRecord[] {
    return this.#ofMessage.all(tenant, messageId).map((row) => eventFromRow(row));
  }

  chainHead(tenant: string): ChainHead {
    return this.#ledger.chainHead(tenant);
  }

  lastEventSeq(tenant: string): number {
    const last = this.#lastSeq.get(tenant)?.[0];
    return typeof last === "number" ? last : this.chainAnchor(tenant).seq;
  }

  chainAnchor(tenant: string): ChainHead {
    const row = this.#anchor.get(tenant);
    return row === undefined ? GENESIS : { seq: row[0] as number, hash: row[1] as string };
  }

  /** Only a beginning of the chain can go, so the walk stops at the first event that must stay. */
  retirableEvents(tenant: string, beforeMs: number, limit: number): readonly EventRecord[] {
    const events = this.#oldest.all(tenant, limit).map((row) => eventFromRow(row));
    const kept = events.findIndex((event) => event.atMs >= beforeMs);
    return kept === -1 ? events : events.slice(0, kept);
  }

  /** Inside a commit. */
  append(tenant: string, drafts: readonly EventDraft[]): void {
    if (drafts.length === 0) return;
    let head = this.#ledger.chainHead(tenant);
    for (let start = 0; start < drafts.length; start += TOGETHER_MAX) {
      const values: SQLInputValue[] = [];
      for (const draft of drafts.slice(start, start + TOGETHER_MAX)) {
        const event = sealEvent(tenant, head, draft);
        head = { seq: event.seq, hash: event.hash };
        values.push(
          event.tenant,
          event.seq,
          event.type,
          event.atMs,
          event.actor,
          event.agentId,
          event.messageId,
        );
        values.push(event.taskId, event.threadId, event.dataJson, event.previousHash, event.hash);
      }
      const count = Math.min(TOGETHER_MAX, drafts.length - start);
      this.#inserts[count - 1]?.run(...values);
    }
    this.#ledger.moveChainHead(tenant, head);
    this.#ledger.wake(journalTopic(tenant));
  }

  /** Inside a commit. */
  retireEvents(tenant: string, anchor: ChainHead): void {
    this.#saveAnchor.run(tenant, anchor.seq, anchor.hash);
    this.#forget.run(tenant, anchor.seq);
  }
}
