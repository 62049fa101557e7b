import type { AgentId } from "@a2a-relay/protocol";
import { DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { DeliveryRecord } from "../src/core/ports/deliveries.ts";
import type { NewMessage } from "../src/core/rules/new-message.ts";
import type { TaskRecord } from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import type { ExpiryTimes } from "../src/core/ports/journal.ts";

/** An available delivery, with the fields that the test sets. */
export function aDelivery(said: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    tenant: DEFAULT_TENANT,
    messageId: "m1",
    agentId: "zhiwei@known-blocks1" as AgentId,
    sender: "lulu@kamac" as AgentId,
    taskId: null,
    threadId: "t1",
    purpose: "mail",
    state: "available",
    position: 1,
    deliveredAtMs: null,
    attempt: 0,
    leaseId: null,
    worker: null,
    leasedAtMs: null,
    leaseExpiresAtMs: null,
    reservedFor: null,
    expiresAtMs: NOON_MS + 1_000_000,
    settledAtMs: null,
    reason: null,
    duplicateSafety: "unsafe",
    idempotencyKey: null,
    quiet: false,
    version: 1,
    ...said,
  };
}

/** A delivery under its first lease, `l1`. */
export function aLeasedDelivery(said: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return aDelivery({
    state: "leased",
    attempt: 1,
    leaseId: "l1",
    leasedAtMs: NOON_MS,
    worker: "w1",
    ...said,
  });
}

export function aTask(said: Partial<TaskRecord> = {}): TaskRecord {
  return {
    tenant: DEFAULT_TENANT,
    id: "task1",
    requester: "lulu@kamac" as AgentId,
    assignee: "zhiwei@known-blocks1" as AgentId,
    state: "submitted",
    threadId: "t1",
    messageId: "m1",
    subject: "hello",
    clientId: null,
    resultKey: null,
    isWaiting: false,
    parentId: null,
    deadlineMs: null,
    statusText: null,
    resultStatus: null,
    resultMessageId: null,
    resultDigest: null,
    handoffs: [],
    firstMessageId: null,
    askedOf: null,
    isPlain: false,
    updateCount: 0,
    updateBytes: 0,
    createdAtMs: NOON_MS,
    updatedAtMs: NOON_MS,
    version: 1,
    ...said,
  };
}

/** A note before it is stored. */
export function aMessage(said: Partial<NewMessage> = {}): NewMessage {
  return {
    tenant: DEFAULT_TENANT,
    id: "msg_一",
    sender: "lulu@kamac" as AgentId,
    recipient: "知微@known-blocks1" as AgentId,
    kind: "note",
    subject: "问候",
    body: "知微你好",
    threadId: "thread_一",
    taskId: undefined,
    purpose: "mail",
    replyTo: undefined,
    acceptedAtMs: NOON_MS,
    expiresAtMs: NOON_MS + 1_000,
    duplicateSafety: "unsafe",
    idempotencyKey: undefined,
    quiet: false,
    reservedFor: undefined,
    more: {},
    ...said,
  };
}

/** Removes what expires by time alone; without `said` no send key and no surplus of cached results. */
export function expiryAt(nowMs: number, said: Partial<ExpiryTimes> = {}): ExpiryTimes {
  return { nowMs, sendKeysBeforeMs: 0, cachedResultsMax: Number.MAX_SAFE_INTEGER, ...said };
}
