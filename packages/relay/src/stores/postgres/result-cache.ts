import type { CachedResult } from "../../core/ports/tasks.ts";
import type { Database, Row, Transaction } from "./database.ts";

const COLUMNS = "tenant, result_key, task_id, stored_at_ms, expires_at_ms, text, parts_json, artifacts_json";

const SQL = {
  get: "select * from cached_result where tenant = $1 and result_key = $2 and expires_at_ms > $3",
  put: `
    insert into cached_result (${COLUMNS})
    select ${COLUMNS} from json_populate_recordset(null::cached_result, $1) order by tenant, result_key
    on conflict (tenant, result_key) do update set task_id = excluded.task_id, stored_at_ms = excluded.stored_at_ms,
      expires_at_ms = excluded.expires_at_ms, text = excluded.text, parts_json = excluded.parts_json,
      artifacts_json = excluded.artifacts_json`,
  removeExpired: `
    delete from cached_result
    where ctid = any (array(
      select ctid from cached_result where expires_at_ms <= $1 order by expires_at_ms limit $2))`,
  // Steps from tenant to tenant, without reading all that each has.
  removeOldest: `
    with recursive owner as (
      (select tenant from cached_result order by tenant limit 1) union all
      select next.tenant from owner cross join lateral (
        select tenant from cached_result r where r.tenant > owner.tenant order by r.tenant limit 1) as next)
    delete from cached_result where ctid = any (array(
      select oldest.ctid from owner cross join lateral (
        select r.ctid from cached_result r where r.tenant = owner.tenant
        order by r.stored_at_ms desc, r.result_key desc limit $1 offset $2) as oldest
      limit $1))`,
};

/** The results of idempotent tasks. */
export class ResultCache {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async get(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.get, [tenant, resultKey, nowMs]);
    return row === undefined ? undefined : resultFromRow(row);
  }

  async putAll(transaction: Transaction, results: readonly CachedResult[]): Promise<void> {
    if (results.length === 0) return;
    const last = lastOfEach(results, ({ tenant, resultKey }) => [tenant, resultKey]);
    await transaction.run(SQL.put, [JSON.stringify(last.map((result) => rowOf(result)))]);
  }

  /** Removes expired results, then the oldest beyond `keptMax` of each tenant; answers how many. */
  async remove(transaction: Transaction, nowMs: number, keptMax: number, limit: number): Promise<number> {
    const expired = await transaction.run(SQL.removeExpired, [nowMs, limit]);
    return expired + (await transaction.run(SQL.removeOldest, [limit - expired, keptMax]));
  }
}

/** One statement can write a row once. Each stays at the position of the first with its key. */
export function lastOfEach<T>(records: readonly T[], keyOf: (record: T) => readonly string[]): readonly T[] {
  return [...new Map(records.map((record) => [JSON.stringify(keyOf(record)), record])).values()];
}

function rowOf(result: CachedResult): Row {
  return {
    tenant: result.tenant,
    result_key: result.resultKey,
    task_id: result.taskId,
    stored_at_ms: result.storedAtMs,
    expires_at_ms: result.expiresAtMs,
    text: result.text,
    parts_json: result.parts === null ? null : JSON.stringify(result.parts),
    artifacts_json: JSON.stringify(result.artifacts),
  };
}

function resultFromRow(row: Row): CachedResult {
  return {
    tenant: row["tenant"] as string,
    resultKey: row["result_key"] as string,
    taskId: row["task_id"] as string,
    storedAtMs: row["stored_at_ms"] as number,
    expiresAtMs: row["expires_at_ms"] as number,
    text: row["text"] as string,
    parts:
      row["parts_json"] === null ? null : (JSON.parse(row["parts_json"] as string) as CachedResult["parts"]),
    artifacts: JSON.parse(row["artifacts_json"] as string) as CachedResult["artifacts"],
  };
}
