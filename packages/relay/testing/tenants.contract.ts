import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { journalTopic, mailboxTopic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { eventHash, GENESIS } from "../src/core/rules/event.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aCachedResult,
  aNewAgent,
  aNewCapability,
  aNewKey,
  aNewPushEndpoint,
  aNewTask,
  aSend,
  attemptOf,
  BYTES_MAX,
  commit,
  eventAbout,
  lease,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  pushOf,
  READ,
  sendKeyOf,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const FAR_MS = NOON_MS + 1_000_000_000;

/** The same ids in both tenants, so that only the tenant tells the records apart. */
async function fill(store: RelayStore, tenant: string): Promise<void> {
  const sent = aSend({
    tenant,
    id: "同",
    threadId: "话题",
    taskId: "task",
    json: JSON.stringify({ tenant }),
  });
  const push = pushOf(sent.messages[0], { reason: tenant });
  await commit(store, {
    ...sent,
    pushEndpoints: [aNewPushEndpoint({ tenant, url: `https://${tenant}.example` })],
    pushes: [push],
    pushAttempts: [attemptOf(push, { answer: tenant })],
    nonces: [{ keyId: "key", nonce: "随机数", expiresAtMs: NOON_MS }],
    agents: [aNewAgent({ tenant, aliases: ["别名"], publicKey: "pk", isCustodial: true })],
    custodialKeys: [{ tenant, publicKey: "pk", privateKey: `of ${tenant}` }],
    keys: [aNewKey({ tenant, agentId: ZHIWEI })],
    capabilities: [aNewCapability({ tenant, id: "cap" })],
    cachedResults: [aCachedResult({ tenant, resultKey: "rk", text: tenant })],
    sendKeys: [sendKeyOf(sent.messages[0], "key")],
    tasks: [
      aNewTask({
        tenant,
        id: "task",
        messageId: "同",
        threadId: "话题",
        clientId: "编号",
        resultKey: "rk",
        deadlineMs: NOON_MS,
      }),
    ],
    artifacts: [{ tenant, taskId: "task", artifact: { artifactId: "a", parts: [{ text: tenant }] } }],
  });
}

/** Everything the first tenant can see, through every reading verb. */
async function seenBy(store: RelayStore, tenant: string): Promise<unknown> {
  const filter = { tenant, state: undefined, agentId: undefined, threadId: undefined, limit: 10 };
  const window = { afterSeq: 0, type: undefined, scanRowsMax: 100 };
  const tasks = { parentId: undefined, afterId: "" };
  const queue = { leasedBeforeMs: undefined, deadlineBeforeMs: undefined };
  const threads = { agent: undefined, beforePosition: Number.MAX_SAFE_INTEGER, limit: 10, scanRowsMax: 100 };
  const page = { tenant, afterId: "", limit: 10 };
  const capability = aNewCapability();
  return {
    agent: await store.agent(tenant, ZHIWEI),
    withKey: await store.agentWithKey(tenant, "pk"),
    publicKey: await store.publicKeyOf(tenant, ZHIWEI),
    custodialKey: await store.custodialKey(tenant, "pk"),
    keys: await store.keys({ ...page, agentId: undefined }),
    keysOfAgent: await store.keys({ ...page, agentId: ZHIWEI }),
    capability: await store.capability(tenant, "cap"),
    capabilitiesFor: await store.capabilitiesFor(tenant, capability.subjectKey, capability.action),
    between: await store.accessBetween(tenant, LULU, ZHIWEI),
    capabilities: await store.capabilities({ ...page, party: undefined }),
    capabilitiesOf: await store.capabilities({ ...page, party: capability }),
    withClientId: await store.tasksWithClientId(tenant, LULU, "编号"),
    withResultKey: await store.unfinishedWithResultKey(tenant, "rk"),
    cachedResult: await store.cachedResult(tenant, "rk", NOON_MS),
    oldestMailbox: await store.oldestMailbox(tenant, "mail", NOON_MS),
    named: await store.agentsNamed(tenant, "别名"),
    agents: await store.agents(tenant, { afterId: "", limit: 10 }),
    agentCount: await store.countAgents(tenant),
    message: await store.message(tenant, "同"),
    sendKey: await store.sendKey(tenant, LULU, ZHIWEI, "key"),
    thread: await store.thread({ tenant, threadId: "话题", limit: 10, bytesMax: BYTES_MAX }),
    threads: await store.threads({ tenant, ...threads }),
    available: await store.availableMessages({ ...READ, tenant }),
    delivery: await store.delivery(tenant, "同"),
    ofTask: await store.openDeliveriesOfTask(tenant, "task"),
    ofAgent: await store.openDeliveriesOfAgent(tenant, ZHIWEI, 10),
    open: await store.countOpen(tenant, ZHIWEI),
    byState: [...(await store.countOpenByState(tenant))],
    queue: await store.queue({ ...filter, ...queue }),
    settled: await store.queue({ ...filter, ...queue, state: "acknowledged" }),
    leased: await store.queue({ ...filter, ...queue, state: "leased" }),
    pushEndpoint: await store.pushEndpoint(tenant, ZHIWEI),
    push: await store.push(tenant, "同"),
    pushAttempts: await store.pushAttempts(tenant, "同", 100),
    duePushes: await store.duePushes(tenant, ZHIWEI, FAR_MS, 10),
    pushesOf: await store.pushesOf({ tenant, agentId: ZHIWEI, state: undefined, limit: 10 }),
    pendingPushes: await store.countPendingPushes(tenant, ZHIWEI),
    task: await store.task(tenant, "task"),
    tasks: await store.tasks({ ...filter, ...tasks }),
    artifacts: await store.artifacts(tenant, "task"),
    artifactCounts: [...(await store.countArtifacts(tenant, ["task"]))],
    events: await store.events({ ...filter, ...window }),
    story: await store.eventsOfMessage(tenant, "同"),
    head: await store.chainHead(tenant),
    anchor: await store.chainAnchor(tenant),
    retirable: await store.retirableMessages(tenant, FAR_MS, 10),
    oldEvents: await store.retirableEvents(tenant, FAR_MS, 10),
  };
}

export function describeTenants(open: OpenStore): void {
  describe("tenants", () => {
    it("see nothing of each other, through any verb, whatever the other does", async () => {
      await using store = await open();
      await fill(store, TENANT);
      const before = await seenBy(store, TENANT);
      await fill(store, OTHER_TENANT);
      assert.deepEqual(await seenBy(store, TENANT), before);

      await lease(store, { tenant: OTHER_TENANT, leaseIds: ["l"] });
      await store.renewLeases(OTHER_TENANT, ZHIWEI, [{ messageId: "同", leaseId: "l" }], FAR_MS);
      await store.touchAgent(OTHER_TENANT, ZHIWEI, FAR_MS);
      const theirs = await storedDelivery(store, "同", OTHER_TENANT);
      const task = await store.task(OTHER_TENANT, "task");
      const capability = await store.capability(OTHER_TENANT, "cap");
      const endpoint = await store.pushEndpoint(OTHER_TENANT, ZHIWEI);
      const push = await store.push(OTHER_TENANT, "同");
      assert.ok(task && capability && endpoint && push);
      await commit(store, {
        tenant: OTHER_TENANT,
        deliveries: [{ ...theirs, state: "acknowledged", settledAtMs: NOON_MS }],
        tasks: [{ ...task, state: "completed" }],
        capabilities: [{ ...capability, revokedAtMs: NOON_MS }],
        pushEndpoints: [{ ...endpoint, state: "disabled" }],
        pushes: [{ ...push, state: "failed", nextAtMs: null }],
        pushAttempts: [attemptOf(push, { attempt: 2 })],
        cachedResults: [aCachedResult({ tenant: OTHER_TENANT, resultKey: "rk", text: "新" })],
        custodialKeys: [{ tenant: OTHER_TENANT, publicKey: "pk", privateKey: "新" }],
      });
      await store.markDelivered(OTHER_TENANT, ["同"], NOON_MS, eventAbout("message.delivered"));
      assert.deepEqual(await seenBy(store, TENANT), before);
      await store.retireMessages(OTHER_TENANT, ["同"], NOON_MS);
      await store.retireEvents(OTHER_TENANT, await store.chainHead(OTHER_TENANT));
      await store.forgetSendKeys(FAR_MS);
      assert.equal(await store.message(OTHER_TENANT, "同"), undefined);
      assert.deepEqual(await seenBy(store, TENANT), before);
    });

    it("lose no event to the retention of a tenant that has none", async () => {
      await using store = await open();
      await fill(store, TENANT);
      const before = await seenBy(store, TENANT);
      await store.retireEvents(OTHER_TENANT, { seq: 100, hash: "0".repeat(64) });
      assert.deepEqual(await seenBy(store, TENANT), before);
    });

    it("see an empty store where only others have messages", async () => {
      await using store = await open();
      const empty = await seenBy(store, OTHER_TENANT);
      await fill(store, TENANT);
      assert.deepEqual(await seenBy(store, OTHER_TENANT), empty);
    });

    it("have each their own chain, also when they commit at once", async () => {
      await using store = await open();
      const tenants = [TENANT, OTHER_TENANT];
      await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          store.commit(aSend({ tenant: tenants[index % 2] ?? TENANT })),
        ),
      );
      for (const tenant of tenants) {
        const { events } = await store.events({
          tenant,
          afterSeq: 0,
          type: undefined,
          agentId: undefined,
          threadId: undefined,
          limit: 100,
          scanRowsMax: 100,
        });
        assert.deepEqual(
          events.map(({ seq }) => seq),
          Array.from({ length: 30 }, (_, index) => index + 1),
        );
        let { hash } = GENESIS;
        for (const event of events) {
          assert.equal(event.previousHash, hash);
          assert.equal(event.hash, eventHash(event));
          hash = event.hash;
        }
      }
    });

    it("are swept alike: expiry, leases, deadlines and endpoints are found for all of them", async () => {
      await using store = await open();
      await fill(store, TENANT);
      await fill(store, OTHER_TENANT);
      const tenantsOf = (found: readonly { readonly tenant: string }[]): readonly string[] =>
        found.map(({ tenant }) => tenant).toSorted();
      const both = [TENANT, OTHER_TENANT].toSorted();
      assert.deepEqual(tenantsOf(await store.expiredDeliveries(FAR_MS, 10)), both);
      assert.deepEqual(tenantsOf(await store.overdueTasks(NOON_MS, 10)), both);
      assert.deepEqual(tenantsOf(await store.activePushEndpoints(undefined, 10)), both);
    });

    it("wake only their own readers", async () => {
      await using store = await open();
      using mailbox = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      using journal = store.feed.watch(journalTopic(TENANT));
      await fill(store, OTHER_TENANT);
      assert.equal(await mailbox.changed({ timeoutMs: 0 }), false);
      assert.equal(await journal.changed({ timeoutMs: 0 }), false);
    });
  });
}
