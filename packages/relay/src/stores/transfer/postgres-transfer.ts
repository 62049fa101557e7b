import { RelayError } from "@a2a-relay/protocol";
import { GENESIS } from "../../core/rules/event.ts";
import {
  type ConnectionOptions,
  Database,
  databaseName,
  type Row,
  type Transaction,
  withConnection,
} from "../postgres/database.ts";
import { Journal } from "../postgres/journal.ts";
import { IMPORT_TABLE, readSchema } from "../postgres/migrations/migrations.ts";
import { Partitions } from "../postgres/partitions.ts";
import { relayErrorFrom } from "../postgres/connections/postgres-error.ts";
import {
  hasData,
  RECORD_KIND_NAMES,
  RECORD_KINDS,
  type RecordKindName,
  type TransferHeader,
  type TransferProgress,
  type TransferRecord,
  type TransferSource,
  type TransferTarget,
} from "./records.ts";

/** Rows of one page: a few megabytes, unless messages are very long. */
const PAGE_ROWS = 100;
/** One reads, one locks, one seals. */
const CONNECTIONS = 3;

const MESSAGE = RECORD_KINDS.message.columns;
const DELIVERY = RECORD_KINDS.delivery.columns;

/** How kinds are read whose records are not the rows of a table. */
const SPECIAL_READS: Partial<Record<RecordKindName, string>> = {
  message: `
    select ${listOf(MESSAGE, "m.")}
    from message_key k join message m on m.tenant = k.tenant and m.ref = k.ref order by k.ref`,
  delivery: `
    select ${listOf(DELIVERY, "d.")}
    from message_key k join any_delivery d on d.tenant = k.tenant and d.message_id = k.id and d.ref = k.ref
    order by k.ref`,
  event: `
    select s.tenant, s.seq, e.type, e.at_ms, e.actor, e.agent_id, e.message_id, e.task_id, e.thread_id, e.data_json,
      s.previous_hash, s.hash
    from event_seal s join event e on e.position = s.position order by s.tenant, s.seq`,
};

/**
 * How kinds are inserted whose records are not the rows of a table, from JSON. Each returns a row for a record.
 * Messages and events are of the day of the import, whatever their age: no event is of a day before its message.
 */
const SPECIAL_INSERTS: Partial<Record<RecordKindName, string>> = {
  relay_identity: `
    insert into relay_identity (only_row, private_key)
    select 1, private_key from json_populate_recordset(null::relay_identity, $1)`,
  message: `
    with record as materialized (
      select next_of_day('message_ref') as new_ref, r.* from json_populate_recordset(null::message, $1) r),
    keys as (
      insert into message_key (tenant, id, thread_id, ref) select tenant, id, thread_id, new_ref from record)
    insert into message (${listOf(MESSAGE)}, ref) select ${listOf(MESSAGE)}, new_ref from record`,
  delivery: `
    with record as materialized (
      select k.ref as message_ref, r.*, r.state in ('held', 'available', 'leased') as is_open
      from json_populate_recordset(null::delivery, $1) r
      join message_key k on k.tenant = r.tenant and k.id = r.message_id),
    mailboxes as (
      insert into mailbox (tenant, agent_id, open_count)
      select tenant, agent_id, count(*) from record where is_open group by tenant, agent_id
      on conflict (tenant, agent_id) do update set open_count = mailbox.open_count + excluded.open_count),
    opened as (
      insert into delivery (${listOf(DELIVERY)}, ref)
      select ${listOf(DELIVERY)}, message_ref from record where is_open returning 1),
    settled as (
      insert into settled_delivery (${listOf(DELIVERY)}, ref)
      select ${listOf(DELIVERY)}, message_ref from record where not is_open returning 1)
    select from opened union all select from settled`,
  // Sealed, whatever the numbers of the transactions of this server.
  event: `
    with record as materialized (
      select next_of_day('event_position') as position, r.*
      from json_to_recordset($1) as r (tenant text, seq bigint, type text, at_ms bigint, actor text, agent_id text,
        message_id text, task_id text, thread_id text, data_json text, previous_hash text, hash text)),
    seals as (
      insert into event_seal (tenant, seq, position, previous_hash, hash)
      select tenant, seq, position, previous_hash, hash from record)
    insert into event
      (position, xid, tenant, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json)
    select position, '0'::xid8, tenant, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json
    from record`,
};

const SQL = {
  // The file may be a pipe whose reader is slow.
  oneMoment: `
    set transaction isolation level repeatable read, read only;
    set local idle_in_transaction_session_timeout = 0`,
  // Writers of events end first, and the next wait.
  stopWriters: "lock table event in share mode",
  chains: `
    select h.tenant, h.seq, h.hash, s.seq as start_seq, s.hash as start_hash
    from chain_head h left join chain_start s on s.tenant = h.tenant order by h.tenant`,
  position: "select case when is_called then last_value else 0 end as position from delivery_position",

  isBegun: "select 1 from pg_tables where schemaname = $1 and tablename = $2",
  // The row with which a database begins.
  otherTenants: "select 1 from tenant where id <> 'default' or version <> 1 or capabilities <> 0 limit 1",
  createProgress: `
    create table ${IMPORT_TABLE} (lines bigint not null, digest text not null);
    delete from tenant`,
  insertProgress: `insert into ${IMPORT_TABLE} (lines, digest) values ($1, $2)`,
  progress: `select lines, digest from ${IMPORT_TABLE}`,
  saveProgress: `update ${IMPORT_TABLE} set lines = $3, digest = $4 where lines = $1 and digest = $2`,
  removeProgress: `drop table ${IMPORT_TABLE}`,
  chainHeads: `
    insert into chain_head (tenant, seq, hash)
    select tenant, seq, hash from json_populate_recordset(null::chain_head, $1)`,
  chainStarts: `
    insert into chain_start (tenant, seq, hash)
    select tenant, seq, hash from json_populate_recordset(null::chain_start, $1)`,
  savePosition: "select setval('delivery_position', greatest($1::bigint, 1), $1 > 0)",
};

/** Reads all of a database at one moment. Relays may go on; their writes wait until the moment is fixed. */
export async function readPostgres<T>(
  options: ConnectionOptions,
  act: (source: TransferSource) => Promise<T>,
): Promise<T> {
  await refuseOtherSchema(options);
  await using database = await Database.open({ ...options, poolMax: CONNECTIONS });
  const journal = new Journal({ database });
  return await database.transaction(async (reader) => {
    await reader.script(SQL.oneMoment);
    while (await journal.seal());
    const header = await database.transaction(async (writers) => {
      await writers.script(SQL.stopWriters);
      while (await journal.seal());
      // The first statement fixes the moment.
      return readHeader(reader);
    });
    return act({ header, records: () => readRecords(reader) });
  });
}

/** `Database.open` would create the tables in an empty database. */
async function refuseOtherSchema(options: ConnectionOptions): Promise<void> {
  const { isEmpty } = await withConnection(options, readSchema);
  if (!isEmpty) return;
  const what = `the database ${databaseName(options.url)} has no tables of a relay`;
  throw new RelayError("unavailable", `${what}; is it the right one?`);
}

async function readHeader(reader: Transaction): Promise<TransferHeader> {
  const chains = await reader.rows(SQL.chains);
  const position = await reader.row(SQL.position);
  return {
    position: position?.["position"] as number,
    chains: chains.map((row) => ({
      tenant: row["tenant"] as string,
      head: { seq: row["seq"] as number, hash: row["hash"] as string },
      start:
        row["start_seq"] === null
          ? GENESIS
          : { seq: row["start_seq"] as number, hash: row["start_hash"] as string },
    })),
  };
}

async function* readRecords(reader: Transaction): AsyncGenerator<TransferRecord, void, void> {
  for (const kind of RECORD_KIND_NAMES) {
    const cursor = `all_of_${kind}`;
    await reader.script(`declare ${cursor} no scroll cursor for ${SPECIAL_READS[kind] ?? readSql(kind)}`);
    for (let rows: readonly Row[] | undefined; rows?.length !== 0;) {
      rows = await reader.rows(`fetch ${PAGE_ROWS} from ${cursor}`);
      for (const row of rows) yield { kind, row: row as TransferRecord["row"] };
    }
    await reader.script(`close ${cursor}`);
  }
}

function readSql(kind: RecordKindName): string {
  const { columns, key = [] } = RECORD_KINDS[kind];
  const order = key.length === 0 ? "" : `order by ${key.join(", ")}`;
  return `select ${listOf(columns)} from ${kind} ${order}`;
}

/** An empty database, or one with a part of an import. */
export class PostgresTarget implements TransferTarget {
  readonly #database: Database;
  #progress: TransferProgress = { lines: 0, digest: "" };

  private constructor(database: Database) {
    this.#database = database;
  }

  static async open(options: ConnectionOptions): Promise<PostgresTarget> {
    const database = await Database.open({ ...options, poolMax: 1, isImport: true });
    await new Partitions(database).add();
    return new PostgresTarget(database);
  }

  async progress(): Promise<TransferProgress | undefined> {
    const { schema } = this.#database;
    if ((await this.#database.row(SQL.isBegun, [schema, IMPORT_TABLE])) !== undefined) {
      const row = await this.#database.row(SQL.progress);
      this.#progress = { lines: row?.["lines"] as number, digest: row?.["digest"] as string };
      return this.#progress;
    }
    for (const kind of RECORD_KIND_NAMES) {
      const sql = kind === "tenant" ? SQL.otherTenants : `select 1 from ${kind} limit 1`;
      if ((await this.#database.row(sql)) !== undefined) throw hasData(kind);
    }
    return undefined;
  }

  async begin({ chains }: TransferHeader, progress: TransferProgress): Promise<void> {
    const heads = chains.map(({ tenant, head }) => ({ tenant, ...head }));
    const starts = chains.flatMap(({ tenant, start }) => (start.seq === 0 ? [] : [{ tenant, ...start }]));
    await this.#transaction(async (transaction) => {
      await transaction.script(SQL.createProgress);
      await transaction.run(SQL.insertProgress, [progress.lines, progress.digest]);
      await transaction.run(SQL.chainHeads, [JSON.stringify(heads)]);
      await transaction.run(SQL.chainStarts, [JSON.stringify(starts)]);
    });
    this.#progress = progress;
  }

  async write(records: readonly TransferRecord[], progress: TransferProgress): Promise<void> {
    const { lines, digest } = this.#progress;
    await this.#transaction(async (transaction) => {
      const isBegun = (await transaction.row(SQL.isBegun, [transaction.schema, IMPORT_TABLE])) !== undefined;
      const values = [lines, digest, progress.lines, progress.digest];
      if (!isBegun || (await transaction.run(SQL.saveProgress, values)) !== 1) {
        throw new RelayError("conflict", "another import has written to the same database; run only one");
      }
      for (const [kind, rows] of rowsByKind(records)) await insertAll(transaction, kind, rows);
    });
    this.#progress = progress;
  }

  async complete({ position }: TransferHeader): Promise<void> {
    await this.#database.rows(SQL.savePosition, [position]);
  }

  async end(): Promise<void> {
    await this.#database.rows(SQL.removeProgress);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]();
  }

  async #transaction(act: (transaction: Transaction) => Promise<void>): Promise<void> {
    try {
      await this.#database.transaction(act);
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }
}

/** In an export the records of a kind stand together. */
function rowsByKind(records: readonly TransferRecord[]): ReadonlyMap<RecordKindName, readonly Row[]> {
  const byKind = Map.groupBy(records, ({ kind }) => kind);
  return new Map([...byKind].map(([kind, ofKind]) => [kind, ofKind.map(({ row }) => row)]));
}

async function insertAll(
  transaction: Transaction,
  kind: RecordKindName,
  rows: readonly Row[],
): Promise<void> {
  const written = await transaction.run(SPECIAL_INSERTS[kind] ?? insertSql(kind), [JSON.stringify(rows)]);
  if (written === rows.length) return;
  throw new RelayError("invalid_argument", `a ${kind} cannot be kept: its message is not in the file`);
}

function insertSql(kind: RecordKindName): string {
  const columns = listOf(RECORD_KINDS[kind].columns);
  return `insert into ${kind} (${columns}) select ${columns} from json_populate_recordset(null::${kind}, $1)`;
}

function listOf(columns: readonly string[], alias = ""): string {
  return columns.map((column) => alias + column).join(", ");
}
