import type { Database, Row, Transaction } from "./database.ts";

/** Partitions that exist before their day comes. */
const DAYS_AHEAD = 1;
/** A reader that is slow would else make every commit wait behind the drop. The next sweep tries again. */
const DROP_LOCK_TIMEOUT_MS = 200;
const LOCK_TIMEOUT = "55P03";
/** Of the advisory lock of the relay that changes the partitions of a schema. */
const PARTITIONS_LOCK = 0x64_61_79;

/** A message and its settled delivery have the same number, so both partitions of a day go together. */
const TABLES = ["message", "settled_delivery", "event"] as const;

const SQL = {
  lock: `select pg_advisory_xact_lock(${PARTITIONS_LOCK}, hashtext($1))`,
  // Not to_regclass, whose cache may not know yet what another relay has just made.
  missing: `
    select wanted.name, day, first_of_day(day) as first, first_of_day(day + 1) as last
    from unnest($1::text[]) as wanted (name),
      generate_series(partition_day(), partition_day() + ${DAYS_AHEAD}) as day
    where not exists (
      select 1 from pg_class
      where relnamespace = current_schema()::regnamespace and relname = wanted.name || '_' || day)`,
  // Of days that have passed: no commit writes to them any more.
  past: `
    select parent.relname as name, substring(child.relname from '_([0-9]+)$')::bigint as day
    from pg_inherits i join pg_class child on child.oid = i.inhrelid join pg_class parent on parent.oid = i.inhparent
    where parent.relnamespace = current_schema()::regnamespace and parent.relname = any ($1)
      and substring(child.relname from '_([0-9]+)$')::bigint < partition_day()
    order by day`,
  hasMessages: `
    select 1 from message_key where ref >= first_of_day($1) and ref < first_of_day($1 + 1) limit 1`,
  // All events below the floor are sealed.
  hasEvents: `
    select 1 from seal_horizon h where h.floor < first_of_day($1 + 1)
    union all
    (select 1 from event_seal where position >= first_of_day($1) and position < first_of_day($1 + 1) limit 1)`,
};

/** The partitions of messages, settled deliveries and events: one a day. */
export class Partitions {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes those of today and of the next days. */
  async add(): Promise<void> {
    if ((await this.#database.rows(SQL.missing, [TABLES])).length === 0) return;
    await this.#database.transaction(async (transaction) => {
      await transaction.rows(SQL.lock, [transaction.schema]);
      for (const row of await transaction.rows(SQL.missing, [TABLES])) {
        await transaction.script(addSql(row));
      }
    });
  }

  /** Drops those of past days in which nothing is left. Returns how many. */
  async dropEmpty(): Promise<number> {
    let dropped = 0;
    for (const { name, day } of await this.#past()) {
      if (name === "settled_delivery" || !(await this.#isEmpty(this.#database, name, day))) continue;
      if (await this.#drop(name, day)) dropped += 1;
    }
    return dropped;
  }

  async #past(): Promise<readonly { readonly name: string; readonly day: number }[]> {
    const rows = await this.#database.rows(SQL.past, [TABLES]);
    return rows.map((row) => ({ name: row["name"] as string, day: row["day"] as number }));
  }

  /** Checks again under the lock, when no commit can still be writing. False if a reader is in the way. */
  async #drop(name: string, day: number): Promise<boolean> {
    const tables = name === "message" ? [`message_${day}`, `settled_delivery_${day}`] : [`${name}_${day}`];
    try {
      return await this.#database.transaction(async (transaction) => {
        await transaction.script(`set local lock_timeout = ${DROP_LOCK_TIMEOUT_MS}`);
        await transaction.rows(SQL.lock, [transaction.schema]);
        await transaction.script(`lock table ${tables.join(", ")} in access exclusive mode`);
        if (!(await this.#isEmpty(transaction, name, day))) return false;
        await transaction.script(`drop table ${tables.join(", ")}`);
        return true;
      });
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === LOCK_TIMEOUT) return false;
      throw error;
    }
  }

  async #isEmpty(reader: Pick<Transaction, "row">, name: string, day: number): Promise<boolean> {
    const sql = name === "event" ? SQL.hasEvents : SQL.hasMessages;
    return (await reader.row(sql, [day])) === undefined;
  }
}

/** Attaching takes a weaker lock than `create table … partition of`: commits go on. */
function addSql(row: Row): string {
  const table = `${String(row["name"])}_${String(row["day"])}`;
  return `
    create table ${table} (like ${String(row["name"])} including all);
    alter table ${String(row["name"])} attach partition ${table}
      for values from (${String(row["first"])}) to (${String(row["last"])});`;
}
