import type { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { MessageStore, ThreadSummary } from "../../core/messages/message-store.ts";
import { prepare, type Statement } from "./database.ts";

type ThreadsQuery = Parameters<MessageStore["threads"]>[0];
type ThreadsPage = Awaited<ReturnType<MessageStore["threads"]>>;

const WALK = "select ref, tenant, thread_id from message where ref < ? order by ref desc limit ?";
const NEWEST = "select max(ref) from message where tenant = ? and thread_id = ?";
const TAKES_PART = `
  select 1 from message where tenant = ?1 and thread_id = ?2 and (sender = ?3 or recipient = ?3) limit 1`;
// The letters themselves are read only where there is no delivery: they are long, deliveries are not.
const SUMMARY = `
  select count(*), total(d.state in ('held', 'available', 'leased')),
    json_group_array(distinct coalesce(d.sender, m.sender)),
    json_group_array(distinct coalesce(d.agent_id, m.recipient))
  from message m left join delivery d on d.ref = m.ref
  where m.tenant = ? and m.thread_id = ?`;
const FIRST =
  "select accepted_at_ms, json from message where tenant = ? and thread_id = ? order by ref limit 1";
const ACCEPTED_AT = "select accepted_at_ms from message where ref = ?";

/** Messages looked at between two turns of the event loop, so that a rare filter holds nobody up. */
const WALK_ROWS = 200;

/** Threads are not stored: they are found by walking the messages back from the newest. */
export class Threads {
  readonly #walk: Statement;
  readonly #newest: Statement;
  readonly #takesPart: Statement;
  readonly #summary: Statement;
  readonly #first: Statement;
  readonly #acceptedAt: Statement;

  constructor(database: DatabaseSync) {
    this.#walk = prepare(database, WALK);
    this.#newest = prepare(database, NEWEST);
    this.#takesPart = prepare(database, TAKES_PART);
    this.#summary = prepare(database, SUMMARY);
    this.#first = prepare(database, FIRST);
    this.#acceptedAt = prepare(database, ACCEPTED_AT);
  }

  async threads(query: ThreadsQuery): Promise<ThreadsPage> {
    const threads: ThreadSummary[] = [];
    const seen = new Set<string>();
    let position = query.beforePosition;
    let budget = query.scanRowsMax;
    while (budget > 0) {
      const wanted = Math.min(budget, WALK_ROWS);
      const rows = this.#walk.all(position, wanted);
      for (const [ref, tenant, threadId] of rows) {
        position = Number(ref);
        budget -= 1;
        if (tenant !== query.tenant || seen.has(String(threadId))) continue;
        seen.add(String(threadId));
        if (!this.#belongsHere(query, String(threadId), position)) continue;
        const summary = this.#summarise(query.tenant, String(threadId), position);
        budget -= summary.messageCount;
        threads.push(summary);
        if (threads.length >= query.limit || budget <= 0) return { threads, nextPosition: position };
      }
      if (rows.length < wanted) return { threads, nextPosition: undefined };
      await setImmediate();
    }
    return { threads, nextPosition: position };
  }

  /** A thread that has a newer message stood on an earlier page. */
  #belongsHere({ tenant, agent }: ThreadsQuery, threadId: string, ref: number): boolean {
    if (this.#newest.get(tenant, threadId)?.[0] !== ref) return false;
    return agent === undefined || this.#takesPart.get(tenant, threadId, agent) !== undefined;
  }

  #summarise(tenant: string, threadId: string, ref: number): ThreadSummary {
    const [count, open, senders, recipients] = this.#summary.get(tenant, threadId) ?? [];
    const [firstAtMs, firstMessageJson] = this.#first.get(tenant, threadId) ?? [];
    const participants = new Set<string>([...names(senders), ...names(recipients)]);
    return {
      threadId,
      lastPosition: ref,
      messageCount: Number(count),
      openCount: Number(open),
      firstAtMs: Number(firstAtMs),
      lastAtMs: Number(this.#acceptedAt.get(ref)?.[0]),
      participants: [...participants],
      firstMessageJson: String(firstMessageJson),
    };
  }
}

function names(json: unknown): readonly string[] {
  return JSON.parse(String(json)) as readonly string[];
}
