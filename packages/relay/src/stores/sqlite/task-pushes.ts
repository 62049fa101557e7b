import type { DatabaseSync } from "node:sqlite";
import { type A2aVersion, type AgentId, LIMITS } from "@a2a-relay/protocol";
import type { TaskPushConfig, TaskPushKey } from "../../core/a2a/task-push-record.ts";
import { TASK_PUSHES_TOPIC } from "../../core/environment/change-feed.ts";
import type { TaskUpdate } from "../../core/tasks/task-update.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

const COLUMNS = `tenant, task_id, id, owner, url, token, scheme, credentials, dialect, state, reason, after_n,
  attempts, given_up, next_at_ms, created_at_ms, version`;

const ONE = `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? and id = ?`;
const OF_TASK = `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? order by id`;
// From one tenant to the next, without a walk through all that waits in each.
const NEXT_TENANT = `
  select tenant from task_push_config indexed by task_push_config_due
  where state = 'active' and next_at_ms is not null and tenant > ? order by tenant limit 1`;
const DUE = `
  select ${COLUMNS} from task_push_config indexed by task_push_config_due
  where state = 'active' and tenant = ? and next_at_ms <= ? order by next_at_ms, task_id, id limit ?`;
// The task may be retired, or get its last place taken, between the look at it and this.
const INSERT = `
  insert into task_push_config (owner, url, token, scheme, credentials, dialect, state, reason, after_n, attempts,
    given_up, next_at_ms, created_at_ms, version, tenant, task_id, id)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, ?14, ?15, ?16
  where exists (select 1 from task where tenant = ?14 and id = ?15)
    and (select count(*) from task_push_config where tenant = ?14 and task_id = ?15) < ?17
  on conflict do nothing`;
const UPDATE = `
  update task_push_config set owner = ?, url = ?, token = ?, scheme = ?, credentials = ?, dialect = ?, state = ?,
    reason = ?, after_n = ?, attempts = ?, given_up = ?, next_at_ms = ?, created_at_ms = ?, version = version + 1
  where tenant = ? and task_id = ? and id = ? and version = ?`;
const MAKE_DUE = `
  update task_push_config set next_at_ms = coalesce(next_at_ms, ?), version = version + 1
  where tenant = ? and task_id = ? and state = 'active'`;
const FORGET = "delete from task_push_config where tenant = ? and task_id = ? and id = ?";
const FORGET_TASK = "delete from task_push_config where tenant = ? and task_id = ?";

/** Where A2A callers want to be told of their tasks. */
export class TaskPushes {
  readonly #ledger: Ledger;
  readonly #one: Statement;
  readonly #ofTask: Statement;
  readonly #nextTenant: Statement;
  readonly #due: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #makeDue: Statement;
  readonly #forget: Statement;
  readonly #forgetTask: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#one = prepare(database, ONE);
    this.#ofTask = prepare(database, OF_TASK);
    this.#nextTenant = prepare(database, NEXT_TENANT);
    this.#due = prepare(database, DUE);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#makeDue = prepare(database, MAKE_DUE);
    this.#forget = prepare(database, FORGET);
    this.#forgetTask = prepare(database, FORGET_TASK);
  }

  config(tenant: string, taskId: string, id: string): TaskPushConfig | undefined {
    const row = this.#one.get(tenant, taskId, id);
    return row === undefined ? undefined : configFromRow(row);
  }

  ofTask(tenant: string, taskId: string): readonly TaskPushConfig[] {
    return this.#ofTask.all(tenant, taskId).map((row) => configFromRow(row));
  }

  due(nowMs: number, limit: number): readonly TaskPushConfig[] {
    const due: TaskPushConfig[] = [];
    for (let tenant = ""; ;) {
      const [next] = this.#nextTenant.get(tenant) ?? [];
      if (next === undefined) return due;
      tenant = String(next);
      for (const row of this.#due.all(tenant, nowMs, limit)) due.push(configFromRow(row));
    }
  }

  /** Inside a commit. Whoever sends is woken where there is a time to wait for. */
  put(config: TaskPushConfig): void {
    const values = [
      config.owner,
      config.url,
      config.token,
      config.scheme,
      config.credentials,
      config.dialect,
      config.state,
      config.reason,
      config.afterN,
      config.attempts,
      config.givenUp,
      config.nextAtMs,
      config.createdAtMs,
      config.tenant,
      config.taskId,
      config.id,
    ];
    const { changes } =
      config.version === 0
        ? this.#insert.run(...values, LIMITS.pushConfigsOfTaskMax)
        : this.#update.run(...values, config.version);
    if (changes === 0) throw new ClashError("task_push");
    if (config.state === "active" && config.nextAtMs !== null) this.#ledger.wake(TASK_PUSHES_TOPIC);
  }

  /** Inside a commit, beside an update of the task. */
  makeDue({ tenant, taskId, atMs }: TaskUpdate): void {
    const { changes } = this.#makeDue.run(atMs, tenant, taskId);
    if (changes !== 0) this.#ledger.wake(TASK_PUSHES_TOPIC);
  }

  /** Inside a commit. One that is not there is no clash. */
  forget({ tenant, taskId, id }: TaskPushKey): void {
    this.#forget.run(tenant, taskId, id);
  }

  /** Inside a commit. */
  forgetTask(tenant: string, taskId: string): void {
    this.#forgetTask.run(tenant, taskId);
  }
}

function configFromRow(row: Row): TaskPushConfig {
  return {
    tenant: row[0] as string,
    taskId: row[1] as string,
    id: row[2] as string,
    owner: row[3] as AgentId,
    url: row[4] as string,
    token: row[5] as string | null,
    scheme: row[6] as string | null,
    credentials: row[7] as string | null,
    dialect: row[8] as A2aVersion,
    state: row[9] as TaskPushConfig["state"],
    reason: row[10] as string | null,
    afterN: row[11] as number,
    attempts: row[12] as number,
    givenUp: row[13] as number,
    nextAtMs: row[14] as number | null,
    createdAtMs: row[15] as number,
    version: row[16] as number,
  };
}
