import type { DatabaseSync } from "node:sqlite";
import type { A2aVersion, AgentId } from "@a2a-relay/protocol";
import { REMOTE_TASKS_TOPIC } from "../../core/environment/change-feed.ts";
import type { RemoteBinding } from "../../core/remote/remote-interface.ts";
import type { RemoteAnswer, RemoteTask } from "../../core/remote/remote-task.ts";
import type { RemoteContextQuery } from "../../core/remote/remote-task-store.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

const COLUMNS = `tenant, task_id, agent_id, thread_id, url, binding, dialect, a2a_tenant, remote_task_id,
  remote_context_id, status_digest, changed_at_ms, next_at_ms, failures, misses, version, answer_json`;

const SELECT = `select ${COLUMNS} from remote_task where tenant = ? and task_id = ?`;
const DUE = `
  select ${COLUMNS} from remote_task indexed by remote_task_due
  where next_at_ms is not null and next_at_ms <= ? order by next_at_ms, tenant, task_id limit ?`;
const CONTEXT = `
  select remote_context_id from remote_task indexed by remote_task_thread
  where tenant = ? and agent_id = ? and thread_id = ? and url = ? and remote_context_id is not null
  order by task_id desc limit 1`;
// Its task may have been retired since it was looked at: nobody would ever remove such a row.
const INSERT = `
  insert into remote_task (agent_id, thread_id, url, binding, dialect, a2a_tenant, remote_task_id, remote_context_id,
    status_digest, changed_at_ms, next_at_ms, failures, misses, answer_json, version, tenant, task_id)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 1, ?15, ?16
  where exists (select 1 from task where tenant = ?15 and id = ?16)
  on conflict do nothing`;
const UPDATE = `
  update remote_task set agent_id = ?, thread_id = ?, url = ?, binding = ?, dialect = ?, a2a_tenant = ?,
    remote_task_id = ?, remote_context_id = ?, status_digest = ?, changed_at_ms = ?, next_at_ms = ?, failures = ?,
    misses = ?, answer_json = ?, version = version + 1
  where tenant = ? and task_id = ? and version = ?`;
const FORGET = "delete from remote_task where tenant = ? and task_id = ?";

/** Tasks that agents elsewhere work on. */
export class RemoteTasks {
  readonly #ledger: Ledger;
  readonly #select: Statement;
  readonly #due: Statement;
  readonly #context: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#select = prepare(database, SELECT);
    this.#due = prepare(database, DUE);
    this.#context = prepare(database, CONTEXT);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#forget = prepare(database, FORGET);
  }

  task(tenant: string, taskId: string): RemoteTask | undefined {
    const row = this.#select.get(tenant, taskId);
    return row === undefined ? undefined : fromRow(row);
  }

  due(nowMs: number, limit: number): readonly RemoteTask[] {
    return this.#due.all(nowMs, limit).map((row) => fromRow(row));
  }

  contextId({ tenant, agentId, threadId, url }: RemoteContextQuery): string | undefined {
    return this.#context.get(tenant, agentId, threadId, url)?.[0] as string | undefined;
  }

  /** Inside a commit. Whoever follows them is woken for what there is to put on record. */
  put(task: RemoteTask): void {
    const values = [
      task.agentId,
      task.threadId,
      task.url,
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

function fromRow(row: Row): RemoteTask {
  return {
    tenant: row[0] as string,
    taskId: row[1] as string,
    agentId: row[2] as AgentId,
    threadId: row[3] as string,
    url: row[4] as string,
    binding: row[5] as RemoteBinding,
    dialect: row[6] as A2aVersion,
    a2aTenant: row[7] as string | null,
    remoteTaskId: row[8] as string | null,
    remoteContextId: row[9] as string | null,
    statusDigest: row[10] as string | null,
    changedAtMs: row[11] as number,
    nextAtMs: row[12] as number | null,
    failures: row[13] as number,
    misses: row[14] as number,
    version: row[15] as number,
    answer: row[16] === null ? null : (JSON.parse(row[16] as string) as RemoteAnswer),
  };
}
