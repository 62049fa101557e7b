import {
  type AgentId,
  type Artifact,
  isTerminal,
  type ResultStatus,
  type TaskState,
} from "@a2a-relay/protocol";
import { taskTopic } from "../../core/ports/change-feed.ts";
import type { Clash } from "../../core/ports/relay-store.ts";
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
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { lastOfEach, ResultCache } from "./result-cache.ts";
import { insertAll, putAll, type Table } from "./table.ts";

/** Tasks that one answer lists for a client id. */
const NAMED_TASKS_MAX = 100;
/** Sorts after every id. */
const LAST_ID = "\u{10ffff}";

/** Spelt as in the partial indexes. */
const UNFINISHED =
  "(state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required')";
const MATCHES = `id > $2 and ($3::text is null or state = $3)
    and ($4::text is null or requester = $4 or assignee = $4)
    and ($5::text is null or thread_id = $5)
    and ($6::text is null or parent_id = $6)
  order by id limit $7`;
const ASKED = `
  from task where tenant = $1 and asked_of = $2 and requester = $3 and updated_at_ms >= $4 and plain = 0
    and created_at_ms >= $5 and ($6::text is null or state = $6) and ($7::text is null or thread_id = $7)`;

const SQL = {
  get: "select * from task where tenant = $1 and id = any ($2)",
  ofParent: `select * from task where tenant = $1 and parent_id = $6 and ${MATCHES}`,
  ofThread: `select * from task where tenant = $1 and thread_id = $5 and ${MATCHES}`,
  unfinished: `select * from task where tenant = $1 and ${UNFINISHED} and ${MATCHES}`,
  list: `select * from task where tenant = $1 and ${MATCHES}`,
  withClientId: `
    select * from task where tenant = $1 and client_id = $3 and ($2::text is null or requester = $2 or assignee = $2)
    order by id desc limit ${NAMED_TASKS_MAX}`,
  unfinishedWithResultKey: `
    select * from task where tenant = $1 and result_key = $2 and ${UNFINISHED} order by waiting, id limit 1`,
  askedPage: `
    select * ${ASKED} and (updated_at_ms, id) < ($8, $9) order by updated_at_ms desc, id desc limit $10`,
  countAsked: `select count(*) as total ${ASKED}`,
  // Each key's tasks are written by one relay at a time.
  lockWork: "select pg_advisory_xact_lock(hashtextextended(work, 0)) from unnest($1::text[]) as work",
  sameWork: `
    select wanted.*, other.id, other.waiting from unnest($1::text[], $2::text[]) as wanted (tenant, result_key)
    cross join lateral (
      select id, waiting from task where tenant = wanted.tenant and result_key = wanted.result_key and ${UNFINISHED}
      order by waiting, id limit $3) as other`,
  countPresent: `
    select count(*) as present from unnest($1::text[], $2::text[]) as wanted (tenant, id)
    join task t on t.tenant = wanted.tenant and t.id = wanted.id`,
  lock: `
    select 1 from unnest($1::text[], $2::text[]) as wanted (tenant, id)
    join task t on t.tenant = wanted.tenant and t.id = wanted.id for no key update of t`,
  removeBegunBy: `
    delete from task t using unnest($2::text[], $3::text[]) as begun (id, message_id)
    where t.tenant = $1 and t.id = begun.id and t.message_id = begun.message_id returning t.id`,
  // After the task, because it sees what was added until then.
  removeOfTasks: `
    with artifacts as (delete from artifact where tenant = $1 and task_id = any ($2))
    delete from task_update where tenant = $1 and task_id = any ($2)`,

  artifacts: "select json from artifact where tenant = $1 and task_id = $2 order by ordinal, artifact_id",
  withArtifacts: `
    select t.*, (
      select '[' || string_agg(a.json, ',' order by a.ordinal, a.artifact_id) || ']' from artifact a
      where a.tenant = t.tenant and a.task_id = t.id) as artifacts_json
    from task t where t.tenant = $1 and t.id = $2`,
  countArtifacts: `
    select task_id, count(*) as artifacts from artifact where tenant = $1 and task_id = any ($2) group by task_id`,
  putArtifacts: `
    insert into artifact (tenant, task_id, artifact_id, ordinal, json)
    select tenant, task_id, artifact_id, position + (
      select coalesce(max(a.ordinal), 0) from artifact a where a.tenant = new.tenant and a.task_id = new.task_id), json
    from unnest($1::text[], $2::text[], $3::text[], $4::text[])
      with ordinality as new (tenant, task_id, artifact_id, json, position)
    on conflict (tenant, task_id, artifact_id) do update set json = excluded.json`,

  updates: pageSql(
    `where tenant = $1 and task_id = $2 and n > $3 and ($4::boolean or kind <> 'artifact')`,
    "order by n",
  ),
  lastUpdates: pageSql(
    `where tenant = $1 and task_id = $2 and n <= $3 and kind <> 'artifact' and (not $4::boolean or kind = 'status')`,
    "order by n desc",
  ),
};

const TASKS: Table<TaskRecord> = {
  name: "task",
  key: ["tenant", "id"],
  clash: "task",
  columns:
    `tenant id requester assignee state thread_id message_id subject client_id result_key parent_id deadline_ms
    status_text result_status result_message_id result_digest handoffs_json first_message_id asked_of plain
    update_count update_bytes created_at_ms updated_at_ms waiting`.split(/\s+/),
  row: (task) => ({
    tenant: task.tenant,
    id: task.id,
    requester: task.requester,
    assignee: task.assignee,
    state: task.state,
    thread_id: task.threadId,
    message_id: task.messageId,
    subject: task.subject,
    client_id: task.clientId,
    result_key: task.resultKey,
    parent_id: task.parentId,
    deadline_ms: task.deadlineMs,
    status_text: task.statusText,
    result_status: task.resultStatus,
    result_message_id: task.resultMessageId,
    result_digest: task.resultDigest,
    handoffs_json: JSON.stringify(task.handoffs),
    first_message_id: task.firstMessageId,
    asked_of: task.askedOf,
    plain: task.isPlain ? 1 : 0,
    update_count: task.updateCount,
    update_bytes: task.updateBytes,
    created_at_ms: task.createdAtMs,
    updated_at_ms: task.updatedAtMs,
    waiting: task.isWaiting ? 1 : 0,
  }),
};

/** Tasks with their artifacts and updates, and the cached results of idempotent tasks. */
export class Tasks implements TaskStore {
  readonly #database: Database;
  readonly #results: ResultCache;

  constructor({ database }: Engine) {
    this.#database = database;
    this.#results = new ResultCache(database);
  }

  async get(tenant: string, ids: readonly string[]): Promise<readonly (TaskRecord | undefined)[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.get, [tenant, ids]);
    const found = new Map(rows.map((row) => [row["id"], taskFromRow(row)]));
    return ids.map((id) => found.get(id));
  }

  /** There is no index by agent: such a list scans the tasks. */
  async list(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    const { tenant, afterId, state = null, agentId = null, threadId = null, parentId = null, limit } = filter;
    const values = [tenant, afterId, state, agentId, threadId, parentId, limit];
    const rows = await this.#database.ofTenant(tenant).rows(listSql(filter), values);
    return rows.map((row) => taskFromRow(row));
  }

  async withClientId(
    tenant: string,
    agentId: AgentId | undefined,
    clientId: string,
  ): Promise<readonly TaskRecord[]> {
    const values = [tenant, agentId, clientId];
    const rows = await this.#database.ofTenant(tenant).rows(SQL.withClientId, values);
    return rows.map((row) => taskFromRow(row));
  }

  async unfinishedWithResultKey(tenant: string, resultKey: string): Promise<TaskRecord | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.unfinishedWithResultKey, [tenant, resultKey]);
    return row === undefined ? undefined : taskFromRow(row);
  }

  cachedResult(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined> {
    return this.#results.get(tenant, resultKey, nowMs);
  }

  async artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.artifacts, [tenant, taskId]);
    return rows.map((row) => JSON.parse(row["json"] as string) as Artifact);
  }

  async withArtifacts(tenant: string, id: string): Promise<WholeTask | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.withArtifacts, [tenant, id]);
    if (row === undefined) return undefined;
    const artifacts = JSON.parse((row["artifacts_json"] ?? "[]") as string) as readonly Artifact[];
    return { task: taskFromRow(row), artifacts };
  }

  async countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.countArtifacts, [tenant, taskIds]);
    return new Map(rows.map((row) => [row["task_id"] as string, row["artifacts"] as number]));
  }

  async asked(query: AskedTasksQuery): Promise<AskedTasksPage> {
    const { tenant, askedOf, requester, sinceMs, createdSinceMs, state, threadId, before, limit } = query;
    const filter = [tenant, askedOf, requester, sinceMs, createdSinceMs, state, threadId];
    const { updatedAtMs, id } = before ?? { updatedAtMs: Number.MAX_SAFE_INTEGER, id: LAST_ID };
    const reader = this.#database.ofTenant(tenant);
    const [rows, counted] = await Promise.all([
      reader.rows(SQL.askedPage, [...filter, updatedAtMs, id, limit + 1]),
      reader.row(SQL.countAsked, filter),
    ]);
    const tasks = rows.slice(0, limit).map((row) => taskFromRow(row));
    return { tasks, hasMore: rows.length > limit, total: counted?.["total"] as number };
  }

  async updates(query: TaskUpdatesQuery): Promise<TaskUpdatesPage> {
    const { tenant, taskId, afterN, withArtifacts, limit, bytesMax } = query;
    const values = [tenant, taskId, afterN, withArtifacts, limit, bytesMax];
    return updatesPage(await this.#database.ofTenant(tenant).rows(SQL.updates, values), query);
  }

  async lastUpdates(query: LastTaskUpdatesQuery): Promise<TaskUpdatesPage> {
    const { tenant, taskId, untilN, statusOnly, limit, bytesMax } = query;
    const values = [tenant, taskId, untilN, statusOnly, limit, bytesMax];
    return updatesPage(await this.#database.ofTenant(tenant).rows(SQL.lastUpdates, values), query);
  }

  async putAll(transaction: Transaction, tasks: readonly TaskRecord[]): Promise<void> {
    await assertShareWork(
      transaction,
      tasks.filter(({ resultKey }) => resultKey !== null),
    );
    try {
      await putAll(transaction, TASKS, tasks);
    } catch (error) {
      if (!(error instanceof ClashError)) throw error;
      const fresh = tasks.filter(({ version }) => version === 0);
      const ids = [fresh.map(({ tenant }) => tenant), fresh.map(({ id }) => id)];
      const row = await transaction.row(SQL.countPresent, ids);
      throw new ClashError(row?.["present"] === fresh.length ? "task" : "task_client_id");
    }
  }

  async putArtifacts(transaction: Transaction, artifacts: readonly ArtifactRecord[]): Promise<void> {
    if (artifacts.length === 0) return;
    const last = lastOfEach(artifacts, (each) => [each.tenant, each.taskId, each.artifact.artifactId]);
    await transaction.run(SQL.putArtifacts, [
      last.map(({ tenant }) => tenant),
      last.map(({ taskId }) => taskId),
      last.map(({ artifact }) => artifact.artifactId),
      last.map(({ artifact }) => JSON.stringify(artifact)),
    ]);
  }

  async addUpdates(transaction: Transaction, updates: readonly TaskUpdate[]): Promise<void> {
    const rows = updates.map(({ tenant, taskId, n, atMs, step }) => ({
      tenant,
      task_id: taskId,
      n,
      at_ms: atMs,
      kind: step.kind,
      step_json: JSON.stringify(step),
    }));
    const columns = ["tenant", "task_id", "n", "at_ms", "kind", "step_json"];
    await insertAll(transaction, { name: "task_update", clash: "task" }, rows, columns);
    for (const { tenant, taskId } of updates) transaction.wake(taskTopic(tenant, taskId));
  }

  putCachedResults(transaction: Transaction, results: readonly CachedResult[]): Promise<void> {
    return this.#results.putAll(transaction, results);
  }

  /** Removes each task that its message asked for; answers their ids. */
  async removeBegunBy(
    transaction: Transaction,
    tenant: string,
    begun: readonly Pick<TaskRecord, "id" | "messageId">[],
  ): Promise<readonly string[]> {
    const ids = begun.map(({ id }) => id);
    const messageIds = begun.map(({ messageId }) => messageId);
    const rows = await transaction.rows(SQL.removeBegunBy, [tenant, ids, messageIds]);
    const gone = rows.map((row) => row["id"] as string);
    if (gone.length > 0) await transaction.run(SQL.removeOfTasks, [tenant, gone]);
    return gone;
  }

  removeResults(transaction: Transaction, nowMs: number, keptMax: number, limit: number): Promise<number> {
    return this.#results.remove(transaction, nowMs, keptMax, limit);
  }
}

/** Until the commit no other relay changes or removes these tasks. One that does not exist is a clash. */
export async function lockTasks(
  transaction: Transaction,
  tasks: readonly { readonly tenant: string; readonly taskId: string }[],
  clash: Clash,
): Promise<void> {
  if (tasks.length === 0) return;
  const ids = [tasks.map(({ tenant }) => tenant), tasks.map(({ taskId }) => taskId)];
  const rows = await transaction.rows(SQL.lock, ids);
  if (rows.length !== tasks.length) throw new ClashError(clash);
}

/** Of the unfinished tasks with one result key, one at most does not wait, and a new one does not wait for none. */
async function assertShareWork(transaction: Transaction, tasks: readonly TaskRecord[]): Promise<void> {
  const keys = new Map(
    tasks
      .filter(({ state }) => !isTerminal(state))
      .map((task) => [workOf(task.tenant, task.resultKey), task] as const),
  );
  if (keys.size === 0) return;
  await transaction.rows(SQL.lockWork, [[...keys.keys()].toSorted()]);
  const wanted = [...keys.values()];
  const rows = await transaction.rows(SQL.sameWork, [
    wanted.map(({ tenant }) => tenant),
    wanted.map(({ resultKey }) => resultKey),
    // Enough to find one that none of these tasks replaces.
    tasks.length + 1,
  ]);
  const sharing = new Map([...keys.keys()].map((work) => [work, new Map<string, boolean>()]));
  for (const row of rows) {
    sharing.get(workOf(row["tenant"], row["result_key"]))?.set(row["id"] as string, row["waiting"] === 1);
  }
  for (const { tenant, id, state, resultKey, isWaiting, version } of tasks) {
    const others = sharing.get(workOf(tenant, resultKey));
    if (others === undefined) continue;
    others.delete(id);
    if (isTerminal(state)) continue;
    const isWrong = isWaiting ? version === 0 && others.size === 0 : [...others.values()].includes(false);
    if (isWrong) throw new ClashError("result_key");
    others.set(id, isWaiting);
  }
}

function workOf(tenant: unknown, resultKey: unknown): string {
  return JSON.stringify([tenant, resultKey]);
}

function listSql({ parentId, threadId, state }: TaskFilter): string {
  if (parentId !== undefined) return SQL.ofParent;
  if (threadId !== undefined) return SQL.ofThread;
  return state !== undefined && !isTerminal(state) ? SQL.unfinished : SQL.list;
}

/** As many updates as the limits allow, but at least one. The database does not read the other steps. */
function pageSql(condition: string, order: string): string {
  return `
    select * from (
      select *, sum(octet_length(step_json)) over (${order}) as bytes, count(*) over () as found from (
        select n, at_ms, step_json from task_update ${condition} ${order} limit $5 + 1) as page) as counted
    where bytes <= $6 or bytes = octet_length(step_json) ${order} limit $5`;
}

function updatesPage(
  rows: readonly Row[],
  { tenant, taskId }: Pick<TaskUpdate, "tenant" | "taskId">,
): TaskUpdatesPage {
  const updates = rows.map((row) => ({
    tenant,
    taskId,
    n: row["n"] as number,
    atMs: row["at_ms"] as number,
    step: JSON.parse(row["step_json"] as string) as TaskStep,
  }));
  return { updates, hasMore: rows.length < Number(rows[0]?.["found"] ?? 0) };
}

export function taskFromRow(row: Row): TaskRecord {
  return {
    tenant: row["tenant"] as string,
    id: row["id"] as string,
    requester: row["requester"] as AgentId,
    assignee: row["assignee"] as AgentId,
    state: row["state"] as TaskState,
    threadId: row["thread_id"] as string,
    messageId: row["message_id"] as string,
    subject: row["subject"] as string,
    clientId: row["client_id"] as string | null,
    resultKey: row["result_key"] as string | null,
    parentId: row["parent_id"] as string | null,
    deadlineMs: row["deadline_ms"] as number | null,
    statusText: row["status_text"] as string | null,
    resultStatus: row["result_status"] as ResultStatus | null,
    resultMessageId: row["result_message_id"] as string | null,
    resultDigest: row["result_digest"] as string | null,
    handoffs: JSON.parse(row["handoffs_json"] as string) as TaskRecord["handoffs"],
    firstMessageId: row["first_message_id"] as string | null,
    askedOf: row["asked_of"] as AgentId | null,
    isPlain: row["plain"] === 1,
    updateCount: row["update_count"] as number,
    updateBytes: row["update_bytes"] as number,
    createdAtMs: row["created_at_ms"] as number,
    updatedAtMs: row["updated_at_ms"] as number,
    isWaiting: row["waiting"] === 1,
    version: row["version"] as number,
  };
}
