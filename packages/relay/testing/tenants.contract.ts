import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { journalTopic, mailboxTopic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { eventHash, GENESIS } from "../src/core/rules/event.ts";
import { NOON_MS } from "./fake-clock.ts";
import { expiryAt } from "./records.ts";
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
  countOpen,
  marks,
} from "./store-builders.ts";
import { publicKeyOf } from "../src/core/rules/agent-owner.ts";
import { agentsNamed } from "../src/core/rules/agent-names.ts";

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
    agent: await store.agents.get(tenant, ZHIWEI),
    withKey: await store.agents.withKey(tenant, "pk"),
    publicKey: await publicKeyOf(store, tenant, ZHIWEI),
    custodialKey: await store.agents.custodialKey(tenant, "pk"),
    keys: await store.keys.list({ ...page, agentId: undefined }),
    keysOfAgent: await store.keys.list({ ...page, agentId: ZHIWEI }),
    capability: await store.capabilities.get(tenant, "cap"),
    capabilitiesFor: await store.capabilities.of(tenant, capability.subjectKey, capability.action),
    between: await store.capabilities.between(tenant, LULU, ZHIWEI),
    capabilities: await store.capabilities.list({ ...page, party: undefined }),
    capabilitiesOf: await store.capabilities.list({ ...page, party: capability }),
    withClientId: await store.tasks.withClientId(tenant, LULU, "编号"),
    withResultKey: await store.tasks.unfinishedWithResultKey(tenant, "rk"),
    cachedResult: await store.tasks.cachedResult(tenant, "rk", NOON_MS),
    oldestMailbox: await store.deliveries.oldestMailbox(tenant, "mail", NOON_MS),
    named: await agentsNamed(store, tenant, "别名"),
    agents: await store.agents.list({ tenant, isRemoved: false, afterId: "", limit: 10 }),
    agentCount: await store.agents.count(tenant),
    message: (await store.messages.get(tenant, ["同"]))[0],
    sendKey: await store.messages.sendKey(tenant, LULU, ZHIWEI, "key"),
    thread: await store.messages.thread({ tenant, threadId: "话题", limit: 10, bytesMax: BYTES_MAX }),
    threads: await store.messages.threads({ tenant, ...threads }),
    available: await store.deliveries.available({ ...READ, tenant }),
    delivery: (await store.deliveries.get(tenant, ["同"]))[0],
    ofTask: await store.deliveries.openOfTasks(tenant, ["task"]),
    ofAgent: await store.deliveries.openOfAgent(tenant, ZHIWEI, 10),
    open: await countOpen(store, tenant, ZHIWEI),
    byState: [...(await store.deliveries.countByState(tenant))],
    queue: await store.deliveries.queue({ ...filter, ...queue }),
    settled: await store.deliveries.queue({ ...filter, ...queue, state: "acknowledged" }),
    leased: await store.deliveries.queue({ ...filter, ...queue, state: "leased" }),
    pushEndpoint: await store.endpoints.get(tenant, ZHIWEI),
    push: (await store.pushes.get(tenant, ["同"]))[0],
    pushAttempts: await store.pushes.attempts(tenant, "同", 100),
    duePushes: await store.pushes.due(tenant, ZHIWEI, FAR_MS, 10),
    pushesOf: await store.pushes.list({ tenant, agentId: ZHIWEI, state: undefined, limit: 10 }),
    pendingPushes: await store.pushes.countPending(tenant, ZHIWEI),
    task: (await store.tasks.get(tenant, ["task"]))[0],
    tasks: await store.tasks.list({ ...filter, ...tasks }),
    artifacts: await store.tasks.artifacts(tenant, "task"),
    artifactCounts: [...(await store.tasks.countArtifacts(tenant, ["task"]))],
    events: await store.journal.events({ ...filter, ...window }),
    story: await store.journal.ofMessages(tenant, ["同"]),
    head: (await store.journal.chain(tenant)).head,
    anchor: (await store.journal.chain(tenant)).start,
    retirable: await store.retention.messages(tenant, FAR_MS, 10),
    oldEvents: await store.retention.events(tenant, FAR_MS, 10),
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
      await store.deliveries.renew(OTHER_TENANT, ZHIWEI, [{ messageId: "同", leaseId: "l" }], FAR_MS);
      await store.agents.touch(OTHER_TENANT, ZHIWEI, FAR_MS);
      const theirs = await storedDelivery(store, "同", OTHER_TENANT);
      const [task] = await store.tasks.get(OTHER_TENANT, ["task"]);
      const capability = await store.capabilities.get(OTHER_TENANT, "cap");
      const endpoint = await store.endpoints.get(OTHER_TENANT, ZHIWEI);
      const [push] = await store.pushes.get(OTHER_TENANT, ["同"]);
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
      await store.deliveries.markDelivered(marks(OTHER_TENANT, ["同"], NOON_MS));
      assert.deepEqual(await seenBy(store, TENANT), before);
      await store.retention.retireMessages(OTHER_TENANT, ["同"], NOON_MS);
      await store.retention.retireEvents(OTHER_TENANT, (await store.journal.chain(OTHER_TENANT)).head);
      await store.retention.forgetExpired(expiryAt(0, { sendKeysBeforeMs: FAR_MS }));
      assert.equal((await store.messages.get(OTHER_TENANT, ["同"]))[0], undefined);
      assert.deepEqual(await seenBy(store, TENANT), before);
    });

    it("lose no event to the retention of a tenant that has none", async () => {
      await using store = await open();
      await fill(store, TENANT);
      const before = await seenBy(store, TENANT);
      await store.retention.retireEvents(OTHER_TENANT, { seq: 100, hash: "0".repeat(64) });
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
        const { events } = await store.journal.events({
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
      assert.deepEqual(tenantsOf((await store.sweeps.lapsed(FAR_MS, 10)).expired), both);
      assert.deepEqual(tenantsOf((await store.sweeps.lapsed(NOON_MS, 10)).overdueTasks), both);
      assert.deepEqual(
        tenantsOf(await store.endpoints.list({ state: "active", after: undefined, limit: 10 })),
        both,
      );
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
