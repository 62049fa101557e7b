import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import type { LapsedRecords, SweepStore } from "../../core/ports/sweeps.ts";
import type { Database } from "./database.ts";
import { deliveryFromRow } from "./deliveries.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { taskFromRow } from "./tasks.ts";

const WAITING = "(state = 'held' or state = 'available') and position >= 0";

const SQL = {
  overdue: `
    select * from task
    where deadline_ms is not null and deadline_ms <= $1
      and (state = 'submitted' or state = 'working' or state = 'input-required' or state = 'auth-required')
    order by deadline_ms limit $2`,
  timedOut: `
    select * from delivery
    where state = 'leased' and duplicate_safety = 'idempotent' and lease_expires_at_ms is not null
      and lease_expires_at_ms <= $1
    order by lease_expires_at_ms limit $2`,
  // Steps from tenant to tenant in the index, so that a sweep reads only what has expired.
  expired: `
    with recursive tenants (tenant) as (
      select min(tenant) from delivery where ${WAITING}
      union all
      select (select min(d.tenant) from delivery d where ${WAITING} and d.tenant > tenants.tenant)
      from tenants where tenants.tenant is not null)
    select d.* from tenants
    cross join lateral (
      select * from delivery where tenant = tenants.tenant and ${WAITING} and expires_at_ms <= $1
      order by expires_at_ms limit $2) d
    limit $2`,
  ref: "select ref from delivery where tenant = $1 and message_id = $2",
  heldWork: `
    select * from delivery
    where state = 'held' and purpose = 'work' and (tenant, agent_id, ref) > ($1, $2, $3)
    order by tenant, agent_id, ref limit $4`,
};

export class Sweeps implements SweepStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async lapsed(nowMs: number, limit: number): Promise<LapsedRecords> {
    const [overdue, timedOut, expired] = await Promise.all(
      [SQL.overdue, SQL.timedOut, SQL.expired].map((sql) => this.#database.rows(sql, [nowMs, limit])),
    );
    return {
      overdueTasks: (overdue ?? []).map((row) => taskFromRow(row)),
      timedOut: (timedOut ?? []).map((row) => deliveryFromRow(row)),
      expired: (expired ?? []).map((row) => deliveryFromRow(row)),
    };
  }

  async heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]> {
    const last =
      after === undefined ? undefined : await this.#database.row(SQL.ref, [after.tenant, after.messageId]);
    const start =
      after === undefined || last === undefined ? ["", "", 0] : [after.tenant, after.agentId, last["ref"]];
    const rows = await this.#database.rows(SQL.heldWork, [...start, limit]);
    return rows.map((row) => deliveryFromRow(row));
  }
}
