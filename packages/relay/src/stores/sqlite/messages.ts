import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { AgentId } from "@a2a-relay/protocol";
import type {
  MessageRecord,
  SendKey,
  ThreadMessage,
  ThreadPage,
  ThreadQuery,
} from "../../core/ports/messages.ts";
import { beginnerOf } from "../../core/rules/own-thread.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import { RowInsert } from "./row-insert.ts";
import {
  deliveryColumns,
  deliveryFromRow,
  MESSAGE_COLUMN_COUNT,
  MESSAGE_COLUMNS,
  messageFromRow,
  SEND_KEY_COLUMNS,
  sendKeyFromRow,
  threadColumn,
} from "./rows.ts";

/**
 * The messages of a thread in order, up to a limit, which is the last parameter: those that name it, and the one that
 * began it, which is older than all of them.
 */
export const THREAD_REFS = `
  select ref from message where tenant = ?1 and thread_id = ?2 and thread_id <> '' and ref > ?4
  union all select ref from message where tenant = ?1 and id = ?3 and thread_id = '' and ref > ?4
  order by ref limit ?5`;

const SELECT = `select ${MESSAGE_COLUMNS} from message m where m.tenant = ? and m.id = ?`;
const SELECT_BY_REF = `select ${MESSAGE_COLUMNS} from message m where m.ref = ?`;
const REF = "select ref from message where tenant = ? and id = ?";
const SEND_KEY = `
  select ${SEND_KEY_COLUMNS} from send_key where tenant = ? and sender = ? and recipient = ? and key = ?`;
const THREAD = `
  select ${MESSAGE_COLUMNS}, ${deliveryColumns("d.")} from (${THREAD_REFS}) t
  join message m on m.ref = t.ref left join delivery d on d.ref = t.ref order by t.ref`;

const INSERT = {
  into: `insert into message
    (ref, tenant, id, sender, recipient, kind, thread_id, task_id, accepted_at_ms, send_keys_json, json,
      accepted_place)`,
  row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  onConflict: "on conflict do nothing",
  clash: "message_id",
} as const;
const INSERT_SEND_KEY = `
  insert into send_key (tenant, sender, recipient, key, digest, message_id, thread_id, task_id)
  values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`;

const NO_KEYS: ReadonlyMap<string, readonly SendKey[]> = new Map();

/** Messages, the keys under which they were sent, and the threads they make. */
export class Messages {
  readonly #ledger: Ledger;
  readonly #select: Statement;
  readonly #selectByRef: Statement;
  readonly #ref: Statement;
  readonly #sendKey: Statement;
  readonly #thread: Statement;
  readonly #insert: RowInsert;
  readonly #insertSendKey: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#select = prepare(database, SELECT);
    this.#selectByRef = prepare(database, SELECT_BY_REF);
    this.#ref = prepare(database, REF);
    this.#sendKey = prepare(database, SEND_KEY);
    this.#thread = prepare(database, THREAD);
    this.#insert = new RowInsert(database, INSERT);
    ledger.gather(this.#insert);
    this.#insertSendKey = prepare(database, INSERT_SEND_KEY);
  }

  message(tenant: string, id: string): MessageRecord | undefined {
    const row = this.#select.get(tenant, id);
    return row === undefined ? undefined : messageFromRow(row);
  }

  messageByRef(ref: number): MessageRecord {
    const row = this.#selectByRef.get(ref);
    if (row === undefined) throw new Error(`delivery ${ref} has lost its message`);
    return messageFromRow(row);
  }

  ref(tenant: string, id: string): number | undefined {
    return this.#ref.get(tenant, id)?.[0] as number | undefined;
  }

  sendKey(tenant: string, sender: AgentId, recipient: AgentId, key: string): SendKey | undefined {
    const row = this.#sendKey.get(tenant, sender, recipient, key);
    return row === undefined ? undefined : sendKeyFromRow(row);
  }

  /** Row by row: of what does not fit, no more than the first message is read. */
  thread({ tenant, threadId, limit, bytesMax }: ThreadQuery): ThreadPage {
    const messages: ThreadMessage[] = [];
    let bytesLeft = bytesMax;
    for (const row of this.#thread.iterate(tenant, threadId, beginnerOf(threadId) ?? null, 0, limit + 1)) {
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

  /**
   * Inside a commit. Answers each one's ref, which is also its place in the order of acceptance. `acceptances` are the
   * places of the events that say so, by the ids of the messages.
   */
  insertAll(
    messages: readonly MessageRecord[],
    sendKeys: readonly SendKey[],
    acceptances: ReadonlyMap<string, number>,
  ): ReadonlyMap<string, number> {
    const refs = new Map<string, number>();
    if (messages.length === 0) return refs;
    const keysOf = sendKeys.length === 0 ? NO_KEYS : Map.groupBy(sendKeys, (sendKey) => sendKey.messageId);
    for (const message of messages) {
      // Two places of one message in the mailbox could not be told apart when they are taken back.
      if (refs.has(message.id)) throw new ClashError("message_id");
      const ref = this.#ledger.nextPosition();
      refs.set(message.id, ref);
      this.#insert.add(messageValues(ref, message, keysOf.get(message.id), acceptances.get(message.id)));
    }
    return refs;
  }

  /** Inside a commit. */
  insertSendKey(sendKey: SendKey): void {
    const { changes } = this.#insertSendKey.run(
      sendKey.tenant,
      sendKey.sender,
      sendKey.recipient,
      sendKey.key,
      sendKey.digest,
      sendKey.messageId,
      sendKey.threadId,
      sendKey.taskId,
    );
    if (changes === 0) throw new ClashError("send_key");
  }
}

function messageValues(
  ref: number,
  message: MessageRecord,
  sendKeys: readonly SendKey[] | undefined,
  acceptedPlace: number | undefined,
): SQLInputValue[] {
  return [
    ref,
    message.tenant,
    message.id,
    message.sender,
    message.recipient,
    message.kind,
    threadColumn(message.threadId, message.id),
    message.taskId,
    message.acceptedAtMs,
    sendKeys === undefined ? null : sendKeysJson(sendKeys),
    message.json,
    acceptedPlace ?? null,
  ];
}

/** What is left of a send key in its message's row: enough to find it again. */
export type SendKeyName = readonly [sender: string, recipient: string, key: string];

function sendKeysJson(keys: readonly SendKey[]): string {
  const names: readonly SendKeyName[] = keys.map(({ sender, recipient, key }) => [sender, recipient, key]);
  return JSON.stringify(names);
}
