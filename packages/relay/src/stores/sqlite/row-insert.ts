import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { Clash } from "../../core/ports/relay-store.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import type { Gathered } from "./ledger.ts";

/** Rows that one statement writes: past this there is little to gain. */
const TOGETHER_MAX = 16;

export interface RowInsertSql {
  /** All up to the rows: `insert into … (…)`. */
  readonly into: string;
  /** One row, with its parameters: `(?, ?)`. */
  readonly row: string;
  readonly onConflict?: string;
  /** What a row that met a conflict means for its job, where it is not written for that. */
  readonly clash?: Clash;
}

/**
 * Writes the rows of a table, many with one statement: to open a table and its indexes costs as much as a row. Rows of
 * all jobs of a commit are gathered, and written when somebody may look for them and before the commit.
 */
export class RowInsert implements Gathered {
  readonly #database: DatabaseSync;
  readonly #sql: RowInsertSql;
  #gathered: (readonly SQLInputValue[])[] = [];
  /** By how many rows they write, less one; made when they are first needed. */
  readonly #statements: Statement[] = [];

  constructor(database: DatabaseSync, sql: RowInsertSql) {
    this.#database = database;
    this.#sql = sql;
  }

  add(row: readonly SQLInputValue[]): void {
    this.#gathered.push(row);
  }

  flush(): void {
    if (this.#gathered.length === 0) return;
    const rows = this.#gathered;
    this.#gathered = [];
    const isWhole = this.run(rows) === rows.length;
    if (!isWhole && this.#sql.clash !== undefined) throw new ClashError(this.#sql.clash);
  }

  drop(): void {
    this.#gathered = [];
  }

  /** How many of them are there now: a row that met a conflict, where the table allows for that, is not. */
  run(rows: readonly (readonly SQLInputValue[])[]): number {
    const [only] = rows;
    if (rows.length === 1 && only !== undefined) return Number(this.#of(1).run(...only).changes);
    let written = 0;
    for (let start = 0; start < rows.length; start += TOGETHER_MAX) {
      const end = Math.min(start + TOGETHER_MAX, rows.length);
      const values: SQLInputValue[] = [];
      for (let index = start; index < end; index += 1) values.push(...(rows[index] ?? []));
      written += Number(this.#of(end - start).run(...values).changes);
    }
    return written;
  }

  #of(count: number): Statement {
    return (this.#statements[count - 1] ??= this.#prepare(count));
  }

  #prepare(count: number): Statement {
    const { into, row, onConflict = "" } = this.#sql;
    const rows = Array.from({ length: count }, () => row).join(", ");
    return prepare(this.#database, `${into} values ${rows} ${onConflict}`);
  }
}
