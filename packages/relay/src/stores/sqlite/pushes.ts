import { type AgentId, LIMITS, PUSH_STATES, type PushMode, type PushState } from "@a2a-relay/protocol";
import { PUSH_ENDPOINTS_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  EndpointPage,
  EndpointStore,
  PushAttempt,
  PushEndpoint,
  PushFilter,
  PushRecord,
  PushStore,
} from "../../core/ports/pushes.ts";
import { ClashError, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import type { StoreState } from "./store-state.ts";

const ENDPOINT_COLUMNS = `tenant, agent_id, mode, url, notice, acknowledges, secret, old_secret,
  old_secret_until_ms, state, reason, failures, open_until_ms, after_position, version`;
const PUSH_COLUMNS = `tenant, message_id, agent_id, state, reason, attempts, attempts_before, created_at_ms,
  position, next_at_ms, sent_at_ms, version`;
const ATTEMPT_COLUMNS = "tenant, message_id, attempt, at_ms, duration_ms, status, error, answer";

const ENDPOINT_SQL = {
  select: `select ${ENDPOINT_COLUMNS} from push_endpoint where tenant = ? and agent_id = ?`,
  active: `
    select ${ENDPOINT_COLUMNS} from push_endpoint indexed by push_endpoint_active
    where state = 'active' and (tenant, agent_id) > (?, ?) order by tenant, agent_id limit ?`,
  disabled: `
    select ${ENDPOINT_COLUMNS} from push_endpoint as e
    where state = 'disabled' and (tenant, agent_id) > (?, ?) and exists (
      select 1 from push as p indexed by push_due
      where p.tenant = e.tenant and p.agent_id = e.agent_id and p.state = 'pending')
    order by tenant, agent_id limit ?`,
  insert: `
    insert into push_endpoint (mode, url, notice, acknowledges, secret, old_secret, old_secret_until_ms, state,
      reason, failures, open_until_ms, after_position, version, tenant, agent_id)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`,
  update: `
    update push_endpoint set mode = ?, url = ?, notice = ?, acknowledges = ?, secret = ?, old_secret = ?,
      old_secret_until_ms = ?, state = ?, reason = ?, failures = ?, open_until_ms = ?, after_position = ?,
      version = version + 1
    where tenant = ? and agent_id = ? and version = ?`,
};

const PUSH_SQL = {
  select: `select ${PUSH_COLUMNS} from push where tenant = ? and message_id = ?`,
  due: `
    select ${PUSH_COLUMNS} from push indexed by push_due
    where tenant = ? and agent_id = ? and state = 'pending' and next_at_ms <= ?
    order by next_at_ms, position, message_id limit ?`,
  ofAgent: `
    select ${PUSH_COLUMNS} from push indexed by push_of_agent
    where tenant = ? and agent_id = ? and state = ? order by created_at_ms desc, message_id desc limit ?`,
  countPending: `
    select count(*) from push indexed by push_due where tenant = ? and agent_id = ? and state = 'pending'`,
  // Refuses a message that was retired since the caller read it: retention would never remove such a push.
  insert: `
    insert into push (agent_id, state, reason, attempts, attempts_before, created_at_ms, position, next_at_ms,
      sent_at_ms, version, tenant, message_id)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11
    where exists (select 1 from message where tenant = ?10 and id = ?11)
    on conflict do nothing`,
  update: `
    update push set agent_id = ?, state = ?, reason = ?, attempts = ?, attempts_before = ?, created_at_ms = ?,
      position = ?, next_at_ms = ?, sent_at_ms = ?, version = version + 1
    where tenant = ? and message_id = ? and version = ?`,
  remove: "delete from push where tenant = ? and message_id = ?",
  attempts: `
    select * from (
      select ${ATTEMPT_COLUMNS} from push_attempt
      where tenant = ? and message_id = ? order by attempt desc limit ?)
    order by attempt`,
  insertAttempt: `
    insert into push_attempt (${ATTEMPT_COLUMNS})
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 where exists (select 1 from push where tenant = ?1 and message_id = ?2)
    on conflict do nothing`,
  removeOldAttempts: "delete from push_attempt where tenant = ? and message_id = ? and attempt <= ?",
  removeAttempts: "delete from push_attempt where tenant = ? and message_id = ?",
};

export class Endpoints implements EndpointStore {
  readonly #state: StoreState;
  readonly #sql: Statements<typeof ENDPOINT_SQL>;

  constructor({ database, state }: Engine) {
    this.#state = state;
    this.#sql = prepareAll(database, ENDPOINT_SQL);
  }

  async get(tenant: string, agentId: AgentId): Promise<PushEndpoint | undefined> {
    const row = this.#sql.select.get(tenant, agentId);
    return row === undefined ? undefined : pushEndpointFromRow(row);
  }

  async list({ state, after, limit }: EndpointPage): Promise<readonly PushEndpoint[]> {
    const page = state === "active" ? this.#sql.active : this.#sql.disabled;
    const rows = page.all(after?.tenant ?? "", after?.agentId ?? "", limit);
    return rows.map((row) => pushEndpointFromRow(row));
  }

  put(endpoint: PushEndpoint, how: "wake" | "quiet"): void {
    const values = [
      endpoint.mode,
      endpoint.url,
      endpoint.isNotice ? 1 : 0,
      endpoint.acknowledges ? 1 : 0,
      endpoint.secret,
      endpoint.oldSecret,
      endpoint.oldSecretUntilMs,
      endpoint.state,
      endpoint.reason,
      endpoint.failures,
      endpoint.openUntilMs,
      endpoint.afterPosition,
      endpoint.tenant,
      endpoint.agentId,
    ];
    const { version } = endpoint;
    const { insert, update } = this.#sql;
    const written = version === 0 ? insert.run(...values) : update.run(...values, version);
    if (written === 0) throw new ClashError("push_endpoint");
    if (how === "wake") this.#state.wake(PUSH_ENDPOINTS_TOPIC);
  }
}

/** Pushes with their attempts. */
export class Pushes implements PushStore {
  readonly #sql: Statements<typeof PUSH_SQL>;

  constructor({ database }: Engine) {
    this.#sql = prepareAll(database, PUSH_SQL);
  }

  async get(tenant: string, messageIds: readonly string[]): Promise<readonly (PushRecord | undefined)[]> {
    return messageIds.map((messageId) => {
      const row = this.#sql.select.get(tenant, messageId);
      return row === undefined ? undefined : pushFromRow(row);
    });
  }

  async attempts(tenant: string, messageId: string, limit: number): Promise<readonly PushAttempt[]> {
    return this.#sql.attempts.all(tenant, messageId, limit).map((row) => pushAttemptFromRow(row));
  }

  async due(tenant: string, agentId: AgentId, nowMs: number, limit: number): Promise<readonly PushRecord[]> {
    return this.#sql.due.all(tenant, agentId, nowMs, limit).map((row) => pushFromRow(row));
  }

  async list({ tenant, agentId, state, limit }: PushFilter): Promise<readonly PushRecord[]> {
    const states = state === undefined ? PUSH_STATES : [state];
    return states
      .flatMap((each) => this.#sql.ofAgent.all(tenant, agentId, each, limit))
      .map((row) => pushFromRow(row))
      .toSorted(newestFirst)
      .slice(0, limit);
  }

  async countPending(tenant: string, agentId: AgentId): Promise<number> {
    return Number(this.#sql.countPending.get(tenant, agentId)?.[0]);
  }

  put(push: PushRecord): void {
    const values = [
      push.agentId,
      push.state,
      push.reason,
      push.attempts,
      push.attemptsBefore,
      push.createdAtMs,
      push.position,
      push.nextAtMs,
      push.sentAtMs,
      push.tenant,
      push.messageId,
    ];
    const { insert, update } = this.#sql;
    const written = push.version === 0 ? insert.run(...values) : update.run(...values, push.version);
    if (written === 0) throw new ClashError("push");
  }

  /** Refuses an attempt without a push, and a repeated one. Removes the oldest beyond the limit. */
  addAttempt(attempt: PushAttempt): void {
    const inserted = this.#sql.insertAttempt.run(
      attempt.tenant,
      attempt.messageId,
      attempt.attempt,
      attempt.atMs,
      attempt.durationMs,
      attempt.status,
      attempt.error,
      attempt.answer,
    );
    if (inserted === 0) throw new ClashError("push");
    const oldest = attempt.attempt - LIMITS.pushAttemptsKept;
    if (oldest > 0) this.#sql.removeOldAttempts.run(attempt.tenant, attempt.messageId, oldest);
  }

  remove(tenant: string, messageId: string): void {
    if (this.#sql.remove.run(tenant, messageId) !== 0) this.#sql.removeAttempts.run(tenant, messageId);
  }
}

function newestFirst(one: PushRecord, other: PushRecord): number {
  if (one.createdAtMs !== other.createdAtMs) return other.createdAtMs - one.createdAtMs;
  return one.messageId < other.messageId ? 1 : -1;
}

function pushEndpointFromRow(row: Row): PushEndpoint {
  return {
    tenant: row[0] as string,
    agentId: row[1] as AgentId,
    mode: row[2] as PushMode,
    url: row[3] as string,
    isNotice: row[4] === 1,
    acknowledges: row[5] === 1,
    secret: row[6] as string,
    oldSecret: row[7] as string | null,
    oldSecretUntilMs: row[8] as number | null,
    state: row[9] as PushEndpoint["state"],
    reason: row[10] as string | null,
    failures: row[11] as number,
    openUntilMs: row[12] as number | null,
    afterPosition: row[13] as number,
    version: row[14] as number,
  };
}

function pushFromRow(row: Row): PushRecord {
  return {
    tenant: row[0] as string,
    messageId: row[1] as string,
    agentId: row[2] as AgentId,
    state: row[3] as PushState,
    reason: row[4] as string | null,
    attempts: row[5] as number,
    attemptsBefore: row[6] as number,
    createdAtMs: row[7] as number,
    position: row[8] as number,
    nextAtMs: row[9] as number | null,
    sentAtMs: row[10] as number | null,
    version: row[11] as number,
  };
}

function pushAttemptFromRow(row: Row): PushAttempt {
  return {
    tenant: row[0] as string,
    messageId: row[1] as string,
    attempt: row[2] as number,
    atMs: row[3] as number,
    durationMs: row[4] as number,
    status: row[5] as number | null,
    error: row[6] as string | null,
    answer: row[7] as string | null,
  };
}
