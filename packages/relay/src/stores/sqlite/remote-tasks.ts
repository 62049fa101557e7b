import type { A2aBindingName, A2aVersion, AgentId } from "@a2a-relay/protocol";
import { originOf } from "../../core/rules/egress-policy.ts";
import { REMOTE_TASKS_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  RemoteAnswer,
  RemoteContextQuery,
  RemoteTask,
  RemoteTaskStore,
  TimedRemoteTask,
  TimedRemoteTaskQuery,
} from "../../core/ports/remote-tasks.ts";
import { ClashError, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import type { StoreState } from "./store-state.ts";

const COLUMNS = `tenant, task_id, agent_id, requester, thread_id, url, binding, dialect, a2a_tenant, remote_task_id,
  remote_context_id, status_digest, changed_at_ms, next_at_ms, failures, misses, version, answer_json`;

const SQL = {
  select: `select ${COLUMNS} from remote_task where tenant = ? and task_id = ?`,
  // Steps from tenant to tenant, without reading all that each has.
  nextTenant: `
    select tenant from remote_task indexed by remote_task_due
    where next_at_ms is not null and tenant > ? order by tenant limit 1`,
  timed: `
    select tenant, task_id, origin, next_at_ms, failures from remote_task indexed by remote_task_due
    where tenant = ? and next_at_ms is not null and origin not in (select value from json_each(?))
    order by next_at_ms, task_id limit ?`,
  context: `
    select remote_context_id from remote_task indexed by remote_task_thread
    where tenant = ?1 and agent_id = ?2 and requester = ?3 and thread_id = ?4 and url = ?5
      and remote_context_id is not null
      and exists (select 1 from task where tenant = ?1 and id = task_id and created_at_ms >= ?6)
    order by task_id desc limit 1`,
  // Refuses a task that was retired since the caller read it: retention would never remove such a row.
  insert: `
    insert into remote_task (agent_id, requester, thread_id, url, origin, binding, dialect, a2a_tenant, remote_task_id,
      remote_context_id, status_digest, changed_at_ms, next_at_ms, failures, misses, answer_json, version, tenant,
      task_id)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 1, ?17, ?18
    where exists (select 1 from task where tenant = ?17 and id = ?18)
    on conflict do nothing`,
  update: `
    update remote_task set agent_id = ?, requester = ?, thread_id = ?, url = ?, origin = ?, binding = ?, dialect = ?,
      a2a_tenant = ?, remote_task_id = ?, remote_context_id = ?, status_digest = ?, changed_at_ms = ?, next_at_ms = ?,
      failures = ?, misses = ?, answer_json = ?, version = version + 1
    where tenant = ? and task_id = ? and version = ?`,
  remove: "delete from remote_task where tenant = ? and task_id = ?",
};

/** Tasks that remote agents work on. */
export class RemoteTasks implements RemoteTaskStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, taskId: string): Promise<RemoteTask | undefined> {
    const row = this.#sql.select.get(tenant, taskId);
    return row === undefined ? undefined : fromRow(row);
  }

  async timed({ limit, fullOrigins }: TimedRemoteTaskQuery): Promise<readonly TimedRemoteTask[]> {
    const timed: TimedRemoteTask[] = [];
    for (let tenant = ""; ;) {
      const [next] = this.#sql.nextTenant.get(tenant) ?? [];
      if (next === undefined) return timed;
      tenant = String(next);
      const full = JSON.stringify(fullOrigins.get(tenant) ?? []);
      timed.push(...this.#sql.timed.all(tenant, full, limit).map((row) => timedFromRow(row)));
    }
  }

  async contextId(query: RemoteContextQuery): Promise<string | undefined> {
    const { tenant, agentId, requester, threadId, url, sinceMs } = query;
    const row = this.#sql.context.get(tenant, agentId, requester, threadId, url, sinceMs);
    return row?.[0] as string | undefined;
  }

  put(task: RemoteTask): void {
    const values = [
      task.agentId,
      task.requester,
      task.threadId,
      task.url,
      originOf(task),
      task.binding,
      task.dialect,
      task.a2aTenant,
      task.remoteTaskId,
      task.remoteContextId,
      task.statusDigest,
      task.changedAtMs,
      task.nextAtMs,
      task.failures,
      task.misses,
      task.answer === null ? null : JSON.stringify(task.answer),
      task.tenant,
      task.taskId,
    ];
    const { insert, update } = this.#sql;
    const written = task.version === 0 ? insert.run(...values) : update.run(...values, task.version);
    if (written === 0) throw new ClashError("remote_task");
    if (task.answer !== null) this.#state.wake(REMOTE_TASKS_TOPIC);
  }

  remove(tenant: string, taskId: string): void {
    this.#sql.remove.run(tenant, taskId);
  }
}

function timedFromRow(row: Row): TimedRemoteTask {
  return {
    tenant: row[0] as string,
    taskId: row[1] as string,
    origin: row[2] as string,
    nextAtMs: row[3] as number,
    failures: row[4] as number,
  };
}

function fromRow(row: Row): RemoteTask {
  return {
    tenant: row[0] as string,
    taskId: row[1] as string,
    agentId: row[2] as AgentId,
    requester: row[3] as AgentId,
    threadId: row[4] as string,
    url: row[5] as string,
    binding: row[6] as A2aBindingName,
    dialect: row[7] as A2aVersion,
    a2aTenant: row[8] as string | null,
    remoteTaskId: row[9] as string | null,
    remoteContextId: row[10] as string | null,
    statusDigest: row[11] as string | null,
    changedAtMs: row[12] as number,
    nextAtMs: row[13] as number | null,
    failures: row[14] as number,
    misses: row[15] as number,
    version: row[16] as number,
    answer: row[17] === null ? null : (JSON.parse(row[17] as string) as RemoteAnswer),
  };
}
