import type { Clash } from "../../core/ports/relay-store.ts";
import { ClashError } from "./commit-queue.ts";
import type { Row, Transaction } from "./database.ts";

/** A table of versioned records: how to write many of them in one statement each. */
export interface Table<R> {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
  readonly clash: Clash;
  /** All columns but the version. */
  readonly row: (record: R) => Row;
}

/** Inserts new records (version 0) and updates the others by version. One that another caller wrote is a clash. */
export async function putAll<R extends { readonly version: number }>(
  transaction: Transaction,
  table: Table<R>,
  records: readonly R[],
): Promise<void> {
  // In the order of their keys: two relays that write the same rows do not wait for each other in a circle.
  const rows = records
    .map((record): Row => ({ ...table.row(record), version: record.version }))
    .toSorted((one, other) => compareKeys(table.key, one, other));
  const fresh = rows.filter((row) => row["version"] === 0);
  const changed = rows.filter((row) => row["version"] !== 0);
  await insertAll(transaction, table, fresh, [...table.columns, "version"]);
  if (changed.length === 0) return;
  const written = await transaction.run(updateSql(table), [JSON.stringify(changed)]);
  if (written !== changed.length) throw new ClashError(table.clash);
}

function compareKeys(key: readonly string[], one: Row, other: Row): number {
  for (const column of key) {
    const [a, b] = [String(one[column]), String(other[column])];
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

/** Inserts rows; one that exists is a clash. */
export async function insertAll(
  transaction: Transaction,
  table: Pick<Table<never>, "name" | "clash">,
  rows: readonly Row[],
  columns: readonly string[],
): Promise<void> {
  if (rows.length === 0) return;
  const list = columns.join(", ");
  const values = columns.map((column) => (column === "version" ? "version + 1" : column)).join(", ");
  const written = await transaction.run(
    `insert into ${table.name} (${list})
     select ${values} from json_populate_recordset(null::${table.name}, $1) on conflict do nothing`,
    [JSON.stringify(rows)],
  );
  if (written !== rows.length) throw new ClashError(table.clash);
}

function updateSql({ name, key, columns }: Pick<Table<never>, "name" | "key" | "columns">): string {
  const sets = columns.filter((column) => !key.includes(column)).map((column) => `${column} = r.${column}`);
  const matches = key.map((column) => `t.${column} = r.${column}`);
  return `update ${name} t set ${sets.join(", ")}, version = t.version + 1
    from json_populate_recordset(null::${name}, $1) r where ${matches.join(" and ")} and t.version = r.version`;
}
