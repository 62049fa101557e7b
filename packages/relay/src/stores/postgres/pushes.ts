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
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { insertAll, putAll, type Table } from "./table.ts";

const ENDPOINT_SQL = {
  get: "select * from push_endpoint where tenant = $1 and agent_id = $2",
  active: `
    select * from push_endpoint where state = 'active' and (tenant, agent_id) > ($1, $2)
    order by tenant, agent_id limit $3`,
  disabled: `
    select * from push_endpoint e where state = 'disabled' and (tenant, agent_id) > ($1, $2) and exists (
      select 1 from push p where p.tenant = e.tenant and p.agent_id = e.agent_id and p.state = 'pending')
    order by tenant, agent_id limit $3`,
};

const PUSH_SQL = {
  get: "select * from push where tenant = $1 and message_id = any ($2)",
  due: `
    select * from push where tenant = $1 and agent_id = $2 and state = 'pending' and next_at_ms <= $3
    order by next_at_ms, position, message_id limit $4`,
  list: `
    select found.* from unnest($3::text[]) as wanted (state) cross join lateral (
      select * from push p where p.tenant = $1 and p.agent_id = $2 and p.state = wanted.state
      order by created_at_ms desc, message_id desc limit $4) as found
    order by created_at_ms desc, message_id desc limit $4`,
  countPending: `
    select count(*) as pending from push where tenant = $1 and agent_id = $2 and state = 'pending'`,
  // Until the commit no other relay removes them.
  lockMessages: `
    select 1 from unnest($1::text[], $2::text[]) as wanted (tenant, id)
    join message_key k on k.tenant = wanted.tenant and k.id = wanted.id for key share of k`,
  lockPushes: `
    select 1 from unnest($1::text[], $2::text[]) as wanted (tenant, id)
    join push p on p.tenant = wanted.tenant and p.message_id = wanted.id for key share of p`,
  attempts: `
    select * from (
      select * from push_attempt where tenant = $1 and message_id = $2 order by attempt desc limit $3) as latest
    order by attempt`,
  trimAttempts: `
    delete from push_attempt a
    using json_to_recordset($1) as full_push (tenant text, message_id text, oldest bigint)
    where a.tenant = full_push.tenant and a.message_id = full_push.message_id and a.attempt <= full_push.oldest`,
};

const ENDPOINTS: Table<PushEndpoint> = {
  name: "push_endpoint",
  key: ["tenant", "agent_id"],
  clash: "push_endpoint",
  columns:
    `tenant agent_id mode url notice acknowledges secret old_secret old_secret_until_ms state reason failures
    open_until_ms after_position`.split(/\s+/),
  row: (endpoint) => ({
    tenant: endpoint.tenant,
    agent_id: endpoint.agentId,
    mode: endpoint.mode,
    url: endpoint.url,
    notice: endpoint.isNotice ? 1 : 0,
    acknowledges: endpoint.acknowledges ? 1 : 0,
    secret: endpoint.secret,
    old_secret: endpoint.oldSecret,
    old_secret_until_ms: endpoint.oldSecretUntilMs,
    state: endpoint.state,
    reason: endpoint.reason,
    failures: endpoint.failures,
    open_until_ms: endpoint.openUntilMs,
    after_position: endpoint.afterPosition,
  }),
};

const PUSHES: Table<PushRecord> = {
  name: "push",
  key: ["tenant", "message_id"],
  clash: "push",
  columns: `tenant message_id agent_id state reason attempts attempts_before created_at_ms position next_at_ms
    sent_at_ms`.split(/\s+/),
  row: (push) => ({
    tenant: push.tenant,
    message_id: push.messageId,
    agent_id: push.agentId,
    state: push.state,
    reason: push.reason,
    attempts: push.attempts,
    attempts_before: push.attemptsBefore,
    created_at_ms: push.createdAtMs,
    position: push.position,
    next_at_ms: push.nextAtMs,
    sent_at_ms: push.sentAtMs,
  }),
};

export class Endpoints implements EndpointStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, agentId: AgentId): Promise<PushEndpoint | undefined> {
    const row = await this.#database.ofTenant(tenant).row(ENDPOINT_SQL.get, [tenant, agentId]);
    return row === undefined ? undefined : endpointFromRow(row);
  }

  async list({ state, after, limit }: EndpointPage): Promise<readonly PushEndpoint[]> {
    const values = [after?.tenant ?? "", after?.agentId ?? "", limit];
    return (await this.#database.rows(ENDPOINT_SQL[state], values)).map((row) => endpointFromRow(row));
  }

  async putAll(
    transaction: Transaction,
    endpoints: readonly PushEndpoint[],
    how: "wake" | "quiet",
  ): Promise<void> {
    await putAll(transaction, ENDPOINTS, endpoints);
    if (how === "wake" && endpoints.length > 0) transaction.wake(PUSH_ENDPOINTS_TOPIC);
  }
}

/** Pushes with their attempts. */
export class Pushes implements PushStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, messageIds: readonly string[]): Promise<readonly (PushRecord | undefined)[]> {
    const rows = await this.#database.ofTenant(tenant).rows(PUSH_SQL.get, [tenant, messageIds]);
    const found = new Map(rows.map((row) => [row["message_id"], pushFromRow(row)]));
    return messageIds.map((messageId) => found.get(messageId));
  }

  async attempts(tenant: string, messageId: string, limit: number): Promise<readonly PushAttempt[]> {
    const rows = await this.#database.ofTenant(tenant).rows(PUSH_SQL.attempts, [tenant, messageId, limit]);
    return rows.map((row) => attemptFromRow(row));
  }

  async due(tenant: string, agentId: AgentId, nowMs: number, limit: number): Promise<readonly PushRecord[]> {
    const rows = await this.#database.ofTenant(tenant).rows(PUSH_SQL.due, [tenant, agentId, nowMs, limit]);
    return rows.map((row) => pushFromRow(row));
  }

  async list({ tenant, agentId, state, limit }: PushFilter): Promise<readonly PushRecord[]> {
    const states = state === undefined ? PUSH_STATES : [state];
    const rows = await this.#database.ofTenant(tenant).rows(PUSH_SQL.list, [tenant, agentId, states, limit]);
    return rows.map((row) => pushFromRow(row));
  }

  async countPending(tenant: string, agentId: AgentId): Promise<number> {
    const row = await this.#database.ofTenant(tenant).row(PUSH_SQL.countPending, [tenant, agentId]);
    return row?.["pending"] as number;
  }

  /** Refuses a new push of a message that was retired since the caller read it: retention would never remove it. */
  async putAll(transaction: Transaction, pushes: readonly PushRecord[]): Promise<void> {
    const fresh = pushes.filter(({ version }) => version === 0);
    await lockAll(transaction, PUSH_SQL.lockMessages, fresh);
    await putAll(transaction, PUSHES, pushes);
  }

  /** Refuses an attempt without a push, and a repeated one. Removes the oldest beyond the limit. */
  async addAttempts(transaction: Transaction, attempts: readonly PushAttempt[]): Promise<void> {
    await lockAll(transaction, PUSH_SQL.lockPushes, attempts);
    const rows = attempts.map((each) => ({
      tenant: each.tenant,
      message_id: each.messageId,
      attempt: each.attempt,
      at_ms: each.atMs,
      duration_ms: each.durationMs,
      status: each.status,
      error: each.error,
      answer: each.answer,
    }));
    const columns = ["tenant", "message_id", "attempt", "at_ms", "duration_ms", "status", "error", "answer"];
    await insertAll(transaction, { name: "push_attempt", clash: "push" }, rows, columns);
    const full = rows
      .map(({ attempt, ...row }) => ({ ...row, oldest: attempt - LIMITS.pushAttemptsKept }))
      .filter(({ oldest }) => oldest > 0);
    if (full.length > 0) await transaction.run(PUSH_SQL.trimAttempts, [JSON.stringify(full)]);
  }
}

async function lockAll(
  transaction: Transaction,
  sql: string,
  keys: readonly Pick<PushRecord, "tenant" | "messageId">[],
): Promise<void> {
  if (keys.length === 0) return;
  const values = [keys.map(({ tenant }) => tenant), keys.map(({ messageId }) => messageId)];
  const rows = await transaction.rows(sql, values);
  if (rows.length !== keys.length) throw new ClashError("push");
}

function endpointFromRow(row: Row): PushEndpoint {
  return {
    tenant: row["tenant"] as string,
    agentId: row["agent_id"] as AgentId,
    mode: row["mode"] as PushMode,
    url: row["url"] as string,
    isNotice: row["notice"] === 1,
    acknowledges: row["acknowledges"] === 1,
    secret: row["secret"] as string,
    oldSecret: row["old_secret"] as string | null,
    oldSecretUntilMs: row["old_secret_until_ms"] as number | null,
    state: row["state"] as PushEndpoint["state"],
    reason: row["reason"] as string | null,
    failures: row["failures"] as number,
    openUntilMs: row["open_until_ms"] as number | null,
    afterPosition: row["after_position"] as number,
    version: row["version"] as number,
  };
}

function pushFromRow(row: Row): PushRecord {
  return {
    tenant: row["tenant"] as string,
    messageId: row["message_id"] as string,
    agentId: row["agent_id"] as AgentId,
    state: row["state"] as PushState,
    reason: row["reason"] as string | null,
    attempts: row["attempts"] as number,
    attemptsBefore: row["attempts_before"] as number,
    createdAtMs: row["created_at_ms"] as number,
    position: row["position"] as number,
    nextAtMs: row["next_at_ms"] as number | null,
    sentAtMs: row["sent_at_ms"] as number | null,
    version: row["version"] as number,
  };
}

function attemptFromRow(row: Row): PushAttempt {
  return {
    tenant: row["tenant"] as string,
    messageId: row["message_id"] as string,
    attempt: row["attempt"] as number,
    atMs: row["at_ms"] as number,
    durationMs: row["duration_ms"] as number,
    status: row["status"] as number | null,
    error: row["error"] as string | null,
    answer: row["answer"] as string | null,
  };
}
