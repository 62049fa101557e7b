import type { DatabaseSync } from "node:sqlite";
import { type AgentId, LIMITS, PUSH_STATES } from "@a2a-relay/protocol";
import { PUSH_ENDPOINTS_TOPIC } from "../../core/ports/change-feed.ts";
import type {
  EndpointKey,
  PushAttempt,
  PushEndpoint,
  PushFilter,
  PushRecord,
} from "../../core/ports/pushes.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import {
  PUSH_ATTEMPT_COLUMNS,
  PUSH_COLUMNS,
  PUSH_ENDPOINT_COLUMNS,
  pushAttemptFromRow,
  pushEndpointFromRow,
  pushFromRow,
} from "./rows.ts";

const ENDPOINT = `select ${PUSH_ENDPOINT_COLUMNS} from push_endpoint where tenant = ? and agent_id = ?`;
const ACTIVE_ENDPOINTS = `
  select ${PUSH_ENDPOINT_COLUMNS} from push_endpoint indexed by push_endpoint_active
  where state = 'active' and (tenant, agent_id) > (?, ?) order by tenant, agent_id limit ?`;
const LEFT_ENDPOINTS = `
  select ${PUSH_ENDPOINT_COLUMNS} from push_endpoint as e
  where state = 'disabled' and (tenant, agent_id) > (?, ?) and exists (
    select 1 from push as p indexed by push_due
    where p.tenant = e.tenant and p.agent_id = e.agent_id and p.state = 'pending')
  order by tenant, agent_id limit ?`;
const INSERT_ENDPOINT = `
  insert into push_endpoint (mode, url, notice, acknowledges, secret, old_secret, old_secret_until_ms, state,
    reason, failures, open_until_ms, after_position, version, tenant, agent_id)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`;
const UPDATE_ENDPOINT = `
  update push_endpoint set mode = ?, url = ?, notice = ?, acknowledges = ?, secret = ?, old_secret = ?,
    old_secret_until_ms = ?, state = ?, reason = ?, failures = ?, open_until_ms = ?, after_position = ?,
    version = version + 1
  where tenant = ? and agent_id = ? and version = ?`;

const PUSH = `select ${PUSH_COLUMNS} from push where tenant = ? and message_id = ?`;
const DUE = `
  select ${PUSH_COLUMNS} from push indexed by push_due
  where tenant = ? and agent_id = ? and state = 'pending' and next_at_ms <= ?
  order by next_at_ms, position, message_id limit ?`;
const OF_AGENT = `
  select ${PUSH_COLUMNS} from push indexed by push_of_agent
  where tenant = ? and agent_id = ? and state = ? order by created_at_ms desc, message_id desc limit ?`;
const COUNT_PENDING = `
  select count(*) from push indexed by push_due where tenant = ? and agent_id = ? and state = 'pending'`;
// MailboxMessage may be retired between the look at it and this: nobody would ever remove such a push.
const INSERT_PUSH = `
  insert into push (agent_id, state, reason, attempts, attempts_before, created_at_ms, position, next_at_ms,
    sent_at_ms, version, tenant, message_id)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11
  where exists (select 1 from message where tenant = ?10 and id = ?11)
  on conflict do nothing`;
const UPDATE_PUSH = `
  update push set agent_id = ?, state = ?, reason = ?, attempts = ?, attempts_before = ?, created_at_ms = ?,
    position = ?, next_at_ms = ?, sent_at_ms = ?, version = version + 1
  where tenant = ? and message_id = ? and version = ?`;
const FORGET_PUSH = "delete from push where tenant = ? and message_id = ?";

const ATTEMPTS = `
  select * from (
    select ${PUSH_ATTEMPT_COLUMNS} from push_attempt
    where tenant = ? and message_id = ? order by attempt desc limit ?)
  order by attempt`;
const INSERT_ATTEMPT = `
  insert into push_attempt (${PUSH_ATTEMPT_COLUMNS})
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 where exists (select 1 from push where tenant = ?1 and message_id = ?2)
  on conflict do nothing`;
const FORGET_OLD_ATTEMPTS = "delete from push_attempt where tenant = ? and message_id = ? and attempt <= ?";
const FORGET_ATTEMPTS = "delete from push_attempt where tenant = ? and message_id = ?";

/** Where agents are called, and what became of it. */
export class Pushes {
  readonly #ledger: Ledger;
  readonly #endpoint: Statement;
  readonly #activeEndpoints: Statement;
  readonly #leftEndpoints: Statement;
  readonly #insertEndpoint: Statement;
  readonly #updateEndpoint: Statement;
  readonly #push: Statement;
  readonly #due: Statement;
  readonly #ofAgent: Statement;
  readonly #countPending: Statement;
  readonly #insertPush: Statement;
  readonly #updatePush: Statement;
  readonly #forgetPush: Statement;
  readonly #attempts: Statement;
  readonly #insertAttempt: Statement;
  readonly #forgetOldAttempts: Statement;
  readonly #forgetAttempts: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#endpoint = prepare(database, ENDPOINT);
    this.#activeEndpoints = prepare(database, ACTIVE_ENDPOINTS);
    this.#leftEndpoints = prepare(database, LEFT_ENDPOINTS);
    this.#insertEndpoint = prepare(database, INSERT_ENDPOINT);
    this.#updateEndpoint = prepare(database, UPDATE_ENDPOINT);
    this.#push = prepare(database, PUSH);
    this.#due = prepare(database, DUE);
    this.#ofAgent = prepare(database, OF_AGENT);
    this.#countPending = prepare(database, COUNT_PENDING);
    this.#insertPush = prepare(database, INSERT_PUSH);
    this.#updatePush = prepare(database, UPDATE_PUSH);
    this.#forgetPush = prepare(database, FORGET_PUSH);
    this.#attempts = prepare(database, ATTEMPTS);
    this.#insertAttempt = prepare(database, INSERT_ATTEMPT);
    this.#forgetOldAttempts = prepare(database, FORGET_OLD_ATTEMPTS);
    this.#forgetAttempts = prepare(database, FORGET_ATTEMPTS);
  }

  endpoint(tenant: string, agentId: AgentId): PushEndpoint | undefined {
    const row = this.#endpoint.get(tenant, agentId);
    return row === undefined ? undefined : pushEndpointFromRow(row);
  }

  activeEndpoints(after: EndpointKey | undefined, limit: number): readonly PushEndpoint[] {
    const rows = this.#activeEndpoints.all(after?.tenant ?? "", after?.agentId ?? "", limit);
    return rows.map((row) => pushEndpointFromRow(row));
  }

  leftEndpoints(after: EndpointKey | undefined, limit: number): readonly PushEndpoint[] {
    const rows = this.#leftEndpoints.all(after?.tenant ?? "", after?.agentId ?? "", limit);
    return rows.map((row) => pushEndpointFromRow(row));
  }

  push(tenant: string, messageId: string): PushRecord | undefined {
    const row = this.#push.get(tenant, messageId);
    return row === undefined ? undefined : pushFromRow(row);
  }

  attempts(tenant: string, messageId: string, limit: number): readonly PushAttempt[] {
    return this.#attempts.all(tenant, messageId, limit).map((row) => pushAttemptFromRow(row));
  }

  due(tenant: string, agentId: AgentId, nowMs: number, limit: number): readonly PushRecord[] {
    return this.#due.all(tenant, agentId, nowMs, limit).map((row) => pushFromRow(row));
  }

  ofAgent({ tenant, agentId, state, limit }: PushFilter): readonly PushRecord[] {
    const states = state === undefined ? PUSH_STATES : [state];
    return states
      .flatMap((each) => this.#ofAgent.all(tenant, agentId, each, limit))
      .map((row) => pushFromRow(row))
      .toSorted(newestFirst)
      .slice(0, limit);
  }

  countPending(tenant: string, agentId: AgentId): number {
    return Number(this.#countPending.get(tenant, agentId)?.[0]);
  }

  /** Inside a commit. */
  putEndpoint(endpoint: PushEndpoint, how: "wake" | "quiet"): void {
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
    const { changes } =
      endpoint.version === 0
        ? this.#insertEndpoint.run(...values)
        : this.#updateEndpoint.run(...values, endpoint.version);
    if (changes === 0) throw new ClashError("push_endpoint");
    if (how === "wake") this.#ledger.wake(PUSH_ENDPOINTS_TOPIC);
  }

  /** Inside a commit. */
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
    const { changes } =
      push.version === 0 ? this.#insertPush.run(...values) : this.#updatePush.run(...values, push.version);
    if (changes === 0) throw new ClashError("push");
  }

  /** Inside a commit. An attempt belongs to a push, and is made once; the oldest make room. */
  addAttempt(attempt: PushAttempt): void {
    const { changes } = this.#insertAttempt.run(
      attempt.tenant,
      attempt.messageId,
      attempt.attempt,
      attempt.atMs,
      attempt.durationMs,
      attempt.status,
      attempt.error,
      attempt.answer,
    );
    if (changes === 0) throw new ClashError("push");
    const oldest = attempt.attempt - LIMITS.pushAttemptsKept;
    if (oldest > 0) this.#forgetOldAttempts.run(attempt.tenant, attempt.messageId, oldest);
  }

  /** Inside a commit. */
  forget(tenant: string, messageId: string): void {
    const { changes } = this.#forgetPush.run(tenant, messageId);
    if (changes !== 0) this.#forgetAttempts.run(tenant, messageId);
  }
}

function newestFirst(one: PushRecord, other: PushRecord): number {
  if (one.createdAtMs !== other.createdAtMs) return other.createdAtMs - one.createdAtMs;
  return one.messageId < other.messageId ? 1 : -1;
}
