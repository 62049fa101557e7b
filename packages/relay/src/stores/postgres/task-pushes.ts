import { type A2aVersion, type AgentId, LIMITS } from "@a2a-relay/protocol";
import { TASK_PUSHES_TOPIC } from "../../core/ports/change-feed.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import type {
  DueTaskPushes,
  TaskPushConfig,
  TaskPushKey,
  TaskPushShare,
  TaskPushStore,
} from "../../core/ports/task-pushes.ts";
import { originOf } from "../../core/rules/egress-policy.ts";
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { putAll, type Table } from "./table.ts";
import { lockTasks } from "./tasks.ts";

/** Due configurations of one owner that one read ranks. */
const RANKED_MAX = 2_000;

/** Steps from owner to owner, without reading all that is due. */
const OWNERS = `
  with recursive owners as (
    (select tenant, owner from task_push_config where state = 'active' and next_at_ms is not null
     order by tenant, owner limit 1)
    union all
    select next.* from owners o cross join lateral (
      select c.tenant, c.owner from task_push_config c
      where c.state = 'active' and c.next_at_ms is not null and (c.tenant, c.owner) > (o.tenant, o.owner)
      order by c.tenant, c.owner limit 1) as next)`;

const SQL = {
  one: "select * from task_push_config where tenant = $1 and task_id = $2 and id = $3",
  ofTask: "select * from task_push_config where tenant = $1 and task_id = $2 order by id",
  // Limits the share of each receiver, so that one with many due configurations does not hide the others.
  due: `${OWNERS}
    select config.* from owners o cross join lateral (
      select task_id, id from (
        select task_id, id, next_at_ms,
          row_number() over (partition by origin order by next_at_ms, task_id, id) as rank
        from (
          select c.task_id, c.id, c.origin, c.next_at_ms from task_push_config c
          where c.state = 'active' and c.tenant = o.tenant and c.owner = o.owner and c.next_at_ms <= $1
          order by c.next_at_ms, c.origin, c.task_id, c.id limit ${RANKED_MAX}) as first) as ranked
      where rank <= $2 order by next_at_ms, task_id, id limit $3) as due
    join task_push_config config on config.tenant = o.tenant and config.task_id = due.task_id and config.id = due.id
    order by o.tenant, o.owner, config.next_at_ms, config.task_id, config.id`,
  nextTime: `${OWNERS}
    select min(next.at_ms) as at_ms from owners o cross join lateral (
      select c.next_at_ms as at_ms from task_push_config c
      where c.state = 'active' and c.tenant = o.tenant and c.owner = o.owner and c.next_at_ms > $1
      order by c.next_at_ms limit 1) as next`,
  makeDue: `
    update task_push_config c set next_at_ms = coalesce(c.next_at_ms, due.at_ms), version = c.version + 1
    from unnest($1::text[], $2::text[], $3::bigint[]) as due (tenant, task_id, at_ms)
    where c.tenant = due.tenant and c.task_id = due.task_id and c.state = 'active'`,
  overLimit: `
    select 1 from unnest($1::text[], $2::text[], $3::text[]) as wanted (tenant, task_id, owner)
    where $4 < (
      select count(*) from task_push_config c
      where c.tenant = wanted.tenant and c.task_id = wanted.task_id and c.owner = wanted.owner)
    limit 1`,
  remove: `
    delete from task_push_config c using unnest($1::text[], $2::text[], $3::text[]) as gone (tenant, task_id, id)
    where c.tenant = gone.tenant and c.task_id = gone.task_id and c.id = gone.id`,
};

const CONFIGS: Table<TaskPushConfig> = {
  name: "task_push_config",
  key: ["tenant", "task_id", "id"],
  clash: "task_push",
  columns:
    `tenant task_id id owner url origin token scheme credentials dialect state reason after_n attempts given_up
    next_at_ms sent_at_ms created_at_ms`.split(/\s+/),
  row: (config) => ({
    tenant: config.tenant,
    task_id: config.taskId,
    id: config.id,
    owner: config.owner,
    url: config.url,
    origin: originOf(config),
    token: config.token,
    scheme: config.scheme,
    credentials: config.credentials,
    dialect: config.dialect,
    state: config.state,
    reason: config.reason,
    after_n: config.afterN,
    attempts: config.attempts,
    given_up: config.givenUp,
    next_at_ms: config.nextAtMs,
    sent_at_ms: config.sentAtMs,
    created_at_ms: config.createdAtMs,
  }),
};

/** The push configurations that A2A callers make for their tasks. */
export class TaskPushes implements TaskPushStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, taskId: string, id: string): Promise<TaskPushConfig | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.one, [tenant, taskId, id]);
    return row === undefined ? undefined : configFromRow(row);
  }

  async ofTask(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]> {
    return (await this.#database.ofTenant(tenant).rows(SQL.ofTask, [tenant, taskId])).map((row) =>
      configFromRow(row),
    );
  }

  async due(nowMs: number, share: TaskPushShare): Promise<DueTaskPushes> {
    const [rows, next] = await Promise.all([
      this.#database.rows(SQL.due, [nowMs, share.ofReceiver, share.ofOwner]),
      this.#database.row(SQL.nextTime, [nowMs]),
    ]);
    return {
      due: rows.map((row) => configFromRow(row)),
      nextAtMs: (next?.["at_ms"] as number | null | undefined) ?? Infinity,
    };
  }

  async makeDue(transaction: Transaction, all: readonly Changes[]): Promise<void> {
    const due = all.flatMap(({ tenant, duePushes = [] }) =>
      duePushes.map(({ taskId, atMs }) => ({ tenant, taskId, atMs })),
    );
    if (due.length === 0) return;
    const updated = await transaction.run(SQL.makeDue, [
      due.map(({ tenant }) => tenant),
      due.map(({ taskId }) => taskId),
      due.map(({ atMs }) => atMs),
    ]);
    if (updated !== 0) transaction.wake(TASK_PUSHES_TOPIC);
  }

  async removeAll(transaction: Transaction, keys: readonly TaskPushKey[]): Promise<void> {
    if (keys.length === 0) return;
    await transaction.run(SQL.remove, [
      keys.map(({ tenant }) => tenant),
      keys.map(({ taskId }) => taskId),
      keys.map(({ id }) => id),
    ]);
  }

  /** Refuses a new one whose task was retired, or whose owner has reached the limit, since the caller read it. */
  async putAll(transaction: Transaction, configs: readonly TaskPushConfig[]): Promise<void> {
    const fresh = configs.filter(({ version }) => version === 0);
    await lockTasks(transaction, fresh, "task_push");
    await putAll(transaction, CONFIGS, configs);
    if (fresh.length > 0) {
      const over = await transaction.row(SQL.overLimit, [
        fresh.map(({ tenant }) => tenant),
        fresh.map(({ taskId }) => taskId),
        fresh.map(({ owner }) => owner),
        LIMITS.pushConfigsOfTaskMax,
      ]);
      if (over !== undefined) throw new ClashError("task_push");
    }
    const isDue = ({ state, nextAtMs, sentAtMs }: TaskPushConfig): boolean =>
      state === "active" && nextAtMs !== null && sentAtMs === null;
    if (configs.some((config) => isDue(config))) transaction.wake(TASK_PUSHES_TOPIC);
  }
}

function configFromRow(row: Row): TaskPushConfig {
  return {
    tenant: row["tenant"] as string,
    taskId: row["task_id"] as string,
    id: row["id"] as string,
    owner: row["owner"] as AgentId,
    url: row["url"] as string,
    token: row["token"] as string | null,
    scheme: row["scheme"] as string | null,
    credentials: row["credentials"] as string | null,
    dialect: row["dialect"] as A2aVersion,
    state: row["state"] as TaskPushConfig["state"],
    reason: row["reason"] as string | null,
    afterN: row["after_n"] as number,
    attempts: row["attempts"] as number,
    givenUp: row["given_up"] as number,
    nextAtMs: row["next_at_ms"] as number | null,
    sentAtMs: row["sent_at_ms"] as number | null,
    createdAtMs: row["created_at_ms"] as number,
    version: row["version"] as number,
  };
}
