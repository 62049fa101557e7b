import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import { GENESIS } from "../../core/rules/event.ts";
import {
  IMPORT_TABLE,
  type OpenDatabase,
  openDatabase,
  openForReading,
  type Row,
  Statement,
} from "../sqlite/database.ts";
import { CHAIN_SPAN } from "../sqlite/journal.ts";
import { threadColumn, threadFrom } from "../sqlite/rows.ts";
import {
  hasData,
  RECORD_KIND_NAMES,
  RECORD_KINDS,
  type RecordKindName,
  type RecordValue,
  type TransferHeader,
  type TransferProgress,
  type TransferRecord,
  type TransferSource,
  type TransferTarget,
} from "./records.ts";

type RecordRow = TransferRecord["row"];

const POSITION = `
  select max(position) from (select position from store_head union all select position from chain_head)`;
const CHAINS = `
  select h.tenant, h.seq, h.hash, a.seq, a.hash
  from chain_head h left join chain_anchor a on a.tenant = h.tenant order by h.tenant`;
const EVENTS = `
  select h.tenant, e.seq, type, at_ms, actor, agent_id, coalesce(message_id, accepted_id), task_id, thread_id,
    data_json, lower(hex(previous_hash)), lower(hex(e.hash))
  from chain_head h
  join event e on e.rowid > h.number * ${CHAIN_SPAN} and e.rowid < (h.number + 1) * ${CHAIN_SPAN}
  where h.tenant = ? order by e.rowid`;

/** The message whose thread stands in the row as '' (see `threadColumn`), by the column with its id. */
const THREAD_OF: Partial<Record<RecordKindName, string>> = {
  message: "id",
  delivery: "message_id",
  task: "message_id",
};

/** Reads all of a database at one moment, also beside the relay that uses it. */
export async function readSqlite<T>(path: string, act: (source: TransferSource) => Promise<T>): Promise<T> {
  const database = openForReading(path);
  try {
    database.exec("begin");
    return await act(sourceOn(database));
  } finally {
    database.close();
  }
}

function sourceOn(database: DatabaseSync): TransferSource {
  const chains = new Statement(database, CHAINS).all().map((row) => ({
    tenant: row[0] as string,
    head: { seq: row[1] as number, hash: row[2] as string },
    start: row[3] === null ? GENESIS : { seq: row[3] as number, hash: row[4] as string },
  }));
  const position = Number(new Statement(database, POSITION).get()?.[0]);
  return {
    header: { position, chains },
    async *records() {
      for (const kind of RECORD_KIND_NAMES) {
        if (kind !== "event") yield* recordsOf(database, kind);
      }
      for (const { tenant } of chains) yield* eventsOf(database, tenant);
    },
  };
}

function* recordsOf(database: DatabaseSync, kind: RecordKindName): Iterable<TransferRecord> {
  const { columns, key = ["ref"] } = RECORD_KINDS[kind];
  const order = key.length === 0 ? "" : `order by ${key.join(", ")}`;
  const statement = new Statement(database, `select ${columns.join(", ")} from ${kind} ${order}`);
  const threadOf = THREAD_OF[kind];
  for (const values of statement.iterate()) {
    const row = rowOf(columns, values);
    const threadId = threadOf === undefined ? {} : { thread_id: threadFrom(row["thread_id"], row[threadOf]) };
    yield { kind, row: { ...row, ...threadId } };
  }
}

function* eventsOf(database: DatabaseSync, tenant: string): Iterable<TransferRecord> {
  for (const values of new Statement(database, EVENTS).iterate(tenant)) {
    yield { kind: "event", row: rowOf(RECORD_KINDS.event.columns, values) };
  }
}

function rowOf(columns: readonly string[], values: Row): RecordRow {
  return Object.fromEntries(columns.map((column, index) => [column, values[index] as RecordValue]));
}

/** How kinds are inserted whose records are not the rows of a table, with their columns as values. */
const SPECIAL_INSERTS: Partial<Record<RecordKindName, string>> = {
  relay_identity: "insert into relay_identity (only_row, private_key) values (1, ?)",
  // Without the message nothing is inserted.
  delivery: `
    insert into delivery (${RECORD_KINDS.delivery.columns.join(", ")}, ref)
    select ${parametersOf("delivery")}, ref from message where tenant = ?1 and id = ?2`,
  event: `
    insert into event
      (rowid, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json, previous_hash, hash)
    select number * ${CHAIN_SPAN} + ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, unhex(?11), unhex(?12)
    from chain_head where tenant = ?1 and ?2 between 1 and ${CHAIN_SPAN - 1}`,
};

const SQL = {
  isBegun: "select 1 from sqlite_schema where name = ?",
  // The row with which a database begins.
  otherTenants: "select 1 from tenant where id <> 'default' or version <> 1 or capabilities <> 0",
  createProgress: `create table ${IMPORT_TABLE} (lines integer not null, digest text not null) strict`,
  insertProgress: `insert into ${IMPORT_TABLE} (lines, digest) values (?, ?)`,
  progress: `select lines, digest from ${IMPORT_TABLE}`,
  saveProgress: `update ${IMPORT_TABLE} set lines = ?, digest = ?`,
  removeProgress: `drop table ${IMPORT_TABLE}`,
  chainHead: "insert into chain_head (tenant, seq, hash, number) values (?, ?, ?, ?)",
  chainStart: "insert into chain_anchor (tenant, seq, hash) values (?, ?, ?)",
  // Retention finds the keys of a message in its row.
  nameSendKey: `
    update message set send_keys_json = json_insert(coalesce(send_keys_json, '[]'), '$[#]', json_array(?, ?, ?))
    where tenant = ? and id = ?`,
  // One counter for the positions of deliveries and the refs of messages.
  savePosition: "update store_head set position = max(?, coalesce((select max(ref) from message), 0))",
};

/** A new database, which no relay uses meanwhile. */
export class SqliteTarget implements TransferTarget {
  readonly #open: OpenDatabase;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string) {
    this.#open = openDatabase({ path, isImport: true });
  }

  async progress(): Promise<TransferProgress | undefined> {
    if (this.#sql(SQL.isBegun).get(IMPORT_TABLE) !== undefined) {
      const [lines, digest] = this.#sql(SQL.progress).get() ?? [];
      return { lines: lines as number, digest: digest as string };
    }
    for (const kind of RECORD_KIND_NAMES) {
      const sql = kind === "tenant" ? SQL.otherTenants : `select 1 from ${kind} limit 1`;
      if (this.#sql(sql).get() !== undefined) throw hasData(kind);
    }
    return undefined;
  }

  async begin({ chains }: TransferHeader, { lines, digest }: TransferProgress): Promise<void> {
    this.#transaction(() => {
      this.#sql(SQL.createProgress).run();
      this.#sql(SQL.insertProgress).run(lines, digest);
      this.#sql("delete from tenant").run();
      for (const [number, { tenant, head, start }] of chains.entries()) {
        this.#sql(SQL.chainHead).run(tenant, head.seq, head.hash, number);
        if (start.seq > 0) this.#sql(SQL.chainStart).run(tenant, start.seq, start.hash);
      }
    });
  }

  async write(records: readonly TransferRecord[], { lines, digest }: TransferProgress): Promise<void> {
    this.#transaction(() => {
      for (const record of records) this.#insert(record);
      this.#sql(SQL.saveProgress).run(lines, digest);
    });
    // The relay's own settings leave this to it.
    this.#open.database.exec("pragma wal_checkpoint(passive)");
  }

  async complete({ position }: TransferHeader): Promise<void> {
    this.#sql(SQL.savePosition).run(position);
  }

  async end(): Promise<void> {
    this.#sql(SQL.removeProgress).run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#open.database.close();
    this.#open.lock?.[Symbol.dispose]();
  }

  #insert({ kind, row }: TransferRecord): void {
    const threadOf = THREAD_OF[kind];
    const stored =
      threadOf === undefined
        ? row
        : { ...row, thread_id: threadColumn(String(row["thread_id"]), String(row[threadOf])) };
    const values = RECORD_KINDS[kind].columns.map((column) => stored[column] ?? null);
    if (this.#sql(SPECIAL_INSERTS[kind] ?? insertSql(kind)).run(...values) !== 1) {
      const missing = kind === "event" ? "its tenant is not in the header" : "its message is not in the file";
      throw new RelayError("invalid_argument", `a record of the kind ${kind} cannot be kept: ${missing}`);
    }
    if (kind !== "send_key" || row["gone_at_ms"] !== null) return;
    const { sender = null, recipient = null, key = null, tenant = null, message_id: messageId = null } = row;
    this.#sql(SQL.nameSendKey).run(sender, recipient, key, tenant, messageId);
  }

  #transaction(act: () => void): void {
    const { database } = this.#open;
    database.exec("begin immediate");
    try {
      act();
      this.#sql("commit").run();
    } catch (error) {
      if (database.isTransaction) database.exec("rollback");
      throw error;
    }
  }

  /** Prepared once, when it is first used. */
  #sql(text: string): Statement {
    const prepared = this.#statements.get(text);
    if (prepared !== undefined) return prepared;
    const statement = new Statement(this.#open.database, text);
    this.#statements.set(text, statement);
    return statement;
  }
}

function insertSql(kind: RecordKindName): string {
  return `insert into ${kind} (${RECORD_KINDS[kind].columns.join(", ")}) values (${parametersOf(kind)})`;
}

function parametersOf(kind: RecordKindName): string {
  return RECORD_KINDS[kind].columns.map((_, index) => `?${index + 1}`).join(", ");
}
