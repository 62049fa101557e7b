import type { DatabaseSync } from "node:sqlite";
import { beginnerOf } from "../../core/rules/own-thread.ts";
import type { MessageStore, ThreadSummary } from "../../core/ports/messages.ts";
import { prepare, type Statement } from "./database.ts";
import { FairShare } from "./fair-share.ts";
import { THREAD_REFS } from "./messages.ts";
import { SUBJECT_COLUMN, subjectFrom, threadFrom } from "./rows.ts";

type ThreadsQuery = Parameters<MessageStore["threads"]>[0];
type ThreadsPage = Awaited<ReturnType<MessageStore["threads"]>>;

const WALK = "select ref, tenant, thread_id, id from message where ref < ? order by ref desc limit ?";
const NEWEST = `
  select max(ref) from (
    select max(ref) as ref from message where tenant = ?1 and thread_id = ?2 and thread_id <> ''
    union all select ref from message where tenant = ?1 and id = ?3 and thread_id = '')`;
// Some messages of a thread, after a ref. The message itself is read only where there is no delivery: rows
// with messages in them lie far apart, deliveries do not.
const PART = `
  select count(*), max(t.ref), total(d.state in ('held', 'available', 'leased')),
    json_group_array(distinct coalesce(d.sender, m.sender)),
    json_group_array(distinct coalesce(d.agent_id, m.recipient))
  from (${THREAD_REFS}) t
  left join delivery d on d.ref = t.ref left join message m on m.ref = t.ref and d.ref is null`;
const FIRST = `
  select m.accepted_at_ms, octet_length(m.json), ${SUBJECT_COLUMN} from (${THREAD_REFS}) t
  join message m on m.ref = t.ref`;
const ACCEPTED_AT = "select accepted_at_ms from message where ref = ?";

/** Messages looked at in one step. */
const WALK_ROWS = 200;
/** Messages of one thread that are counted in one step. */
const PART_ROWS = 1_000;

/** Threads are not stored: they are found by walking the messages back from the newest. */
export class Threads {
  readonly #walk: Statement;
  readonly #newest: Statement;
  readonly #part: Statement;
  readonly #first: Statement;
  readonly #acceptedAt: Statement;

  constructor(database: DatabaseSync) {
    this.#walk = prepare(database, WALK);
    this.#newest = prepare(database, NEWEST);
    this.#part = prepare(database, PART);
    this.#first = prepare(database, FIRST);
    this.#acceptedAt = prepare(database, ACCEPTED_AT);
  }

  async threads(query: ThreadsQuery): Promise<ThreadsPage> {
    const threads: ThreadSummary[] = [];
    const seen = new Set<string>();
    const share = new FairShare();
    let position = query.beforePosition;
    let budget = query.scanRowsMax;
    while (budget > 0) {
      const wanted = Math.min(budget, WALK_ROWS);
      const rows = this.#walk.all(position, wanted);
      for (const [ref, tenant, thread, id] of rows) {
        const threadId = threadFrom(thread, id);
        position = Number(ref);
        budget -= 1;
        if (tenant !== query.tenant || seen.has(threadId)) continue;
        seen.add(threadId);
        // A thread that has a newer message stood on an earlier page.
        if (this.#newest.get(tenant, threadId, beginnerOf(threadId) ?? null)?.[0] !== ref) continue;
        const census = await this.#count(query.tenant, threadId, share);
        budget -= census.messageCount;
        const isWanted = query.agent === undefined || census.participants.has(query.agent);
        if (isWanted) threads.push(await this.#summarise(query.tenant, threadId, position, census, share));
        if (threads.length >= query.limit || budget <= 0) return { threads, nextPosition: position };
      }
      if (rows.length < wanted) return { threads, nextPosition: undefined };
      await share.spend(rows.length);
    }
    return { threads, nextPosition: position };
  }

  /** In steps, because a thread may have any length. */
  async #count(tenant: string, threadId: string, share: FairShare): Promise<Census> {
    const participants = new Set<string>();
    let messageCount = 0;
    let openCount = 0;
    for (let position = 0; ;) {
      const [count, last, open, senders, recipients] =
        this.#part.get(tenant, threadId, beginnerOf(threadId) ?? null, position, PART_ROWS) ?? [];
      messageCount += Number(count);
      openCount += Number(open);
      for (const name of [...names(senders), ...names(recipients)]) participants.add(name);
      await share.spend(Number(count));
      if (Number(count) < PART_ROWS) return { messageCount, openCount, participants };
      position = Number(last);
    }
  }

  async #summarise(
    tenant: string,
    threadId: string,
    ref: number,
    { messageCount, openCount, participants }: Census,
    share: FairShare,
  ): Promise<ThreadSummary> {
    const lastAtMs = Number(this.#acceptedAt.get(ref)?.[0]);
    const [firstAtMs, bytes, subject] = this.#first.get(
      tenant,
      threadId,
      beginnerOf(threadId) ?? null,
      0,
      1,
    ) ?? [lastAtMs];
    await share.spend(1, Number(bytes ?? 0));
    return {
      threadId,
      lastPosition: ref,
      messageCount,
      openCount,
      firstAtMs: Number(firstAtMs),
      lastAtMs,
      participants: [...participants],
      subject: subjectFrom(subject),
    };
  }
}

interface Census {
  readonly messageCount: number;
  readonly openCount: number;
  readonly participants: ReadonlySet<string>;
}

function names(json: unknown): readonly string[] {
  return JSON.parse(String(json)) as readonly string[];
}
