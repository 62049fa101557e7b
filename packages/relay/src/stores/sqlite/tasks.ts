import type { SQLInputValue } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { type AgentId, type Artifact, isTerminal } from "@a2a-relay/protocol";
import { taskTopic } from "../../core/ports/change-feed.ts";
import type {
  ArtifactRecord,
  AskedTasksPage,
  AskedTasksQuery,
  CachedResult,
  LastTaskUpdatesQuery,
  TaskFilter,
  TaskRecord,
  TaskStep,
  TaskStore,
  TaskUpdate,
  TaskUpdatesPage,
  TaskUpdatesQuery,
  WholeTask,
} from "../../core/ports/tasks.ts";
import { ClashError, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statement, type Statements } from "./database.ts";
import {
  beginnerOf,
  oneOf,
  parseJson,
  parseNullableJson,
  TASK_COLUMNS,
  taskFromRow,
  threadColumn,
  UNFINISHED_STATES,
} from "./rows.ts";
import type { StoreState } from "./store-state.ts";

/** Tasks that a scan reads in one turn of the event loop. */
const SCAN_ROWS = 2_000;
/** Tasks that one answer lists for a client id. */
const NAMED_TASKS_MAX = 100;
/** Sorts after every id. */
const LAST_ID = "\u{10ffff}";

const RESULT_COLUMNS =
  "tenant, result_key, task_id, stored_at_ms, expires_at_ms, text, parts_json, artifacts_json";
const UNFINISHED = oneOf("state", UNFINISHED_STATES);
const MATCHES = `id > ?2 and id <= ?3 and (?4 is null or state = ?4)
    and (?5 is null or requester = ?5 or assignee = ?5)
    and (?6 is null or thread_id = ?6 or (thread_id = '' and message_id = ?9))
    and (?7 is null or parent_id = ?7)
  order by id limit ?8`;
const ASKED = `
  from task indexed by task_asked_of
  where tenant = ?1 and asked_of is not null and asked_of = ?2 and requester = ?3 and updated_at_ms >= ?4
    and plain = 0 and (?5 is null or state = ?5) and created_at_ms >= ?8
    and (?6 is null or thread_id = ?6 or (thread_id = '' and message_id = ?7))`;

const SQL = {
  select: `select ${TASK_COLUMNS} from task where tenant = ? and id = ?`,
  overdue: `
    select ${TASK_COLUMNS} from task indexed by task_deadline
    where deadline_ms is not null and deadline_ms <= ? and ${UNFINISHED} order by deadline_ms limit ?`,
  ofParent: `
    select ${TASK_COLUMNS} from task indexed by task_parent where tenant = ?1 and parent_id = ?7 and ${MATCHES}`,
  ofThread: `
    select ${TASK_COLUMNS} from task indexed by task_thread
    where tenant = ?1 and thread_id = ?6 and thread_id <> '' and ${MATCHES}`,
  // A task is removed with the message that asks for it, so that message always leads to it.
  begunWithThread: `
    select ${TASK_COLUMNS} from task
    where tenant = ?1 and id = (select task_id from message where tenant = ?1 and id = ?9) and thread_id = ''
      and ${MATCHES}`,
  scan: `select ${TASK_COLUMNS} from task where tenant = ?1 and ${MATCHES}`,
  scanEnd: "select id from task where tenant = ? and id > ? order by id limit 1 offset ?",
  scanUnfinished: `
    select ${TASK_COLUMNS} from task indexed by task_unfinished where tenant = ?1 and ${UNFINISHED} and ${MATCHES}`,
  scanUnfinishedEnd: `
    select id from task indexed by task_unfinished where tenant = ? and ${UNFINISHED} and id > ?
    order by id limit 1 offset ?`,
  withClientId: `
    select ${TASK_COLUMNS} from task indexed by task_client_id
    where tenant = ?1 and client_id is not null and client_id = ?3
      and (?2 is null or requester = ?2 or assignee = ?2)
    order by id desc limit ${NAMED_TASKS_MAX}`,
  unfinishedWithResultKey: `
    select ${TASK_COLUMNS} from task indexed by task_result_key
    where tenant = ? and result_key is not null and result_key = ? and ${UNFINISHED}
    order by waiting, id limit 1`,
  sameWork: `
    select waiting from task indexed by task_result_key
    where tenant = ? and result_key is not null and result_key = ? and ${UNFINISHED} and id <> ?
    order by waiting, id limit 1`,
  askedPage: `
    select ${TASK_COLUMNS} ${ASKED} and (updated_at_ms, id) < (?9, ?10)
    order by updated_at_ms desc, id desc limit ?11`,
  countAsked: `select count(*) ${ASKED}`,
  insert: `
    insert into task (${TASK_COLUMNS})
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) on conflict do nothing`,
  update: `
    update task set requester = ?, assignee = ?, state = ?, thread_id = ?, message_id = ?, subject = ?,
      client_id = ?, result_key = ?, parent_id = ?, deadline_ms = ?, status_text = ?, result_status = ?,
      result_message_id = ?, result_digest = ?, handoffs_json = ?, first_message_id = ?, asked_of = ?,
      plain = ?, update_count = ?, update_bytes = ?, created_at_ms = ?, updated_at_ms = ?, waiting = ?,
      version = version + 1
    where tenant = ? and id = ? and version = ?`,
  remove: "delete from task where tenant = ? and id = ? and message_id = ?",

  artifacts: "select json from artifact where tenant = ? and task_id = ? order by ordinal",
  countArtifacts: `
    select task_id, count(*) from artifact
    where tenant = ? and task_id in (select value from json_each(?)) group by task_id`,
  putArtifact: `
    insert into artifact (tenant, task_id, artifact_id, ordinal, json)
    values (?1, ?2, ?3,
      (select coalesce(max(ordinal), 0) + 1 from artifact where tenant = ?1 and task_id = ?2), ?4)
    on conflict do update set json = excluded.json`,
  removeArtifacts: "delete from artifact where tenant = ? and task_id = ?",

  insertUpdate:
    "insert into task_update (tenant, task_id, n, at_ms, kind, step_json) values (?, ?, ?, ?, ?, ?)",
  updatesAfter: `
    select n, at_ms, step_json from task_update
    where tenant = ?1 and task_id = ?2 and n > ?3 and (?4 or kind <> 'artifact') order by n limit ?5`,
  lastUpdates: `
    select n, at_ms, step_json from task_update
    where tenant = ?1 and task_id = ?2 and n <= ?3 and kind <> 'artifact' and (not ?4 or kind = 'status')
    order by n desc limit ?5`,
  removeUpdates: "delete from task_update where tenant = ? and task_id = ?",

  cachedResult: `
    select ${RESULT_COLUMNS} from cached_result where tenant = ? and result_key = ? and expires_at_ms > ?`,
  putCachedResult: `
    insert into cached_result (${RESULT_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)
    on conflict do update set task_id = excluded.task_id, stored_at_ms = excluded.stored_at_ms,
      expires_at_ms = excluded.expires_at_ms, text = excluded.text, parts_json = excluded.parts_json,
      artifacts_json = excluded.artifacts_json`,
  removeExpiredResults: `
    delete from cached_result where rowid in (
      select rowid from cached_result indexed by cached_result_expiry where expires_at_ms <= ? limit ?)`,
  nextResultTenant: "select min(tenant) from cached_result where tenant > ?",
  removeOldestResults: `
    delete from cached_result where rowid in (
      select rowid from cached_result indexed by cached_result_age
      where tenant = ? order by stored_at_ms desc, rowid desc limit ? offset ?)`,
};

/** Tasks with their artifacts and updates, and the cached results of idempotent tasks. */
export class Tasks implements TaskStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, ids: readonly string[]): Promise<readonly (TaskRecord | undefined)[]> {
    return ids.map((id) => this.find(tenant, id));
  }

  async withArtifacts(tenant: string, id: string): Promise<WholeTask | undefined> {
    const task = this.find(tenant, id);
    return task === undefined ? undefined : { task, artifacts: this.findArtifacts(tenant, id) };
  }

  async artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]> {
    return this.findArtifacts(tenant, taskId);
  }

  async countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = this.#sql.countArtifacts.all(tenant, JSON.stringify(taskIds));
    return new Map(rows.map((row) => [row[0] as string, row[1] as number]));
  }

  findOverdue(nowMs: number, limit: number): readonly TaskRecord[] {
    return this.#sql.overdue.all(nowMs, limit).map((row) => taskFromRow(row));
  }

  async withClientId(
    tenant: string,
    agentId: AgentId | undefined,
    clientId: string,
  ): Promise<readonly TaskRecord[]> {
    return this.#sql.withClientId.all(tenant, agentId ?? null, clientId).map((row) => taskFromRow(row));
  }

  async unfinishedWithResultKey(tenant: string, resultKey: string): Promise<TaskRecord | undefined> {
    const row = this.#sql.unfinishedWithResultKey.get(tenant, resultKey);
    return row === undefined ? undefined : taskFromRow(row);
  }

  /**
   * Reads the children or the thread that the filter names, else scans the tasks. There is no index by agent: it
   * would make every request a quarter more expensive.
   */
  async list(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    if (filter.parentId !== undefined) return matching(this.#sql.ofParent, filter);
    if (filter.threadId !== undefined) {
      const found = [...matching(this.#sql.begunWithThread, filter), ...matching(this.#sql.ofThread, filter)];
      return found.toSorted(byId).slice(0, filter.limit);
    }
    const isUnfinished = filter.state !== undefined && !isTerminal(filter.state);
    const scan = isUnfinished ? this.#sql.scanUnfinished : this.#sql.scan;
    const scanEnd = isUnfinished ? this.#sql.scanUnfinishedEnd : this.#sql.scanEnd;
    const found: TaskRecord[] = [];
    let { afterId } = filter;
    for (;;) {
      const endId = scanEnd.get(filter.tenant, afterId, SCAN_ROWS - 1)?.[0] as string | undefined;
      const limit = filter.limit - found.length;
      found.push(...matching(scan, { ...filter, afterId, limit }, endId));
      if (endId === undefined || found.length >= filter.limit) return found;
      afterId = endId;
      await setImmediate();
    }
  }

  async asked(query: AskedTasksQuery): Promise<AskedTasksPage> {
    const { tenant, askedOf, requester, sinceMs, createdSinceMs, before, limit } = query;
    const { state = null, threadId = null } = query;
    const beginner = beginnerIn(threadId);
    const filter = [tenant, askedOf, requester, sinceMs, state, threadId, beginner, createdSinceMs] as const;
    const { updatedAtMs, id } = before ?? { updatedAtMs: Number.MAX_SAFE_INTEGER, id: LAST_ID };
    const rows = this.#sql.askedPage.all(...filter, updatedAtMs, id, limit + 1);
    const tasks = rows.slice(0, limit).map((row) => taskFromRow(row));
    const total = Number(this.#sql.countAsked.get(...filter)?.[0]);
    return { tasks, hasMore: rows.length > limit, total };
  }

  async updates(query: TaskUpdatesQuery): Promise<TaskUpdatesPage> {
    const { tenant, taskId, afterN, withArtifacts, limit } = query;
    const rows = this.#sql.updatesAfter.iterate(tenant, taskId, afterN, withArtifacts ? 1 : 0, limit + 1);
    return updatesPage(rows, query);
  }

  async lastUpdates(query: LastTaskUpdatesQuery): Promise<TaskUpdatesPage> {
    const { tenant, taskId, untilN, statusOnly, limit } = query;
    const rows = this.#sql.lastUpdates.iterate(tenant, taskId, untilN, statusOnly ? 1 : 0, limit + 1);
    return updatesPage(rows, query);
  }

  async cachedResult(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined> {
    const row = this.#sql.cachedResult.get(tenant, resultKey, nowMs);
    return row === undefined ? undefined : cachedResultFromRow(row);
  }

  find(tenant: string, id: string): TaskRecord | undefined {
    const row = this.#sql.select.get(tenant, id);
    return row === undefined ? undefined : taskFromRow(row);
  }

  findArtifacts(tenant: string, taskId: string): readonly Artifact[] {
    return this.#sql.artifacts.all(tenant, taskId).map((row) => parseJson(row[0]) as Artifact);
  }

  put(task: TaskRecord): void {
    const { tenant, id, version } = task;
    this.#assertSharesWork(task);
    if (version !== 0) {
      const updated = this.#sql.update.run(...taskValues(task), tenant, id, version);
      if (updated === 0) throw new ClashError("task");
      return;
    }
    if (this.#sql.insert.run(tenant, id, ...taskValues(task)) !== 0) return;
    throw new ClashError(this.find(tenant, id) === undefined ? "task_client_id" : "task");
  }

  putArtifact({ tenant, taskId, artifact }: ArtifactRecord): void {
    this.#sql.putArtifact.run(tenant, taskId, artifact.artifactId, JSON.stringify(artifact));
  }

  addUpdate({ tenant, taskId, n, atMs, step }: TaskUpdate): void {
    this.#sql.insertUpdate.run(tenant, taskId, n, atMs, step.kind, JSON.stringify(step));
    this.#state.wake(taskTopic(tenant, taskId));
  }

  putCachedResult(result: CachedResult): void {
    this.#sql.putCachedResult.run(
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

  /** Removes the task if this message asked for it; answers whether it did. */
  removeBegunBy(tenant: string, id: string, messageId: string): boolean {
    if (this.#sql.remove.run(tenant, id, messageId) === 0) return false;
    this.#sql.removeArtifacts.run(tenant, id);
    this.#sql.removeUpdates.run(tenant, id);
    return true;
  }

  /** Removes expired results, then the oldest beyond `keptMax` of each tenant; answers how many. */
  removeResults(nowMs: number, keptMax: number, limit: number): number {
    let removed = this.#sql.removeExpiredResults.run(nowMs, limit);
    let tenant = this.#sql.nextResultTenant.get("")?.[0];
    while (typeof tenant === "string" && removed < limit) {
      removed += this.#sql.removeOldestResults.run(tenant, limit - removed, keptMax);
      tenant = this.#sql.nextResultTenant.get(tenant)?.[0];
    }
    return removed;
  }

  #assertSharesWork({ tenant, id, state, resultKey, isWaiting, version }: TaskRecord): void {
    if (resultKey === null || isTerminal(state)) return;
    const other = this.#sql.sameWork.get(tenant, resultKey, id);
    const isWrong = isWaiting ? version === 0 && other === undefined : other?.[0] === 0;
    if (isWrong) throw new ClashError("result_key");
  }
}

function matching(statement: Statement, filter: TaskFilter, endId = LAST_ID): readonly TaskRecord[] {
  const { tenant, afterId, state = null, agentId = null, threadId = null, parentId = null, limit } = filter;
  return statement
    .all(tenant, afterId, endId, state, agentId, threadId, parentId, limit, beginnerIn(threadId))
    .map((row) => taskFromRow(row));
}

function beginnerIn(threadId: string | null): string | null {
  return threadId === null ? null : (beginnerOf(threadId) ?? null);
}

/** The order of the database. */
function byId(one: TaskRecord, other: TaskRecord): number {
  return one.id < other.id ? -1 : 1;
}

/** As many updates as the limits allow, but at least one. */
function updatesPage(
  rows: Iterable<Row>,
  { tenant, taskId, limit, bytesMax }: Pick<TaskUpdatesQuery, "tenant" | "taskId" | "limit" | "bytesMax">,
): TaskUpdatesPage {
  const updates: TaskUpdate[] = [];
  let bytes = 0;
  for (const [n, atMs, json] of rows) {
    bytes += String(json).length;
    if (updates.length === limit || (bytes > bytesMax && updates.length > 0)) {
      return { updates, hasMore: true };
    }
    updates.push({ tenant, taskId, n: Number(n), atMs: Number(atMs), step: parseJson(json) as TaskStep });
  }
  return { updates, hasMore: false };
}

function taskValues(task: TaskRecord): SQLInputValue[] {
  return [
    task.requester,
    task.assignee,
    task.state,
    threadColumn(task.threadId, task.messageId),
    task.messageId,
    task.subject,
    task.clientId,
    task.resultKey,
    task.parentId,
    task.deadlineMs,
    task.statusText,
    task.resultStatus,
    task.resultMessageId,
    task.resultDigest,
    JSON.stringify(task.handoffs),
    task.firstMessageId,
    task.askedOf,
    task.isPlain ? 1 : 0,
    task.updateCount,
    task.updateBytes,
    task.createdAtMs,
    task.updatedAtMs,
    task.isWaiting ? 1 : 0,
  ];
}

function cachedResultFromRow(row: Row): CachedResult {
  return {
    tenant: row[0] as string,
    resultKey: row[1] as string,
    taskId: row[2] as string,
    storedAtMs: row[3] as number,
    expiresAtMs: row[4] as number,
    text: row[5] as string,
    parts: parseNullableJson(row[6]) as CachedResult["parts"],
    artifacts: parseJson(row[7]) as CachedResult["artifacts"],
  };
}
