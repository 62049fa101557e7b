import assert from "node:assert/strict";
import type { AgentId } from "@a2a-relay/protocol";
import type { CapabilityRecord, KeyRecord } from "../src/core/ports/access.ts";
import { DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { AgentRecord } from "../src/core/ports/agents.ts";
import type { Changes, RelayStore } from "../src/core/ports/relay-store.ts";
import type { EventDraft } from "../src/core/ports/journal.ts";
import type {
  DeliveryRecord,
  DeliveryStore,
  MailboxLeaseQuery,
  MailboxMessage,
  MailboxReadQuery,
  QueueFilter,
} from "../src/core/ports/deliveries.ts";
import type { MessageRecord, SendKey } from "../src/core/ports/messages.ts";
import type { StoredJson } from "../src/core/ports/stored-json.ts";
import type { PushAttempt, PushEndpoint, PushRecord } from "../src/core/ports/pushes.ts";
import type { CachedResult, TaskRecord } from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import { aDelivery, aTask } from "./records.ts";

export const TENANT = DEFAULT_TENANT;
export const OTHER_TENANT = "另一家公司";
export const LULU = "lulu@kamac" as AgentId;
export const ZHIWEI = "知微@known-blocks1" as AgentId;

/** More than any test needs that does not limit bytes. */
export const BYTES_MAX = 100_000_000;

export type OpenStore = () => Promise<RelayStore>;

let lastNumber = 0;

/** Ids that sort in the order in which they were made, as those of the relay do. */
export function newId(prefix: string): string {
  lastNumber += 1;
  return `${prefix}-${String(lastNumber).padStart(8, "0")}`;
}

export function aNewAgent(said: Partial<AgentRecord> = {}): AgentRecord {
  return {
    tenant: TENANT,
    id: ZHIWEI,
    displayName: "知微",
    aliases: [],
    card: { name: "知微", skills: [{ id: "翻译" }] },
    skills: [{ id: "翻译", tags: { lang: "zh" } }],
    representativeQueries: ["请把这段话译成英文"],
    callbackUrl: null,
    ttlMs: null,
    publicKey: null,
    isCustodial: false,
    registeredAtMs: NOON_MS,
    othersBeforeMs: 0,
    removedAtMs: null,
    extendedCard: null,
    isDirect: false,
    version: 0,
    ...said,
  };
}

/** What a test says of a message. */
type SaidMessage = Partial<Omit<MessageRecord, "json"> & { readonly json: string }>;

export function aNewMessage({ json, ...said }: SaidMessage = {}): MessageRecord {
  const id = said.id ?? newId("m");
  return {
    tenant: TENANT,
    id,
    sender: LULU,
    recipient: ZHIWEI,
    kind: "note",
    threadId: `thread-of-${id}`,
    taskId: null,
    acceptedAtMs: NOON_MS,
    json: (json ?? JSON.stringify({ id, body: "知微你好" })) as StoredJson,
    ...said,
  };
}

/** The delivery of a message, not yet stored. */
export function deliveryOf(message: MessageRecord, said: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return aDelivery({
    tenant: message.tenant,
    messageId: message.id,
    agentId: message.recipient,
    sender: message.sender,
    taskId: message.taskId,
    threadId: message.threadId,
    position: 0,
    version: 0,
    ...said,
  });
}

export function aNewTask(said: Partial<TaskRecord> = {}): TaskRecord {
  return aTask({ id: newId("task"), requester: LULU, assignee: ZHIWEI, version: 0, ...said });
}

export function aNewKey(said: Partial<KeyRecord> = {}): KeyRecord {
  const id = said.id ?? newId("key");
  return {
    id,
    tenant: TENANT,
    agentId: null,
    verbs: null,
    digest: `digest-of-${id}`,
    createdAtMs: NOON_MS,
    createdBy: "operator",
    expiresAtMs: null,
    revokedAtMs: null,
    replaces: null,
    replacedBy: null,
    signingSecret: null,
    version: 0,
    ...said,
  };
}

export function aNewCapability(said: Partial<CapabilityRecord> = {}): CapabilityRecord {
  return {
    tenant: TENANT,
    id: newId("cap"),
    nonce: "随机数",
    subject: LULU,
    subjectKey: "key-of-lulu",
    action: "a2a.send.key-of-zhiwei",
    writtenAction: `a2a.send.${ZHIWEI}`,
    scope: {},
    grantedBy: "operator",
    parentId: null,
    issuedAtMs: NOON_MS,
    expiresAtMs: null,
    revokedAtMs: null,
    used: 0,
    signature: "signature",
    version: 0,
    ...said,
  };
}

export function aCachedResult(said: Partial<CachedResult> = {}): CachedResult {
  return {
    tenant: TENANT,
    resultKey: newId("result"),
    taskId: "task",
    text: "译好了",
    parts: null,
    artifacts: [],
    storedAtMs: NOON_MS,
    expiresAtMs: NOON_MS + 1_000_000,
    ...said,
  };
}

export function aNewPushEndpoint(said: Partial<PushEndpoint> = {}): PushEndpoint {
  return {
    tenant: TENANT,
    agentId: ZHIWEI,
    mode: "webhook",
    url: "https://zhiwei.example/收信",
    isNotice: false,
    acknowledges: false,
    secret: "whsec_c2VjcmV0",
    oldSecret: null,
    oldSecretUntilMs: null,
    state: "active",
    reason: null,
    failures: 0,
    openUntilMs: null,
    afterPosition: 0,
    version: 0,
    ...said,
  };
}

/** The push of a message, not yet stored. */
export function pushOf(message: MessageRecord, said: Partial<PushRecord> = {}): PushRecord {
  return {
    tenant: message.tenant,
    messageId: message.id,
    agentId: message.recipient,
    state: "pending",
    reason: null,
    attempts: 0,
    attemptsBefore: 0,
    createdAtMs: NOON_MS,
    position: 0,
    nextAtMs: NOON_MS,
    sentAtMs: null,
    version: 0,
    ...said,
  };
}

/** A message with its stored push. */
export async function storedPush(
  store: RelayStore,
  said: Partial<PushRecord> = {},
  fields: Parameters<typeof send>[1] = {},
): Promise<PushRecord> {
  const message = await send(store, fields);
  await commit(store, { tenant: message.tenant, pushes: [pushOf(message, said)] });
  const [stored] = await store.pushes.get(message.tenant, [message.id]);
  assert.ok(stored);
  return stored;
}

export function attemptOf(push: PushRecord, said: Partial<PushAttempt> = {}): PushAttempt {
  return {
    tenant: push.tenant,
    messageId: push.messageId,
    attempt: 1,
    atMs: NOON_MS,
    durationMs: 12,
    status: 503,
    error: null,
    answer: "稍后再来",
    ...said,
  };
}

export function sendKeyOf(message: MessageRecord, key: string): SendKey {
  return {
    tenant: message.tenant,
    sender: message.sender,
    recipient: message.recipient,
    key,
    digest: `digest-of-${message.json}`,
    messageId: message.id,
    threadId: message.threadId,
    taskId: message.taskId,
  };
}

export function anEvent(said: Partial<EventDraft> = {}): EventDraft {
  return {
    type: "message.accepted",
    atMs: NOON_MS,
    actor: LULU,
    agentId: ZHIWEI,
    messageId: null,
    taskId: null,
    threadId: null,
    data: { digest: "摘要" },
    ...said,
  };
}

/** Marks that messages were read, each with an event. */
export function marks(
  tenant: string,
  messageIds: readonly string[],
  deliveredAtMs = NOON_MS,
): Parameters<DeliveryStore["markDelivered"]>[0] {
  const event = (messageId: string): EventDraft =>
    anEvent({ type: "message.delivered", actor: ZHIWEI, agentId: ZHIWEI, messageId });
  return {
    tenant,
    deliveredAtMs,
    marks: messageIds.map((messageId) => ({ messageId, event: event(messageId) })),
  };
}

export async function countOpen(store: RelayStore, tenant: string, agentId: AgentId): Promise<number> {
  const counts = await store.deliveries.countByState(tenant, agentId);
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** The change that a send makes. */
export function aSend(
  fields: SaidMessage = {},
  delivery: Partial<DeliveryRecord> = {},
): Changes & { readonly messages: readonly [MessageRecord] } {
  const message = aNewMessage(fields);
  const { tenant, id, sender, recipient, threadId, taskId, acceptedAtMs } = message;
  return {
    tenant,
    messages: [message],
    deliveries: [deliveryOf(message, delivery)],
    events: [
      anEvent({ atMs: acceptedAtMs, actor: sender, agentId: recipient, messageId: id, threadId, taskId }),
    ],
  };
}

export async function send(
  store: RelayStore,
  fields: SaidMessage = {},
  delivery: Partial<DeliveryRecord> = {},
): Promise<MessageRecord> {
  const changes = aSend(fields, delivery);
  await commit(store, changes);
  return changes.messages[0];
}

/** Commits a change that must not clash. */
export async function commit(
  store: RelayStore,
  changes: Omit<Changes, "tenant" | "events"> & Partial<Changes>,
): Promise<void> {
  const outcome = await store.commit({ tenant: TENANT, events: [], ...changes });
  assert.deepEqual(outcome, { committed: true });
}

/** The clash with which a change is refused. */
export async function clashOf(store: RelayStore, changes: Partial<Changes>): Promise<string> {
  const outcome = await store.commit({ tenant: TENANT, events: [], ...changes });
  return outcome.committed ? "none, it was committed" : outcome.clash;
}

export async function storedDelivery(
  store: RelayStore,
  messageId: string,
  tenant = TENANT,
): Promise<DeliveryRecord> {
  const [delivery] = await store.deliveries.get(tenant, [messageId]);
  assert.ok(delivery, `there is no delivery of ${messageId}`);
  return delivery;
}

/** Changes one stored delivery, by the version it has now. */
export async function change(
  store: RelayStore,
  messageId: string,
  said: Partial<DeliveryRecord>,
): Promise<DeliveryRecord> {
  const before = await storedDelivery(store, messageId);
  await commit(store, { deliveries: [{ ...before, ...said }] });
  return storedDelivery(store, messageId);
}

export function settle(store: RelayStore, messageId: string, settledAtMs = NOON_MS): Promise<DeliveryRecord> {
  return change(store, messageId, { state: "acknowledged", settledAtMs });
}

export function leaseQuery(said: Partial<MailboxLeaseQuery> = {}): MailboxLeaseQuery {
  return {
    tenant: TENANT,
    agentId: ZHIWEI,
    worker: null,
    leaseIds: [newId("lease")],
    bytesMax: BYTES_MAX,
    nowMs: NOON_MS,
    leaseExpiresAtMs: null,
    ...said,
  };
}

export async function lease(
  store: RelayStore,
  said: Partial<MailboxLeaseQuery> = {},
): Promise<readonly MailboxMessage[]> {
  const outcome = await store.deliveries.lease(leaseQuery(said));
  assert.ok(outcome.committed);
  return outcome.messages;
}

/** All deliveries that an operator can list. */
export const QUEUE: QueueFilter = {
  tenant: TENANT,
  agentId: undefined,
  state: undefined,
  leasedBeforeMs: undefined,
  deadlineBeforeMs: undefined,
  limit: 100,
};

/** Ids of the messages that the queue lists. */
export async function queueIds(
  store: RelayStore,
  said: Partial<QueueFilter> = {},
): Promise<readonly string[]> {
  return (await store.deliveries.queue({ ...QUEUE, ...said })).map(({ delivery }) => delivery.messageId);
}

/** All of the mailbox. */
export const READ: MailboxReadQuery = {
  tenant: TENANT,
  agentId: ZHIWEI,
  afterPosition: 0,
  limit: 1_000,
  bytesMax: BYTES_MAX,
  nowMs: NOON_MS,
};

/** Ids of the messages that a reader of the mailbox gets. */
export async function readIds(
  store: RelayStore,
  said: Partial<MailboxReadQuery> = {},
): Promise<readonly string[]> {
  return idsOf(await store.deliveries.available({ ...READ, ...said }));
}

export function idsOf(messages: readonly MailboxMessage[]): readonly string[] {
  return messages.map(({ message }) => message.id);
}
