import type { SQLInputValue } from "node:sqlite";
import type { AgentId } from "@a2a-relay/protocol";
import type {
  MessageRecord,
  MessageStore,
  SendKey,
  ThreadMessage,
  ThreadPage,
  ThreadQuery,
  ThreadSummary,
} from "../../core/ports/messages.ts";
import { ClashError, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import {
  beginnerOf,
  deliveryColumns,
  deliveryFromRow,
  MESSAGE_COLUMN_COUNT,
  MESSAGE_COLUMNS,
  messageFromRow,
  ScanBudget,
  SUBJECT_COLUMN,
  subjectFrom,
  threadColumn,
  threadFrom,
} from "./rows.ts";
import type { StoreState } from "./store-state.ts";

type ThreadsQuery = Parameters<MessageStore["threads"]>[0];
type ThreadsPage = Awaited<ReturnType<MessageStore["threads"]>>;

/** Messages that the search for threads reads in one step. */
const SCAN_ROWS = 200;
/** Messages of one thread that are counted in one step. */
const COUNT_ROWS = 1_000;

/** The messages of a thread in order: those that name it, and the older one that began it. */
const THREAD_REFS = `
  select ref from message where tenant = ?1 and thread_id = ?2 and thread_id <> '' and ref > ?4
  union all select ref from message where tenant = ?1 and id = ?3 and thread_id = '' and ref > ?4
  order by ref limit ?5`;
const SEND_KEY_COLUMNS = "tenant, sender, recipient, key, digest, message_id, thread_id, task_id";

const SQL = {
  select: `select ${MESSAGE_COLUMNS} from message m where m.tenant = ? and m.id = ?`,
  ref: "select ref from message where tenant = ? and id = ?",
  insert: `
    insert into message
      (ref, tenant, id, sender, recipient, kind, thread_id, task_id, accepted_at_ms, send_keys_json, json,
        accepted_place)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
  remove: "delete from message where ref = ?",

  sendKey: `
    select ${SEND_KEY_COLUMNS} from send_key where tenant = ? and sender = ? and recipient = ? and key = ?`,
  insertSendKey: `
    insert into send_key (${SEND_KEY_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,

  thread: `
    select ${MESSAGE_COLUMNS}, ${deliveryColumns("d.")} from (${THREAD_REFS}) t
    join message m on m.ref = t.ref left join delivery d on d.ref = t.ref order by t.ref`,
  scan: "select ref, tenant, thread_id, id from message where ref < ? order by ref desc limit ?",
  newestOfThread: `
    select max(ref) from (
      select max(ref) as ref from message where tenant = ?1 and thread_id = ?2 and thread_id <> ''
      union all select ref from message where tenant = ?1 and id = ?3 and thread_id = '')`,
  // Reads the message only where it has no delivery: rows with long text lie far apart, deliveries do not.
  countThread: `
    select count(*), max(t.ref), total(d.state in ('held', 'available', 'leased')),
      json_group_array(distinct coalesce(d.sender, m.sender)),
      json_group_array(distinct coalesce(d.agent_id, m.recipient))
    from (${THREAD_REFS}) t
    left join delivery d on d.ref = t.ref left join message m on m.ref = t.ref and d.ref is null`,
  firstOfThread: `
    select m.accepted_at_ms, octet_length(m.json), ${SUBJECT_COLUMN} from (${THREAD_REFS}) t
    join message m on m.ref = t.ref`,
  acceptedAt: "select accepted_at_ms from message where ref = ?",
};

interface ThreadCount {
  readonly messageCount: number;
  readonly openCount: number;
  readonly participants: ReadonlySet<string>;
}

/** Messages, the keys under which they were sent, and their threads. */
export class Messages implements MessageStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, ids: readonly string[]): Promise<readonly (MessageRecord | undefined)[]> {
    return ids.map((id) => this.find(tenant, id));
  }

  async sendKey(
    tenant: string,
    sender: AgentId,
    recipient: AgentId,
    key: string,
  ): Promise<SendKey | undefined> {
    const row = this.#sql.sendKey.get(tenant, sender, recipient, key);
    return row === undefined ? undefined : sendKeyFromRow(row);
  }

  /** Reads row by row: of the messages that do not fit it reads only the first. */
  async thread({ tenant, threadId, limit, bytesMax }: ThreadQuery): Promise<ThreadPage> {
    const messages: ThreadMessage[] = [];
    let bytesLeft = bytesMax;
    for (const row of this.#sql.thread.iterate(...threadValues(tenant, threadId, 0, limit + 1))) {
      const message = messageFromRow(row);
      bytesLeft -= Buffer.byteLength(message.json);
      if (messages.length >= limit || (messages.length > 0 && bytesLeft < 0)) {
        return { messages, hasMore: true };
      }
      const hasDelivery = row[MESSAGE_COLUMN_COUNT] !== null;
      messages.push({
        message,
        delivery: hasDelivery ? deliveryFromRow(row, MESSAGE_COLUMN_COUNT) : undefined,
      });
    }
    return { messages, hasMore: false };
  }

  /** Threads have no table: this scans the messages back from the newest. */
  async threads(query: ThreadsQuery): Promise<ThreadsPage> {
    const threads: ThreadSummary[] = [];
    const seen = new Set<string>();
    const budget = new ScanBudget();
    let position = query.beforePosition;
    let rowsLeft = query.scanRowsMax;
    while (rowsLeft > 0) {
      const wanted = Math.min(rowsLeft, SCAN_ROWS);
      const rows = this.#sql.scan.all(position, wanted);
      for (const [ref, tenant, thread, id] of rows) {
        const threadId = threadFrom(thread, id);
        position = Number(ref);
        rowsLeft -= 1;
        if (tenant !== query.tenant || seen.has(threadId)) continue;
        seen.add(threadId);
        // An earlier page had the thread if it has a newer message.
        if (this.#sql.newestOfThread.get(tenant, threadId, beginnerIn(threadId))?.[0] !== ref) continue;
        const count = await this.#countThread(query.tenant, threadId, budget);
        rowsLeft -= count.messageCount;
        const isWanted = query.agent === undefined || count.participants.has(query.agent);
        if (isWanted) threads.push(await this.#summarise(query.tenant, threadId, position, count, budget));
        if (threads.length >= query.limit || rowsLeft <= 0) return { threads, nextPosition: position };
      }
      if (rows.length < wanted) return { threads, nextPosition: undefined };
      await budget.spend(rows.length);
    }
    return { threads, nextPosition: position };
  }

  find(tenant: string, id: string): MessageRecord | undefined {
    const row = this.#sql.select.get(tenant, id);
    return row === undefined ? undefined : messageFromRow(row);
  }

  /** The key of the message's row, which is also its position in the order of acceptance. */
  ref(tenant: string, id: string): number | undefined {
    return this.#sql.ref.get(tenant, id)?.[0] as number | undefined;
  }

  /** Answers the ref. `acceptanceKey` is the key of the event that says that the message was accepted. */
  insert(message: MessageRecord, sendKeys: readonly SendKey[], acceptanceKey: number | undefined): number {
    const ref = this.#state.nextPosition();
    const inserted = this.#sql.insert.run(
      ref,
      message.tenant,
      message.id,
      message.sender,
      message.recipient,
      message.kind,
      threadColumn(message.threadId, message.id),
      message.taskId,
      message.acceptedAtMs,
      sendKeys.length === 0 ? null : sendKeysJson(sendKeys),
      message.json,
      acceptanceKey ?? null,
    );
    if (inserted === 0) throw new ClashError("message_id");
    return ref;
  }

  insertSendKey(sendKey: SendKey): void {
    const inserted = this.#sql.insertSendKey.run(
      sendKey.tenant,
      sendKey.sender,
      sendKey.recipient,
      sendKey.key,
      sendKey.digest,
      sendKey.messageId,
      sendKey.threadId,
      sendKey.taskId,
    );
    if (inserted === 0) throw new ClashError("send_key");
  }

  remove(ref: number): void {
    this.#sql.remove.run(ref);
  }

  /** Counts in steps, because a thread may have any length. */
  async #countThread(tenant: string, threadId: string, budget: ScanBudget): Promise<ThreadCount> {
    const participants = new Set<string>();
    let messageCount = 0;
    let openCount = 0;
    for (let position = 0; ;) {
      const [count, last, open, senders, recipients] =
        this.#sql.countThread.get(...threadValues(tenant, threadId, position, COUNT_ROWS)) ?? [];
      messageCount += Number(count);
      openCount += Number(open);
      for (const name of [...names(senders), ...names(recipients)]) participants.add(name);
      await budget.spend(Number(count));
      if (Number(count) < COUNT_ROWS) return { messageCount, openCount, participants };
      position = Number(last);
    }
  }

  async #summarise(
    tenant: string,
    threadId: string,
    ref: number,
    { messageCount, openCount, participants }: ThreadCount,
    budget: ScanBudget,
  ): Promise<ThreadSummary> {
    const lastAtMs = Number(this.#sql.acceptedAt.get(ref)?.[0]);
    const first = this.#sql.firstOfThread.get(...threadValues(tenant, threadId, 0, 1));
    const [firstAtMs, bytes, subject] = first ?? [lastAtMs];
    await budget.spend(1, Number(bytes ?? 0));
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

/** The parameters of `THREAD_REFS`. */
function threadValues(tenant: string, threadId: string, afterRef: number, limit: number): SQLInputValue[] {
  return [tenant, threadId, beginnerIn(threadId), afterRef, limit];
}

function beginnerIn(threadId: string): string | null {
  return beginnerOf(threadId) ?? null;
}

function sendKeyFromRow(row: Row): SendKey {
  return {
    tenant: row[0] as string,
    sender: row[1] as AgentId,
    recipient: row[2] as AgentId,
    key: row[3] as string,
    digest: row[4] as string,
    messageId: row[5] as string,
    threadId: row[6] as string,
    taskId: row[7] as string | null,
  };
}

/** What the row of a message keeps of its send keys: enough to find them again. */
export type SendKeyName = readonly [sender: string, recipient: string, key: string];

function sendKeysJson(keys: readonly SendKey[]): string {
  return JSON.stringify(keys.map(({ sender, recipient, key }): SendKeyName => [sender, recipient, key]));
}

function names(json: unknown): readonly string[] {
  return JSON.parse(String(json)) as readonly string[];
}
