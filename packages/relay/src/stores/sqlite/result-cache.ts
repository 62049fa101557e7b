import type { DatabaseSync } from "node:sqlite";
import type { CachedResult } from "../../core/ports/tasks.ts";
import { prepare, type Statement } from "./database.ts";
import { CACHED_RESULT_COLUMNS, cachedResultFromRow } from "./rows.ts";

const SELECT = `
  select ${CACHED_RESULT_COLUMNS} from cached_result where tenant = ? and result_key = ? and expires_at_ms > ?`;
const PUT = `
  insert into cached_result (${CACHED_RESULT_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)
  on conflict do update set task_id = excluded.task_id, stored_at_ms = excluded.stored_at_ms,
    expires_at_ms = excluded.expires_at_ms, text = excluded.text, parts_json = excluded.parts_json,
    artifacts_json = excluded.artifacts_json`;
const FORGET_EXPIRED = `
  delete from cached_result where rowid in (
    select rowid from cached_result indexed by cached_result_expiry where expires_at_ms <= ? limit ?)`;
// Steps from tenant to tenant in the index; in each the newest are passed over.
const NEXT_TENANT = "select min(tenant) from cached_result where tenant > ?";
const FORGET_OLDEST = `
  delete from cached_result where rowid in (
    select rowid from cached_result indexed by cached_result_age
    where tenant = ? order by stored_at_ms desc, rowid desc limit ? offset ?)`;

/** Answers of idempotent tasks, kept for those who ask the same again. */
export class ResultCache {
  readonly #select: Statement;
  readonly #put: Statement;
  readonly #forgetExpired: Statement;
  readonly #nextTenant: Statement;
  readonly #forgetOldest: Statement;

  constructor(database: DatabaseSync) {
    this.#select = prepare(database, SELECT);
    this.#put = prepare(database, PUT);
    this.#forgetExpired = prepare(database, FORGET_EXPIRED);
    this.#nextTenant = prepare(database, NEXT_TENANT);
    this.#forgetOldest = prepare(database, FORGET_OLDEST);
  }

  cachedResult(tenant: string, resultKey: string, nowMs: number): CachedResult | undefined {
    const row = this.#select.get(tenant, resultKey, nowMs);
    return row === undefined ? undefined : cachedResultFromRow(row);
  }

  /** Inside a commit. */
  put(result: CachedResult): void {
    this.#put.run(
      result.tenant,
      result.resultKey,
      result.taskId,
      result.storedAtMs,
      result.expiresAtMs,
      result.text,
      result.parts === null ? null : JSON.stringify(result.parts),
      JSON.stringify(result.artifacts),
    );
  }

  /** Inside a commit. At most `limit`; answers how many. */
  forget(nowMs: number, keptMax: number, limit: number): number {
    let forgotten = Number(this.#forgetExpired.run(nowMs, limit).changes);
    let tenant = this.#nextTenant.get("")?.[0];
    while (typeof tenant === "string" && forgotten < limit) {
      forgotten += Number(this.#forgetOldest.run(tenant, limit - forgotten, keptMax).changes);
      tenant = this.#nextTenant.get(tenant)?.[0];
    }
    return forgotten;
  }
}
