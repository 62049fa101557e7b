import type { DatabaseSync } from "node:sqlite";
import type { A2aVersion, AgentId } from "@a2a-relay/protocol";
import { REMOTE_TASKS_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  RemoteAnswer,
  RemoteBinding,
  RemoteContextQuery,
  RemoteTask,
  TimedRemoteTask,
  TimedRemoteTaskQuery,
} from "../../core/ports/remote-tasks.ts";
import { originOf } from "../../core/rules/egress-policy.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

const COLUMNS = `tenant, task_id, agent_id, requester, thread_id, url, binding, dialect, a2a_tenant, remote_task_id,
  remote_context_id, status_digest, changed_at_ms, next_at_ms, failures, misses, version, answer_json`;

const SELECT = `select ${COLUMNS} from remote_task where tenant = ? and task_id = ?`;
// From one tenant to the next, without a walk through all that waits in each.
const NEXT_TENANT = `
  select tenant from remote_task indexed by remote_task_due
  where next_at_ms is not null and tenant > ? order by tenant limit 1`;
const TIMED = `
  select tenant, task_id, origin, next_at_ms, failures from remote_task indexed by remote_task_due
  where tenant = ? and next_at_ms is not null and origin not in (select value from json_each(?))
  order by next_at_ms, task_id limit ?`;
const CONTEXT = `
  select remote_context_id from remote_task indexed by remote_task_thread
  where tenant = ?1 and agent_id = ?2 and requester = ?3 and thread_id = ?4 and url = ?5
    and remote_context_id is not null
    and exists (select 1 from task where tenant = ?1 and id = task_id and created_at_ms >= ?6)
  order by task_id desc limit 1`;
// Its task may have been retired since it was looked at: nobody would ever remove such a row.
const INSERT = `
  insert into remote_task (agent_id, requester, thread_id, url, origin, binding, dialect, a2a_tenant, remote_task_id,
    remote_context_id, status_digest, changed_at_ms, next_at_ms, failures, misses, answer_json, version, tenant,
    task_id)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 1, ?17, ?18
  where exists (select 1 from task where tenant = ?17 and id = ?18)
  on conflict do nothing`;
const UPDATE = `
  update remote_task set agent_id = ?, requester = ?, thread_id = ?, url = ?, origin = ?, binding = ?, dialect = ?,
    a2a_tenant = ?, remote_task_id = ?, remote_context_id = ?, status_digest = ?, changed_at_ms = ?, next_at_ms = ?,
    failures = ?, misses = ?, answer_json = ?, version = version + 1
  where tenant = ? and task_id = ? and version = ?`;
const FORGET = "delete from remote_task where tenant = ? and task_id = ?";

/** Tasks that agents elsewhere work on. */
export class RemoteTasks {
  readonly #ledger: Ledger;
  readonly #select: Statement;
  readonly #nextTenant: Statement;
  readonly #timed: Statement;
  readonly #context: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#select = prepare(database, SELECT);
    this.#nextTenant = prepare(database, NEXT_TENANT);
    this.#timed = prepare(database, TIMED);
    this.#context = prepare(database, CONTEXT);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#forget = prepare(database, FORGET);
  }

  task(tenant: string, taskId: string): RemoteTask | undefined {
    const row = this.#select.get(tenant, taskId);
    return row === undefined ? undefined : fromRow(row);
  }

  timed({ limit, fullOrigins }: TimedRemoteTaskQuery): readonly TimedRemoteTask[] {
    const timed: TimedRemoteTask[] = [];
    for (let tenant = ""; ;) {
      const [next] = this.#nextTenant.get(tenant) ?? [];
      if (next === undefined) return timed;
      tenant = String(next);
      const full = JSON.stringify(fullOrigins.get(tenant) ?? []);
      timed.push(...this.#timed.all(tenant, full, limit).map((row) => timedFromRow(row)));
    }
  }

  contextId(query: RemoteContextQuery): string | undefined {
    const { tenant, agentId, requester, threadId, url, sinceMs } = query;
    const row = this.#context.get(tenant, agentId, requester, threadId, url, sinceMs);
    return row?.[0] as string | undefined;
  }

  /** Inside a commit. Whoever follows them is woken for what there is to put on record. */
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
    const { changes } =
      task.version === 0 ? this.#insert.run(...values) : this.#update.run(...values, task.version);
    if (changes === 0) throw new ClashError("remote_task");
    if (task.answer !== null) this.#ledger.wake(REMOTE_TASKS_TOPIC);
  }

  /** Inside a commit. */
  forget(tenant: string, taskId: string): void {
    this.#forget.run(tenant, taskId);
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
    binding: row[6] as RemoteBinding,
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
