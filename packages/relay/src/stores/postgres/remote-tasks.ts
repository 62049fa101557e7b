import type { A2aBindingName, A2aVersion, AgentId } from "@a2a-relay/protocol";
import { REMOTE_TASKS_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  RemoteAnswer,
  RemoteContextQuery,
  RemoteTask,
  RemoteTaskStore,
  TimedRemoteTask,
  TimedRemoteTaskQuery,
} from "../../core/ports/remote-tasks.ts";
import { originOf } from "../../core/rules/egress-policy.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { putAll, type Table } from "./table.ts";
import { lockTasks } from "./tasks.ts";

const SQL = {
  get: "select * from remote_task where tenant = $1 and task_id = $2",
  // Steps from tenant to tenant, without reading all that each has.
  timed: `
    with recursive tenants as (
      (select tenant from remote_task where next_at_ms is not null order by tenant limit 1)
      union all
      select next.tenant from tenants t cross join lateral (
        select r.tenant from remote_task r where r.next_at_ms is not null and r.tenant > t.tenant
        order by r.tenant limit 1) as next)
    select timed.* from tenants t cross join lateral (
      select r.tenant, r.task_id, r.origin, r.next_at_ms, r.failures from remote_task r
      where r.tenant = t.tenant and r.next_at_ms is not null and r.origin <> all (array(
        select f.origin from unnest($2::text[], $3::text[]) as f (tenant, origin) where f.tenant = t.tenant))
      order by r.next_at_ms, r.task_id limit $1) as timed`,
  context: `
    select r.remote_context_id from remote_task r
    where r.tenant = $1 and r.agent_id = $2 and r.requester = $3 and r.thread_id = $4 and r.url = $5
      and r.remote_context_id is not null
      and exists (select 1 from task t where t.tenant = $1 and t.id = r.task_id and t.created_at_ms >= $6)
    order by r.task_id desc limit 1`,
};

const REMOTE_TASKS: Table<RemoteTask> = {
  name: "remote_task",
  key: ["tenant", "task_id"],
  clash: "remote_task",
  columns: `tenant task_id agent_id requester thread_id url origin binding dialect a2a_tenant remote_task_id
    remote_context_id status_digest changed_at_ms next_at_ms failures misses answer_json`.split(/\s+/),
  row: (task) => ({
    tenant: task.tenant,
    task_id: task.taskId,
    agent_id: task.agentId,
    requester: task.requester,
    thread_id: task.threadId,
    url: task.url,
    origin: originOf(task),
    binding: task.binding,
    dialect: task.dialect,
    a2a_tenant: task.a2aTenant,
    remote_task_id: task.remoteTaskId,
    remote_context_id: task.remoteContextId,
    status_digest: task.statusDigest,
    changed_at_ms: task.changedAtMs,
    next_at_ms: task.nextAtMs,
    failures: task.failures,
    misses: task.misses,
    answer_json: task.answer === null ? null : JSON.stringify(task.answer),
  }),
};

/** Tasks that remote agents work on. */
export class RemoteTasks implements RemoteTaskStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, taskId: string): Promise<RemoteTask | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.get, [tenant, taskId]);
    return row === undefined ? undefined : fromRow(row);
  }

  async timed({ limit, fullOrigins }: TimedRemoteTaskQuery): Promise<readonly TimedRemoteTask[]> {
    const full = [...fullOrigins].flatMap(([tenant, origins]) =>
      origins.map((origin) => ({ tenant, origin })),
    );
    const rows = await this.#database.rows(SQL.timed, [
      limit,
      full.map(({ tenant }) => tenant),
      full.map(({ origin }) => origin),
    ]);
    return rows.map((row) => timedFromRow(row));
  }

  async contextId(query: RemoteContextQuery): Promise<string | undefined> {
    const { tenant, agentId, requester, threadId, url, sinceMs } = query;
    const row = await this.#database
      .ofTenant(tenant)
      .row(SQL.context, [tenant, agentId, requester, threadId, url, sinceMs]);
    return row?.["remote_context_id"] as string | undefined;
  }

  /** Refuses a new one whose task was retired since the caller read it: retention would never remove such a row. */
  async putAll(transaction: Transaction, tasks: readonly RemoteTask[]): Promise<void> {
    await lockTasks(
      transaction,
      tasks.filter(({ version }) => version === 0),
      "remote_task",
    );
    await putAll(transaction, REMOTE_TASKS, tasks);
    if (tasks.some(({ answer }) => answer !== null)) transaction.wake(REMOTE_TASKS_TOPIC);
  }
}

function timedFromRow(row: Row): TimedRemoteTask {
  return {
    tenant: row["tenant"] as string,
    taskId: row["task_id"] as string,
    origin: row["origin"] as string,
    nextAtMs: row["next_at_ms"] as number,
    failures: row["failures"] as number,
  };
}

function fromRow(row: Row): RemoteTask {
  return {
    tenant: row["tenant"] as string,
    taskId: row["task_id"] as string,
    agentId: row["agent_id"] as AgentId,
    requester: row["requester"] as AgentId,
    threadId: row["thread_id"] as string,
    url: row["url"] as string,
    binding: row["binding"] as A2aBindingName,
    dialect: row["dialect"] as A2aVersion,
    a2aTenant: row["a2a_tenant"] as string | null,
    remoteTaskId: row["remote_task_id"] as string | null,
    remoteContextId: row["remote_context_id"] as string | null,
    statusDigest: row["status_digest"] as string | null,
    changedAtMs: row["changed_at_ms"] as number,
    nextAtMs: row["next_at_ms"] as number | null,
    failures: row["failures"] as number,
    misses: row["misses"] as number,
    version: row["version"] as number,
    answer: row["answer_json"] === null ? null : (JSON.parse(row["answer_json"] as string) as RemoteAnswer),
  };
}
