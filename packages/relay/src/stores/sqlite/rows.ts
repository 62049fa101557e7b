import type { SQLInputValue } from "node:sqlite";
import type { AgentId, Artifact, DeliveryState, DuplicateSafety, MessageKind } from "@a2a-relay/protocol";
import type { PushMode, PushState, ResultStatus, TaskState } from "@a2a-relay/protocol";
import type { CapabilityRecord, KeyRecord, TenantRecord } from "../../core/ports/access.ts";
import type { AgentRecord, AgentWithPresence } from "../../core/ports/agents.ts";
import type { EventRecord, EventType } from "../../core/ports/journal.ts";
import type { DeliveryPurpose, DeliveryRecord } from "../../core/ports/deliveries.ts";
import { ownThreadId } from "../../core/rules/own-thread.ts";
import type { MessageRecord, SendKey } from "../../core/ports/messages.ts";
import type { PushAttempt, PushEndpoint, PushRecord } from "../../core/ports/pushes.ts";
import type { CachedResult, TaskRecord } from "../../core/ports/tasks.ts";
import type { Row } from "./database.ts";

// Each list of columns belongs to the mapper below it: the same order, and nothing else in the statement
// before them than what `offset` says.

export const AGENT_COLUMNS = `a.tenant, a.id, a.display_name, a.aliases_json, a.card_json, a.skills_json,
  a.representative_queries_json, a.callback_url, a.ttl_ms, a.pubkey_b58, a.custodial, a.registered_at_ms,
  a.others_before_ms, a.removed_at_ms, a.version, a.extended_card_json, a.direct, p.last_seen_at_ms`;

export function agentFromRow(row: Row): AgentWithPresence {
  return {
    agent: {
      tenant: row[0] as string,
      id: row[1] as AgentId,
      displayName: row[2] as string,
      aliases: parse(row[3]) as AgentRecord["aliases"],
      card: parse(row[4]) as AgentRecord["card"],
      skills: parse(row[5]) as AgentRecord["skills"],
      representativeQueries: parse(row[6]) as AgentRecord["representativeQueries"],
      callbackUrl: row[7] as string | null,
      ttlMs: row[8] as number | null,
      publicKey: row[9] as string | null,
      isCustodial: row[10] === 1,
      registeredAtMs: row[11] as number,
      othersBeforeMs: row[12] as number,
      removedAtMs: row[13] as number | null,
      version: row[14] as number,
      extendedCard: parseNullable(row[15]) as AgentRecord["extendedCard"],
      isDirect: row[16] === 1,
    },
    lastSeenAtMs: row[17] as number | null,
  };
}

/** All but the text, for statements that decide by its length whether to read it. */
export const ENVELOPE_COLUMNS = `m.tenant, m.id, m.sender, m.recipient, m.kind, m.thread_id, m.task_id,
  m.accepted_at_ms`;
export const MESSAGE_COLUMNS = `${ENVELOPE_COLUMNS}, m.json`;
export const MESSAGE_COLUMN_COUNT = 9;

export function messageFromRow(row: Row, offset = 0): MessageRecord {
  return {
    tenant: row[offset] as string,
    id: row[offset + 1] as string,
    sender: row[offset + 2] as AgentId,
    recipient: row[offset + 3] as AgentId,
    kind: row[offset + 4] as MessageKind,
    threadId: threadFrom(row[offset + 5], row[offset + 1]),
    taskId: row[offset + 6] as string | null,
    acceptedAtMs: row[offset + 7] as number,
    json: row[offset + 8] as string,
  };
}

/** What a row says of the thread: nothing where it is the one that its message itself began. */
export function threadColumn(threadId: string, messageId: string): string {
  return threadId === ownThreadId(messageId) ? "" : threadId;
}

export function threadFrom(column: Row[number] | undefined, messageId: Row[number] | undefined): string {
  return (column === "" ? ownThreadId(messageId as string) : column) as string;
}

/** Found by SQLite in the message: a third of the time that it takes to read the message and parse it. */
export const SUBJECT_COLUMN = "m.json -> '$.subject'";

export function subjectFrom(json: Row[number] | undefined): string {
  return typeof json === "string" ? (parse(json) as string) : "";
}

export const SEND_KEY_COLUMNS = "tenant, sender, recipient, key, digest, message_id, thread_id, task_id";

export function sendKeyFromRow(row: Row): SendKey {
  return {
    tenant: row[0] as string,
    sender: row[1] as AgentId,
    recipient: row[2] as AgentId,
    key: row[3] as string,
    digest: row[4] as string,
    messageId: row[5] as string,
    threadId: row[6] as string,
    taskId: row[7] as string | null,
  };
}

/** The columns of a delivery; `alias` ends in a dot where the statement joins, and is empty in `returning`. */
export function deliveryColumns(alias: "" | "d."): string {
  return [
    "ref tenant message_id agent_id sender task_id state position delivered_at_ms attempt lease_id worker",
    "leased_at_ms lease_expires_at_ms reserved_for expires_at_ms settled_at_ms reason duplicate_safety",
    "idempotency_key quiet thread_id purpose version",
  ]
    .flatMap((line) => line.split(" "))
    .map((column) => alias + column)
    .join(", ");
}

export function refFromRow(row: Row, offset = 0): number {
  return row[offset] as number;
}

/** The values of a new delivery, in the order of its columns, but for the version. */
export function deliveryValues(delivery: DeliveryRecord, ref: number, position: number): SQLInputValue[] {
  return [
    ref,
    delivery.tenant,
    delivery.messageId,
    delivery.agentId,
    delivery.sender,
    delivery.taskId,
    ...courseValues(delivery, position),
    delivery.duplicateSafety,
    delivery.idempotencyKey,
    delivery.quiet ? 1 : 0,
    threadColumn(delivery.threadId, delivery.messageId),
    delivery.purpose,
  ];
}

/** The values that may change in the course of a delivery, in the order of their columns. */
export function courseValues(delivery: DeliveryRecord, position: number): SQLInputValue[] {
  return [
    delivery.state,
    position,
    delivery.deliveredAtMs,
    delivery.attempt,
    delivery.leaseId,
    delivery.worker,
    delivery.leasedAtMs,
    delivery.leaseExpiresAtMs,
    delivery.reservedFor,
    delivery.expiresAtMs,
    delivery.settledAtMs,
    delivery.reason,
  ];
}

export function deliveryFromRow(row: Row, offset = 0): DeliveryRecord {
  return {
    tenant: row[offset + 1] as string,
    messageId: row[offset + 2] as string,
    agentId: row[offset + 3] as AgentId,
    sender: row[offset + 4] as AgentId,
    taskId: row[offset + 5] as string | null,
    state: row[offset + 6] as DeliveryState,
    position: row[offset + 7] as number,
    deliveredAtMs: row[offset + 8] as number | null,
    attempt: row[offset + 9] as number,
    leaseId: row[offset + 10] as string | null,
    worker: row[offset + 11] as string | null,
    leasedAtMs: row[offset + 12] as number | null,
    leaseExpiresAtMs: row[offset + 13] as number | null,
    reservedFor: row[offset + 14] as string | null,
    expiresAtMs: row[offset + 15] as number,
    settledAtMs: row[offset + 16] as number | null,
    reason: row[offset + 17] as string | null,
    duplicateSafety: row[offset + 18] as DuplicateSafety,
    idempotencyKey: row[offset + 19] as string | null,
    quiet: row[offset + 20] === 1,
    threadId: threadFrom(row[offset + 21], row[offset + 2]),
    purpose: row[offset + 22] as DeliveryPurpose,
    version: row[offset + 23] as number,
  };
}

export const DELIVERY_COLUMN_COUNT = 24;

export const TASK_COLUMNS = `tenant, id, requester, assignee, state, thread_id, message_id, subject, client_id,
  result_key, parent_id, deadline_ms, status_text, result_status, result_message_id, result_digest,
  handoffs_json, first_message_id, asked_of, plain, update_count, update_bytes, created_at_ms, updated_at_ms,
  version`;

export function taskFromRow(row: Row): TaskRecord {
  return {
    tenant: row[0] as string,
    id: row[1] as string,
    requester: row[2] as AgentId,
    assignee: row[3] as AgentId,
    state: row[4] as TaskState,
    threadId: threadFrom(row[5], row[6]),
    messageId: row[6] as string,
    subject: row[7] as string,
    clientId: row[8] as string | null,
    resultKey: row[9] as string | null,
    parentId: row[10] as string | null,
    deadlineMs: row[11] as number | null,
    statusText: row[12] as string | null,
    resultStatus: row[13] as ResultStatus | null,
    resultMessageId: row[14] as string | null,
    resultDigest: row[15] as string | null,
    handoffs: parse(row[16]) as TaskRecord["handoffs"],
    firstMessageId: row[17] as string | null,
    askedOf: row[18] as AgentId | null,
    isPlain: row[19] === 1,
    updateCount: row[20] as number,
    updateBytes: row[21] as number,
    createdAtMs: row[22] as number,
    updatedAtMs: row[23] as number,
    version: row[24] as number,
  };
}

export function artifactFromRow(row: Row): Artifact {
  return parse(row[0]) as Artifact;
}

export const CACHED_RESULT_COLUMNS =
  "tenant, result_key, task_id, stored_at_ms, expires_at_ms, text, parts_json, artifacts_json";

export function cachedResultFromRow(row: Row): CachedResult {
  return {
    tenant: row[0] as string,
    resultKey: row[1] as string,
    taskId: row[2] as string,
    storedAtMs: row[3] as number,
    expiresAtMs: row[4] as number,
    text: row[5] as string,
    parts: parseNullable(row[6]) as CachedResult["parts"],
    artifacts: parse(row[7]) as CachedResult["artifacts"],
  };
}

export const KEY_COLUMNS = `id, tenant, agent_id, verbs_json, digest, created_at_ms, created_by, expires_at_ms,
  revoked_at_ms, replaces, replaced_by, signing_secret, version`;

export function keyFromRow(row: Row): KeyRecord {
  return {
    id: row[0] as string,
    tenant: row[1] as string,
    agentId: row[2] as AgentId | null,
    verbs: parseNullable(row[3]) as KeyRecord["verbs"],
    digest: row[4] as string,
    createdAtMs: row[5] as number,
    createdBy: row[6] as string,
    expiresAtMs: row[7] as number | null,
    revokedAtMs: row[8] as number | null,
    replaces: row[9] as string | null,
    replacedBy: row[10] as string | null,
    signingSecret: row[11] as string | null,
    version: row[12] as number,
  };
}

export const TENANT_COLUMNS = "id, capabilities, created_at_ms, version";

export function tenantFromRow(row: Row): TenantRecord {
  return {
    id: row[0] as string,
    capabilities: row[1] === 1,
    createdAtMs: row[2] as number,
    version: row[3] as number,
  };
}

export const CAPABILITY_COLUMNS = `tenant, id, nonce, subject, subject_key, action, written_action, scope_json,
  granted_by, parent_id, issued_at_ms, expires_at_ms, revoked_at_ms, used, signature, version`;

export function capabilityFromRow(row: Row): CapabilityRecord {
  return {
    tenant: row[0] as string,
    id: row[1] as string,
    nonce: row[2] as string,
    subject: row[3] as AgentId,
    subjectKey: row[4] as string,
    action: row[5] as string,
    writtenAction: row[6] as string,
    scope: parse(row[7]) as CapabilityRecord["scope"],
    grantedBy: row[8] as string,
    parentId: row[9] as string | null,
    issuedAtMs: row[10] as number,
    expiresAtMs: row[11] as number | null,
    revokedAtMs: row[12] as number | null,
    used: row[13] as number,
    signature: row[14] as string,
    version: row[15] as number,
  };
}

export const PUSH_ENDPOINT_COLUMNS = `tenant, agent_id, mode, url, notice, acknowledges, secret, old_secret,
  old_secret_until_ms, state, reason, failures, open_until_ms, after_position, version`;

export function pushEndpointFromRow(row: Row): PushEndpoint {
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

export const PUSH_COLUMNS = `tenant, message_id, agent_id, state, reason, attempts, attempts_before, created_at_ms,
  position, next_at_ms, sent_at_ms, version`;

export function pushFromRow(row: Row): PushRecord {
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

export const PUSH_ATTEMPT_COLUMNS = "tenant, message_id, attempt, at_ms, duration_ms, status, error, answer";

export function pushAttemptFromRow(row: Row): PushAttempt {
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

export const EVENT_COLUMNS = `place, type, at_ms, actor, agent_id, message_id, task_id, thread_id, data_json,
  previous_hash, hash, accepted_id`;

export function eventFromRow(tenant: string, row: Row): EventRecord {
  return {
    tenant,
    seq: (row[0] as number) % CHAIN_PLACES,
    type: row[1] as EventType,
    atMs: row[2] as number,
    actor: row[3] as string,
    agentId: row[4] as string | null,
    messageId: (row[5] ?? row[11]) as string | null,
    taskId: row[6] as string | null,
    threadId: row[7] as string | null,
    dataJson: row[8] as string,
    previousHash: hexOf(row[9]),
    hash: hexOf(row[10]),
  };
}

/** Events of one tenant lie side by side in their table: so many places each has. */
export const CHAIN_PLACES = 2 ** 33;

function hexOf(bytes: Row[number] | undefined): string {
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array;
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

function parseNullable(json: Row[number] | undefined): unknown {
  return json === null ? null : parse(json);
}

function parse(json: Row[number] | undefined): unknown {
  return JSON.parse(json as string);
}
