import type { SQLInputValue } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type {
  AgentId,
  DeliveryState,
  DuplicateSafety,
  MessageKind,
  ResultStatus,
  TaskState,
} from "@a2a-relay/protocol";
import type { DeliveryPurpose, DeliveryRecord } from "../../core/ports/deliveries.ts";
import type { MessageRecord } from "../../core/ports/messages.ts";
import type { TaskRecord } from "../../core/ports/tasks.ts";
import type { StoredJson } from "../../core/ports/stored-json.ts";
import { ownThreadId } from "../../core/rules/own-thread.ts";
import type { Row } from "./database.ts";

// A list of columns and the mapper below it have the same order. `offset` counts the columns in front of them.

export const WAITING_STATES: readonly DeliveryState[] = ["held", "available"];
export const OPEN_STATES: readonly DeliveryState[] = ["held", "available", "leased"];
export const RETURNED_STATES: readonly DeliveryState[] = ["expired", "withdrawn", "dead"];
export const UNFINISHED_STATES: readonly TaskState[] = [
  "submitted",
  "working",
  "input-required",
  "auth-required",
];

/** Spelt as in the partial indexes: SQLite uses such an index only for a statement with the same condition. */
export function oneOf(column: string, values: readonly string[]): string {
  return `(${values.map((value) => `${column} = '${value}'`).join(" or ")})`;
}

/** All but the JSON, for statements that decide by its length whether to read it. */
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
    json: row[offset + 8] as StoredJson,
  };
}

/** Empty for the thread that the message itself began, which needs no index entry. */
export function threadColumn(threadId: string, messageId: string): string {
  return threadId === ownThreadId(messageId) ? "" : threadId;
}

export function threadFrom(column: Row[number] | undefined, messageId: Row[number] | undefined): string {
  return (column === "" ? ownThreadId(messageId as string) : column) as string;
}

/** The one message that could have begun a thread of this name by itself. */
export function beginnerOf(threadId: string): string | undefined {
  return threadId.startsWith("thread_") ? `msg_${threadId.slice("thread_".length)}` : undefined;
}

/** SQLite finds the subject in a third of the time that it takes to read and parse the message. */
export const SUBJECT_COLUMN = "m.json -> '$.subject'";

export function subjectFrom(json: Row[number] | undefined): string {
  return typeof json === "string" ? (parseJson(json) as string) : "";
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

export const DELIVERY_COLUMN_COUNT = 24;

export function refFromRow(row: Row): number {
  return row[0] as number;
}

/** The values of a new delivery, in the order of its columns, without the version. */
export function deliveryValues(delivery: DeliveryRecord, ref: number, position: number): SQLInputValue[] {
  return [
    ref,
    delivery.tenant,
    delivery.messageId,
    delivery.agentId,
    delivery.sender,
    delivery.taskId,
    ...progressValues(delivery, position),
    delivery.duplicateSafety,
    delivery.idempotencyKey,
    delivery.quiet ? 1 : 0,
    threadColumn(delivery.threadId, delivery.messageId),
    delivery.purpose,
  ];
}

/** The values that an update of a delivery may change, in the order of their columns. */
export function progressValues(delivery: DeliveryRecord, position: number): SQLInputValue[] {
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

export const TASK_COLUMNS = `tenant, id, requester, assignee, state, thread_id, message_id, subject, client_id,
  result_key, parent_id, deadline_ms, status_text, result_status, result_message_id, result_digest,
  handoffs_json, first_message_id, asked_of, plain, update_count, update_bytes, created_at_ms, updated_at_ms,
  waiting, version`;

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
    handoffs: parseJson(row[16]) as TaskRecord["handoffs"],
    firstMessageId: row[17] as string | null,
    askedOf: row[18] as AgentId | null,
    isPlain: row[19] === 1,
    updateCount: row[20] as number,
    updateBytes: row[21] as number,
    createdAtMs: row[22] as number,
    updatedAtMs: row[23] as number,
    isWaiting: row[24] === 1,
    version: row[25] as number,
  };
}

export function parseJson(json: Row[number] | undefined): unknown {
  return JSON.parse(json as string);
}

export function parseNullableJson(json: Row[number] | undefined): unknown {
  return json === null ? null : parseJson(json);
}

/** Bytes that one turn of the event loop may read: a few milliseconds. */
const TURN_BYTES = 1024 * 1024;
/** What a row costs beside the message in it. */
const ROW_BYTES = 1024;

/** Counts what a long scan has read and lets other requests run when a turn's share is used up. */
export class ScanBudget {
  #left = TURN_BYTES;

  /** Rows may have changed when it resolves. */
  async spend(rows: number, bytes = 0): Promise<void> {
    this.#left -= rows * ROW_BYTES + bytes;
    if (this.#left > 0) return;
    this.#left = TURN_BYTES;
    await setImmediate();
  }
}
