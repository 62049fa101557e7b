import type { AgentId, MessageKind } from "@a2a-relay/protocol";
import type {
  MessageRecord,
  MessageStore,
  SendKey,
  ThreadPage,
  ThreadQuery,
  ThreadSummary,
} from "../../core/ports/messages.ts";
import type { StoredJson } from "../../core/ports/stored-json.ts";
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import { deliveryFromRow } from "./deliveries.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { insertAll } from "./table.ts";

type ThreadsQuery = Parameters<MessageStore["threads"]>[0];
type ThreadsPage = Awaited<ReturnType<MessageStore["threads"]>>;

/** Messages that the search for threads reads in one step. */
const SCAN_ROWS = 200;
/** Threads that are counted in one step, and the messages of each. */
const COUNT_THREADS = 20;
const COUNT_ROWS = 1_000;

const MESSAGE_COLUMNS = "tenant, ref, id, sender, recipient, kind, thread_id, task_id, accepted_at_ms, json";
const SEND_KEY_COLUMNS = [
  "tenant",
  "key",
  "sender",
  "recipient",
  "digest",
  "message_id",
  "thread_id",
  "task_id",
];

const SQL = {
  // A message whose key exists is not written.
  insert: `
    with fresh as materialized (
      select r.*, next_of_day('message_ref') as new_ref from json_populate_recordset(null::message, $1) r),
    keys as (
      insert into message_key (tenant, id, thread_id, ref)
      select tenant, id, thread_id, new_ref from fresh on conflict do nothing returning 1),
    messages as (
      insert into message (${MESSAGE_COLUMNS})
      select ${MESSAGE_COLUMNS.replace("ref", "new_ref")} from fresh)
    select count(*) as written from keys`,
  messages: `
    select m.* from message_key k join message m on m.tenant = k.tenant and m.ref = k.ref
    where k.tenant = $1 and k.id = any ($2)`,
  sendKey: "select * from send_key where tenant = $1 and key = $2 and sender = $3 and recipient = $4",
  // Reads only the lengths of those that do not fit.
  thread: `
    select m.*, to_json(d) as delivery from (
      select read.*, count(*) over () as read_count, row_number() over (order by ref) as n,
        sum(octet_length(json)) over (order by ref) as bytes
      from (
        select m.* from (
          select * from message_key where tenant = $1 and thread_id = $2 order by ref limit $3::bigint + 1) k
        join message m on m.tenant = k.tenant and m.ref = k.ref) read) m
    left join lateral (${deliveryOf("m")}) d on true
    where m.n = 1 or m.n <= $3 and m.bytes <= $4
    order by m.ref`,
  // An earlier page had the thread if it has a newer message.
  scan: `
    select m.ref, m.thread_id,
      exists (select 1 from message_key k where k.tenant = $1 and k.id = m.id)
        and not exists (
          select 1 from message_key newer
          where newer.tenant = $1 and newer.thread_id = m.thread_id and newer.ref > m.ref) as is_newest
    from message m where m.tenant = $1 and m.ref < $2 order by m.ref desc limit $3`,
  count: `
    select t.thread_id, c.* from unnest($2::text[]) as t (thread_id)
    cross join lateral (
      select count(*) as message_count, max(m.ref) as last_ref,
        count(*) filter (where d.state in ('held', 'available', 'leased')) as open_count,
        array_agg(distinct coalesce(d.sender, m.sender)) as senders,
        array_agg(distinct coalesce(d.agent_id, m.recipient)) as recipients
      from (
        select * from message_key
        where tenant = $1 and thread_id = t.thread_id and ref > $3 order by ref limit ${COUNT_ROWS}) k
      join message m on m.tenant = k.tenant and m.ref = k.ref
      left join lateral (${deliveryOf("m")}) d on true) c`,
  // PostgreSQL refuses to read JSON with some escapes, as of U+0000: then the whole message is the answer.
  ends: `
    select t.thread_id, first.accepted_at_ms as first_at_ms, last.accepted_at_ms as last_at_ms,
      case when strpos(first.json, '\\u') = 0 then first.json::json ->> 'subject' end as subject,
      case when strpos(first.json, '\\u') > 0 then first.json end as json
    from unnest($2::text[], $3::bigint[]) as t (thread_id, ref)
    join message last on last.tenant = $1 and last.ref = t.ref
    cross join lateral (
      select ref from message_key
      where tenant = $1 and thread_id = t.thread_id order by ref limit 1) oldest
    join message first on first.tenant = $1 and first.ref = oldest.ref`,
};

/** The delivery of a message, open or settled. */
function deliveryOf(message: string): string {
  return `
    select * from any_delivery d
    where d.tenant = ${message}.tenant and d.message_id = ${message}.id and d.ref = ${message}.ref`;
}

interface ThreadCount {
  readonly messageCount: number;
  readonly openCount: number;
  readonly participants: ReadonlySet<string>;
}

interface FoundThread extends ThreadCount {
  readonly threadId: string;
  readonly lastPosition: number;
}

/** Messages, the keys under which they were sent, and their threads. */
export class Messages implements MessageStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, ids: readonly string[]): Promise<readonly (MessageRecord | undefined)[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.messages, [tenant, ids]);
    const messages = new Map(rows.map((row) => [row["id"], messageFromRow(row)]));
    return ids.map((id) => messages.get(id));
  }

  async sendKey(
    tenant: string,
    sender: AgentId,
    recipient: AgentId,
    key: string,
  ): Promise<SendKey | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.sendKey, [tenant, key, sender, recipient]);
    return row === undefined ? undefined : sendKeyFromRow(row);
  }

  async thread({ tenant, threadId, limit, bytesMax }: ThreadQuery): Promise<ThreadPage> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.thread, [tenant, threadId, limit, bytesMax]);
    const messages = rows.map((row) => ({
      message: messageFromRow(row),
      delivery: row["delivery"] === null ? undefined : deliveryFromRow(row["delivery"] as Row),
    }));
    return { messages, hasMore: Number(rows[0]?.["read_count"] ?? 0) > messages.length };
  }

  /** Threads have no table: this scans the messages back from the newest. */
  async threads(query: ThreadsQuery): Promise<ThreadsPage> {
    const { tenant, agent, limit } = query;
    const found: FoundThread[] = [];
    let lastPosition = query.beforePosition;
    let rowsLeft = query.scanRowsMax;
    while (rowsLeft > 0) {
      const wanted = Math.min(rowsLeft, SCAN_ROWS);
      const rows = await this.#database.ofTenant(tenant).rows(SQL.scan, [tenant, lastPosition, wanted]);
      const uncounted = rows.filter((row) => row["is_newest"]).map((row) => row["thread_id"] as string);
      let counts = new Map<string, ThreadCount>();
      for (const row of rows) {
        const threadId = row["thread_id"] as string;
        lastPosition = row["ref"] as number;
        rowsLeft -= 1;
        if (row["is_newest"] !== true) continue;
        if (!counts.has(threadId)) {
          counts = await this.#countThreads(tenant, uncounted.splice(0, COUNT_THREADS));
        }
        const count = counts.get(threadId);
        if (count === undefined) continue;
        rowsLeft -= count.messageCount;
        if (agent === undefined || count.participants.has(agent)) {
          found.push({ threadId, lastPosition, ...count });
        }
        if (found.length >= limit || rowsLeft <= 0) {
          return { threads: await this.#summarise(tenant, found), nextPosition: lastPosition };
        }
      }
      if (rows.length < wanted) {
        return { threads: await this.#summarise(tenant, found), nextPosition: undefined };
      }
    }
    return { threads: await this.#summarise(tenant, found), nextPosition: lastPosition };
  }

  async insertSendKeys(transaction: Transaction, sendKeys: readonly SendKey[]): Promise<void> {
    const rows = sendKeys.map((sendKey) => ({
      tenant: sendKey.tenant,
      key: sendKey.key,
      sender: sendKey.sender,
      recipient: sendKey.recipient,
      digest: sendKey.digest,
      message_id: sendKey.messageId,
      thread_id: sendKey.threadId,
      task_id: sendKey.taskId,
    }));
    // Two relays that insert the same keys in the same order wait for each other, but not in a circle.
    const sorted = rows.toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
    await insertAll(transaction, { name: "send_key", clash: "send_key" }, sorted, SEND_KEY_COLUMNS);
  }

  async insertAll(transaction: Transaction, messages: readonly MessageRecord[]): Promise<void> {
    const rows = messages.map((message) => ({
      tenant: message.tenant,
      id: message.id,
      sender: message.sender,
      recipient: message.recipient,
      kind: message.kind,
      thread_id: message.threadId,
      task_id: message.taskId,
      accepted_at_ms: message.acceptedAtMs,
      json: message.json,
    }));
    if (rows.length === 0) return;
    const result = await transaction.row(SQL.insert, [JSON.stringify(rows)]);
    if (result?.["written"] !== rows.length) throw new ClashError("message_id");
  }

  async #countThreads(tenant: string, threadIds: readonly string[]): Promise<Map<string, ThreadCount>> {
    const counts = new Map<string, ThreadCount>();
    for (const row of await this.#database.ofTenant(tenant).rows(SQL.count, [tenant, threadIds, 0])) {
      const threadId = row["thread_id"] as string;
      counts.set(threadId, await this.#countRest(tenant, threadId, row));
    }
    return counts;
  }

  /** Goes on in steps, because a thread may have any length. */
  async #countRest(tenant: string, threadId: string, firstStep: Row): Promise<ThreadCount> {
    const participants = new Set<string>();
    let messageCount = 0;
    let openCount = 0;
    let step: Row | undefined = firstStep;
    while (step !== undefined) {
      const count = step["message_count"] as number;
      messageCount += count;
      openCount += step["open_count"] as number;
      for (const name of [...names(step["senders"]), ...names(step["recipients"])]) participants.add(name);
      if (count < COUNT_ROWS) break;
      step = await this.#database.ofTenant(tenant).row(SQL.count, [tenant, [threadId], step["last_ref"]]);
    }
    return { messageCount, openCount, participants };
  }

  async #summarise(tenant: string, found: readonly FoundThread[]): Promise<readonly ThreadSummary[]> {
    if (found.length === 0) return [];
    const ids = found.map(({ threadId }) => threadId);
    const refs = found.map(({ lastPosition }) => lastPosition);
    const rows = await this.#database.ofTenant(tenant).rows(SQL.ends, [tenant, ids, refs]);
    const ends = new Map(rows.map((row) => [row["thread_id"], row]));
    return found.flatMap((thread) => {
      const row = ends.get(thread.threadId);
      // It was removed meanwhile.
      if (row === undefined) return [];
      return {
        ...thread,
        firstAtMs: row["first_at_ms"] as number,
        lastAtMs: row["last_at_ms"] as number,
        participants: [...thread.participants],
        subject: subjectFrom(row),
      };
    });
  }
}

function messageFromRow(row: Row): MessageRecord {
  return {
    tenant: row["tenant"] as string,
    id: row["id"] as string,
    sender: row["sender"] as AgentId,
    recipient: row["recipient"] as AgentId,
    kind: row["kind"] as MessageKind,
    threadId: row["thread_id"] as string,
    taskId: row["task_id"] as string | null,
    acceptedAtMs: row["accepted_at_ms"] as number,
    json: row["json"] as StoredJson,
  };
}

function sendKeyFromRow(row: Row): SendKey {
  return {
    tenant: row["tenant"] as string,
    sender: row["sender"] as AgentId,
    recipient: row["recipient"] as AgentId,
    key: row["key"] as string,
    digest: row["digest"] as string,
    messageId: row["message_id"] as string,
    threadId: row["thread_id"] as string,
    taskId: row["task_id"] as string | null,
  };
}

function subjectFrom(row: Row): string {
  if (typeof row["json"] !== "string") return (row["subject"] ?? "") as string;
  return (JSON.parse(row["json"]) as { readonly subject?: string }).subject ?? "";
}

function names(list: unknown): readonly string[] {
  return (list ?? []) as readonly string[];
}
