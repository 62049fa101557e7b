import type { DatabaseSync } from "node:sqlite";
import { type A2aVersion, type AgentId, LIMITS } from "@a2a-relay/protocol";
import { originOf } from "../../core/rules/egress-policy.ts";
import type {
  DueTaskPushes,
  TaskPushConfig,
  TaskPushKey,
  TaskPushShare,
} from "../../core/ports/task-pushes.ts";
import { TASK_PUSHES_TOPIC } from "../../core/ports/change-feed.ts";
import type { TaskUpdate } from "../../core/ports/tasks.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

/** Due configurations of one owner that are walked in one look. */
const WALKED_MAX = 2_000;

const COLUMNS = `tenant, task_id, id, owner, url, token, scheme, credentials, dialect, state, reason, after_n,
  attempts, given_up, next_at_ms, created_at_ms, version`;

const ONE = `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? and id = ?`;
const OF_TASK = `select ${COLUMNS} from task_push_config where tenant = ? and task_id = ? order by id`;
// From one owner to the next, each with what falls due first, without a walk through all that waits for it.
const NEXT_OWNER = `
  select tenant, owner, next_at_ms from task_push_config indexed by task_push_config_due
  where state = 'active' and next_at_ms is not null and (tenant, owner) > (?, ?)
  order by tenant, owner, next_at_ms limit 1`;
const DUE = `
  select ${COLUMNS} from task_push_config indexed by task_push_config_due
  where state = 'active' and tenant = ? and owner = ? and next_at_ms <= ?
  order by next_at_ms, origin, task_id, id limit ?`;
// However many wait for one receiver, they are no more than its share, so that those behind them are seen.
const DUE_BY_RECEIVER = `
  select ${COLUMNS} from (
    select task_id as due_task_id, id as due_id,
      row_number() over (partition by origin order by next_at_ms, task_id, id) as place
    from (
      select task_id, id, origin, next_at_ms from task_push_config indexed by task_push_config_due
      where state = 'active' and tenant = ?1 and owner = ?2 and next_at_ms <= ?3
      order by next_at_ms, origin, task_id, id limit ${WALKED_MAX}))
  join task_push_config on tenant = ?1 and task_id = due_task_id and id = due_id
  where place <= ?4 order by next_at_ms, task_id, id limit ?5`;
const NEXT_TIME = `
  select min(next_at_ms) from task_push_config indexed by task_push_config_due
  where state = 'active' and tenant = ? and owner = ? and next_at_ms > ?`;
// The task may be retired, or get the owner's last place taken, between the look at it and this.
const INSERT = `
  insert into task_push_config (owner, url, token, scheme, credentials, dialect, state, reason, after_n, attempts,
    given_up, next_at_ms, created_at_ms, origin, version, tenant, task_id, id)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 1, ?15, ?16, ?17
  where exists (select 1 from task where tenant = ?15 and id = ?16)
    and (select count(*) from task_push_config where tenant = ?15 and task_id = ?16 and owner = ?1) < ?18
  on conflict do nothing`;
const UPDATE = `
  update task_push_config set owner = ?, url = ?, token = ?, scheme = ?, credentials = ?, dialect = ?, state = ?,
    reason = ?, after_n = ?, attempts = ?, given_up = ?, next_at_ms = ?, created_at_ms = ?, origin = ?,
    version = version + 1
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
  readonly #nextOwner: Statement;
  readonly #due: Statement;
  readonly #dueByReceiver: Statement;
  readonly #nextTime: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #makeDue: Statement;
  readonly #forget: Statement;
  readonly #forgetTask: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#one = prepare(database, ONE);
    this.#ofTask = prepare(database, OF_TASK);
    this.#nextOwner = prepare(database, NEXT_OWNER);
    this.#due = prepare(database, DUE);
    this.#dueByReceiver = prepare(database, DUE_BY_RECEIVER);
    this.#nextTime = prepare(database, NEXT_TIME);
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

  agenda(nowMs: number, share: TaskPushShare): DueTaskPushes {
    const due: TaskPushConfig[] = [];
    let nextAtMs = Infinity;
    for (let [tenant, owner] = ["", ""]; ;) {
      const next = this.#nextOwner.get(tenant, owner);
      if (next === undefined) return { due, nextAtMs };
      [tenant, owner] = [next[0] as string, next[1] as string];
      let firstMs = next[2] as number | null;
      if (Number(firstMs) <= nowMs) {
        for (const row of this.#dueOf(tenant, owner, nowMs, share)) due.push(configFromRow(row));
        firstMs = (this.#nextTime.get(tenant, owner, nowMs)?.[0] ?? null) as number | null;
      }
      nextAtMs = Math.min(nextAtMs, firstMs ?? Infinity);
    }
  }

  /** Mostly there are so few that no receiver can have more than its share. */
  #dueOf(
    tenant: string,
    owner: string,
    nowMs: number,
    { ofOwner, ofReceiver }: TaskPushShare,
  ): readonly Row[] {
    const few = Math.min(ofOwner, ofReceiver);
    const rows = this.#due.all(tenant, owner, nowMs, few + 1);
    return rows.length <= few ? rows : this.#dueByReceiver.all(tenant, owner, nowMs, ofReceiver, ofOwner);
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
      originOf(config),
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
