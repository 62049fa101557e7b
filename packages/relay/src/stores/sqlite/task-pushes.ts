import { type A2aVersion, type AgentId, LIMITS } from "@a2a-relay/protocol";
import { originOf } from "../../core/rules/egress-policy.ts";
import { TASK_PUSHES_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  DueTaskPush,
  DueTaskPushes,
  TaskPushConfig,
  TaskPushKey,
  TaskPushShare,
  TaskPushStore,
} from "../../core/ports/task-pushes.ts";
import { ClashError, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import type { StoreState } from "./store-state.ts";

/** Due configurations of one owner that one read ranks. */
const RANKED_MAX = 2_000;

const COLUMNS = `tenant, task_id, id, owner, url, token, scheme, credentials, dialect, state, reason, after_n,
  attempts, given_up, next_at_ms, sent_at_ms, created_at_ms, version`;

const SQL = {
  one: `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? and id = ?`,
  ofTask: `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? order by id`,
  // Steps from owner to owner, each with its first due time, without reading all that is due.
  nextOwner: `
    select tenant, owner, next_at_ms from task_push_config indexed by task_push_config_due
    where state = 'active' and next_at_ms is not null and (tenant, owner) > (?, ?)
    order by tenant, owner, next_at_ms limit 1`,
  // Limits the share of each receiver, so that one with many due configurations does not hide the others.
  due: `
    select ${COLUMNS} from (
      select task_id as due_task_id, id as due_id,
        row_number() over (partition by origin order by next_at_ms, task_id, id) as rank
      from (
        select task_id, id, origin, next_at_ms from task_push_config indexed by task_push_config_due
        where state = 'active' and tenant = ?1 and owner = ?2 and next_at_ms <= ?3
        order by next_at_ms, origin, task_id, id limit ${RANKED_MAX}))
    join task_push_config on tenant = ?1 and task_id = due_task_id and id = due_id
    where rank <= ?4 order by next_at_ms, task_id, id limit ?5`,
  nextTime: `
    select min(next_at_ms) from task_push_config indexed by task_push_config_due
    where state = 'active' and tenant = ? and owner = ? and next_at_ms > ?`,
  // Refuses a task that was retired, or whose owner has reached the limit, since the caller read it.
  insert: `
    insert into task_push_config (owner, url, token, scheme, credentials, dialect, state, reason, after_n, attempts,
      given_up, next_at_ms, sent_at_ms, created_at_ms, origin, version, tenant, task_id, id)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 1, ?16, ?17, ?18
    where exists (select 1 from task where tenant = ?16 and id = ?17)
      and (select count(*) from task_push_config where tenant = ?16 and task_id = ?17 and owner = ?1) < ?19
    on conflict do nothing`,
  update: `
    update task_push_config set owner = ?, url = ?, token = ?, scheme = ?, credentials = ?, dialect = ?, state = ?,
      reason = ?, after_n = ?, attempts = ?, given_up = ?, next_at_ms = ?, sent_at_ms = ?, created_at_ms = ?,
      origin = ?, version = version + 1
    where tenant = ? and task_id = ? and id = ? and version = ?`,
  makeDue: `
    update task_push_config set next_at_ms = coalesce(next_at_ms, ?), version = version + 1
    where tenant = ? and task_id = ? and state = 'active'`,
  remove: "delete from task_push_config where tenant = ? and task_id = ? and id = ?",
  removeOfTask: "delete from task_push_config where tenant = ? and task_id = ?",
};

/** The push configurations that A2A callers make for their tasks. */
export class TaskPushes implements TaskPushStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, taskId: string, id: string): Promise<TaskPushConfig | undefined> {
    const row = this.#sql.one.get(tenant, taskId, id);
    return row === undefined ? undefined : configFromRow(row);
  }

  async ofTask(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]> {
    return this.#sql.ofTask.all(tenant, taskId).map((row) => configFromRow(row));
  }

  async due(nowMs: number, share: TaskPushShare): Promise<DueTaskPushes> {
    const due: TaskPushConfig[] = [];
    let nextAtMs = Infinity;
    for (let [tenant, owner] = ["", ""]; ;) {
      const next = this.#sql.nextOwner.get(tenant, owner);
      if (next === undefined) return { due, nextAtMs };
      [tenant, owner] = [next[0] as string, next[1] as string];
      let firstMs = next[2] as number | null;
      if (Number(firstMs) <= nowMs) {
        const rows = this.#sql.due.all(tenant, owner, nowMs, share.ofReceiver, share.ofOwner);
        due.push(...rows.map((row) => configFromRow(row)));
        firstMs = (this.#sql.nextTime.get(tenant, owner, nowMs)?.[0] ?? null) as number | null;
      }
      nextAtMs = Math.min(nextAtMs, firstMs ?? Infinity);
    }
  }

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
      config.sentAtMs,
      config.createdAtMs,
      originOf(config),
      config.tenant,
      config.taskId,
      config.id,
    ];
    const written =
      config.version === 0
        ? this.#sql.insert.run(...values, LIMITS.pushConfigsOfTaskMax)
        : this.#sql.update.run(...values, config.version);
    if (written === 0) throw new ClashError("task_push");
    const isDue = config.nextAtMs !== null && config.sentAtMs === null;
    if (config.state === "active" && isDue) this.#state.wake(TASK_PUSHES_TOPIC);
  }

  makeDue(tenant: string, { taskId, atMs }: DueTaskPush): void {
    const updated = this.#sql.makeDue.run(atMs, tenant, taskId);
    if (updated !== 0) this.#state.wake(TASK_PUSHES_TOPIC);
  }

  remove({ tenant, taskId, id }: TaskPushKey): void {
    this.#sql.remove.run(tenant, taskId, id);
  }

  removeOfTask(tenant: string, taskId: string): void {
    this.#sql.removeOfTask.run(tenant, taskId);
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
    sentAtMs: row[15] as number | null,
    createdAtMs: row[16] as number,
    version: row[17] as number,
  };
}
