import assert from "node:assert/strict";
import type { AgentId } from "@a2a-relay/protocol";
import type { EventDraft, RetiredMessage } from "../src/core/ports/journal.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { digestOfText } from "../src/core/rules/digest.ts";
import { NOON_MS } from "./fake-clock.ts";
import { aRemoteTask } from "./remote-tasks.contract.ts";
import {
  aCachedResult,
  aNewAgent,
  aNewCapability,
  aNewKey,
  aNewPushEndpoint,
  aNewTask,
  anEvent,
  aSend,
  attemptOf,
  commit,
  lease,
  LULU,
  OTHER_TENANT,
  pushOf,
  sendKeyOf,
  settle,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";
import { aNewTaskPush } from "./task-push-records.ts";

const GONE = "走了@studio" as AgentId;
const LEASE_END_MS = NOON_MS + 60_000;

/** Fills an empty store with records of every kind, of two tenants. The same records each time. */
export async function populate(store: RelayStore): Promise<void> {
  await populateAccess(store);
  await populateMessages(store);
  await populateTasks(store);
  await populatePushes(store);
  await populateOtherTenant(store);
  await populateRetired(store);
}

/** Sends with the digest that the verification of the journal compares. */
export async function sendOnRecord(
  store: RelayStore,
  [fields, delivery]: Parameters<typeof aSend>,
  key?: string,
): Promise<ReturnType<typeof aSend>["messages"][0]> {
  const { messages, events, ...changes } = aSend(fields, delivery);
  const [message] = messages;
  const data = { digest: digestOfText(message.json) };
  await commit(store, {
    ...changes,
    messages,
    events: events.map((event): EventDraft => ({ ...event, data })),
    ...(key === undefined ? {} : { sendKeys: [sendKeyOf(message, key)] }),
  });
  return message;
}

async function populateAccess(store: RelayStore): Promise<void> {
  await store.keys.identity("relay-private-key");
  await commit(store, {
    keys: [
      aNewKey({ id: "key_1", agentId: LULU, verbs: ["messages.send"] }),
      aNewKey({ id: "key_2", revokedAtMs: NOON_MS, signingSecret: "" }),
      aNewKey({ id: "key_3", signingSecret: "签名", expiresAtMs: NOON_MS + 5 }),
    ],
    capabilities: [aNewCapability({ id: "cap_1", scope: { max_uses: 3 } })],
    custodialKeys: [{ tenant: TENANT, publicKey: "key-of-zhiwei", privateKey: "private-key-of-zhiwei" }],
    agents: [
      aNewAgent({ id: LULU, displayName: "露露", aliases: ["lulu", "露"] }),
      aNewAgent({ publicKey: "key-of-zhiwei", isCustodial: true, ttlMs: 60_000 }),
      aNewAgent({ id: GONE, displayName: "走了", removedAtMs: NOON_MS }),
    ],
    nonces: [{ keyId: "key_3", nonce: "一次", expiresAtMs: NOON_MS + 9 }],
    events: [anEvent({ type: "agent.registered", data: { names: ["露露", "知微"] } })],
  });
  await store.agents.touch(TENANT, LULU, NOON_MS + 3);
}

async function populateMessages(store: RelayStore): Promise<void> {
  const own = { id: "msg_01", threadId: "thread_01", json: '{"body":"知微你好\\u0000 \\"引号\\" \u2028"}' };
  await sendOnRecord(store, [own], "键-1");
  await sendOnRecord(store, [{ id: "m-leased" }, { duplicateSafety: "idempotent", idempotencyKey: "键-2" }]);
  await sendOnRecord(store, [{ id: "m-available" }, { deliveredAtMs: NOON_MS + 1, reservedFor: "w-2" }]);
  await sendOnRecord(store, [{ id: "m-held" }, { state: "held", quiet: true }]);
  await sendOnRecord(store, [{ id: "m-done", threadId: "话题" }], "键-3");
  await settle(store, "msg_01", NOON_MS + 7);
  await settle(store, "m-done");
  const leased = await lease(store, { leaseIds: ["lease-1"], worker: "w-1", leaseExpiresAtMs: LEASE_END_MS });
  assert.deepEqual(
    leased.map(({ message }) => message.id),
    ["m-leased"],
  );
}

async function populateTasks(store: RelayStore): Promise<void> {
  const threadId = "thread_02";
  await sendOnRecord(store, [
    { id: "msg_02", kind: "request", taskId: "task-1", threadId },
    { purpose: "work" },
  ]);
  await commit(store, {
    tasks: [
      aNewTask({
        id: "task-1",
        messageId: "msg_02",
        threadId,
        resultKey: "结果",
        askedOf: ZHIWEI,
        updateCount: 1,
      }),
      aNewTask({
        id: "task-2",
        messageId: "m-done",
        state: "completed",
        resultStatus: "ok",
        clientId: "客户-1",
      }),
    ],
    artifacts: [
      { tenant: TENANT, taskId: "task-1", artifact: { artifactId: "b", parts: [{ text: "译文" }] } },
      { tenant: TENANT, taskId: "task-1", artifact: { artifactId: "a", parts: [{ text: "注" }] } },
    ],
    taskUpdates: [
      { tenant: TENANT, taskId: "task-1", n: 1, atMs: NOON_MS, step: { kind: "status", state: "working" } },
    ],
    cachedResults: [aCachedResult({ resultKey: "旧结果", parts: [{ text: "译好了" }] })],
    taskPushes: [aNewTaskPush({ id: "push-1", taskId: "task-1", token: "口令", nextAtMs: NOON_MS })],
    remoteTasks: [aRemoteTask({ taskId: "task-1", answer: { refused: "忙" } })],
  });
}

async function populatePushes(store: RelayStore): Promise<void> {
  await commit(store, { pushEndpoints: [aNewPushEndpoint({ afterPosition: 2, failures: 1 })] });
  const [message] = await store.messages.get(TENANT, ["m-leased"]);
  assert.ok(message);
  const push = pushOf(message, { attempts: 2, position: 2 });
  await commit(store, {
    pushes: [push],
    pushAttempts: [
      attemptOf(push),
      attemptOf(push, { attempt: 2, status: null, error: "超时", answer: null }),
    ],
  });
}

/** Its journal has lost its beginning to retention. */
async function populateOtherTenant(store: RelayStore): Promise<void> {
  const tenant = OTHER_TENANT;
  await commit(store, {
    tenant,
    tenants: [{ id: tenant, capabilities: true, createdAtMs: NOON_MS, version: 0 }],
    agents: [aNewAgent({ tenant }), aNewAgent({ tenant, id: LULU })],
    events: [anEvent({ type: "agent.registered" }), anEvent({ type: "agent.updated" })],
  });
  const [first] = (await store.retention.events(tenant, NOON_MS + 1, 1)).map(({ seq, hash }) => ({
    seq,
    hash,
  }));
  assert.ok(first);
  await store.retention.retireEvents(tenant, first);
  await sendOnRecord(store, [{ tenant, id: "msg_01", threadId: "thread_01" }], "键-1");
  await commit(store, { tenant, anchors: [{ tenant, ...first, atMs: NOON_MS }] });
}

/** A message whose send key is all that is left of it, and its events. */
async function populateRetired(store: RelayStore): Promise<void> {
  const { id } = await sendOnRecord(store, [{ id: "m-gone" }], "键-4");
  await settle(store, id);
  const accepted = (await store.journal.ofMessages(TENANT, [id]))[0]?.seq ?? 0;
  const messages: readonly RetiredMessage[] = [[id, accepted]];
  const event = anEvent({ type: "mail.retired", actor: "operator", agentId: null, data: { messages } });
  await store.retention.retireMessages(TENANT, [id], NOON_MS + 8, event);
}
