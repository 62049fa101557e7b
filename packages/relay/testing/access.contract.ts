import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { CapabilityFilter, CapabilityRecord, KeyFilter } from "../src/core/ports/access.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import { expiryAt } from "./records.ts";
import {
  aNewAgent,
  aNewCapability,
  aNewKey,
  clashOf,
  commit,
  LULU,
  newId,
  type OpenStore,
  OTHER_TENANT,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

async function keyIds(store: RelayStore, said: Partial<KeyFilter> = {}): Promise<readonly string[]> {
  const keys = await store.keys.list({
    tenant: TENANT,
    agentId: undefined,
    afterId: "",
    limit: 100,
    ...said,
  });
  return keys.map(({ id }) => id);
}

async function capabilityIds(
  store: RelayStore,
  said: Partial<CapabilityFilter> = {},
): Promise<readonly string[]> {
  const filter = { tenant: TENANT, party: undefined, afterId: "", limit: 100, ...said };
  return (await store.capabilities.list(filter)).map(({ id }) => id);
}

async function grant(store: RelayStore, said: Partial<CapabilityRecord> = {}): Promise<string> {
  const capability = aNewCapability(said);
  await commit(store, { tenant: capability.tenant, capabilities: [capability] });
  return capability.id;
}

async function register(store: RelayStore, id: AgentId, publicKey: string, tenant = TENANT): Promise<void> {
  const existing = await store.agents.get(tenant, id);
  const agent = { ...(existing?.agent ?? aNewAgent({ tenant, id })), publicKey };
  await commit(store, { tenant, agents: [agent] });
}

function describePairs(open: OpenStore): void {
  describe("the access between two agents", () => {
    it("has their present keys, the sender's permissions and the recipient's consents", async () => {
      await using store = await open();
      assert.deepEqual(await store.capabilities.between(TENANT, LULU, ZHIWEI), {
        senderKey: undefined,
        recipientKey: undefined,
        permissions: [],
        consents: [],
      });
      await register(store, LULU, "kl");
      await register(store, ZHIWEI, "kz");
      const older = await grant(store, { subjectKey: "kl", action: "a2a.send.kz", issuedAtMs: NOON_MS });
      const younger = await grant(store, {
        subjectKey: "kl",
        action: "a2a.send.kz",
        issuedAtMs: NOON_MS + 1,
      });
      const consent = await grant(store, { subjectKey: "kz", action: "a2a.recv.kl" });
      // None of these is about a message from Lulu to Zhiwei.
      await grant(store, { subjectKey: "kz", action: "a2a.send.kl" });
      await grant(store, { subjectKey: "kl", action: "a2a.recv.kz" });
      await grant(store, { subjectKey: "kl", action: "a2a.send.kz", tenant: OTHER_TENANT });
      const { senderKey, recipientKey, permissions, consents } = await store.capabilities.between(
        TENANT,
        LULU,
        ZHIWEI,
      );
      assert.deepEqual([senderKey, recipientKey], ["kl", "kz"]);
      assert.deepEqual(
        permissions.map(({ id }) => id),
        [older, younger],
      );
      assert.deepEqual(
        consents.map(({ id }) => id),
        [consent],
      );
    });

    it("changes with what is granted and revoked, and with the owner of the id", async () => {
      await using store = await open();
      const permissions = async (): Promise<readonly CapabilityRecord[]> =>
        (await store.capabilities.between(TENANT, LULU, ZHIWEI)).permissions;
      await register(store, LULU, "kl");
      await register(store, ZHIWEI, "kz");
      assert.deepEqual(await permissions(), []);
      await grant(store, { subjectKey: "kl", action: "a2a.send.kz" });
      const [granted] = await permissions();
      assert.ok(granted);
      await register(store, ZHIWEI, "kz2");
      assert.deepEqual(await permissions(), []);
      assert.equal((await store.capabilities.between(TENANT, LULU, ZHIWEI)).recipientKey, "kz2");
      await register(store, ZHIWEI, "kz");
      assert.deepEqual(await permissions(), [granted]);
      await commit(store, { capabilities: [{ ...granted, revokedAtMs: NOON_MS }] });
      assert.deepEqual(await permissions(), []);
      const left = (await store.agents.get(TENANT, LULU))?.agent;
      assert.ok(left);
      await commit(store, { agents: [{ ...left, removedAtMs: NOON_MS }] });
      assert.equal((await store.capabilities.between(TENANT, LULU, ZHIWEI)).senderKey, undefined);
    });
  });
}

function describeKeys(open: OpenStore): void {
  describe("keys", () => {
    it("are given back by id alone, with every field, in any script", async () => {
      await using store = await open();
      const full = aNewKey({
        tenant: OTHER_TENANT,
        agentId: ZHIWEI,
        verbs: ["messages.send", "mailbox.read"],
        createdBy: "操作员",
        expiresAtMs: NOON_MS + 5,
        revokedAtMs: NOON_MS + 3,
        replaces: "key_旧",
        replacedBy: "key_新",
        signingSecret: "whsec_秘密",
      });
      const plain = aNewKey();
      await commit(store, { keys: [full, plain] });
      assert.deepEqual(await store.keys.get(full.id), { ...full, version: 1 });
      assert.deepEqual(await store.keys.get(plain.id), { ...plain, version: 1 });
      assert.equal(await store.keys.get("key_unknown"), undefined);
    });

    it("can be read from the moment they are made, also after a read that found none", async () => {
      await using store = await open();
      const key = aNewKey();
      assert.equal(await store.keys.get(key.id), undefined);
      await commit(store, { keys: [key] });
      assert.equal((await store.keys.get(key.id))?.digest, key.digest);
    });

    it("are changed by version: a revocation counts at once, and a stale change is refused", async () => {
      await using store = await open();
      const { id } = aNewKey();
      await commit(store, { keys: [aNewKey({ id, expiresAtMs: NOON_MS })] });
      const before = await store.keys.get(id);
      assert.ok(before);
      const change = { revokedAtMs: NOON_MS, expiresAtMs: null, replacedBy: "key_新" };
      await commit(store, { keys: [{ ...before, ...change }] });
      const revoked = { ...before, ...change, version: before.version + 1 };
      assert.deepEqual(await store.keys.get(id), revoked);
      assert.equal(await clashOf(store, { keys: [before] }), "key");
      assert.deepEqual(await store.keys.get(id), revoked);
    });

    it("never share an id, whatever the tenant, and never change tenants", async () => {
      await using store = await open();
      const key = aNewKey();
      await commit(store, { keys: [key] });
      assert.equal(await clashOf(store, { keys: [aNewKey({ id: key.id })] }), "key");
      assert.equal(await clashOf(store, { keys: [aNewKey({ id: key.id, tenant: OTHER_TENANT })] }), "key");
      assert.equal(await clashOf(store, { keys: [{ ...key, tenant: OTHER_TENANT, version: 1 }] }), "key");
      assert.equal(await clashOf(store, { keys: [aNewKey({ version: 1 })] }), "key");
      assert.equal((await store.keys.get(key.id))?.tenant, TENANT);
    });

    it("that have expired keep no secret to sign with; all others keep theirs", async () => {
      await using store = await open();
      const signingSecret = "whsec_秘密";
      const expired = aNewKey({ signingSecret, expiresAtMs: NOON_MS });
      const others = [
        aNewKey({ signingSecret, tenant: OTHER_TENANT, expiresAtMs: NOON_MS + 1 }),
        aNewKey({ signingSecret }),
        aNewKey({ expiresAtMs: NOON_MS }),
      ];
      for (const key of [expired, ...others]) await commit(store, { tenant: key.tenant, keys: [key] });
      const before = await store.keys.get(expired.id);
      assert.ok(before);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS - 1)), 0);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS)), 1);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS)), 0);
      assert.deepEqual(await store.keys.get(expired.id), { ...expired, signingSecret: "", version: 2 });
      for (const key of others) assert.deepEqual(await store.keys.get(key.id), { ...key, version: 1 });
      assert.equal(await clashOf(store, { keys: [before] }), "key");
    });

    it("are listed by id, of one agent or of all, revoked ones too, page by page", async () => {
      await using store = await open();
      const [a, b, c, d] = [newId("key"), newId("key"), newId("key"), newId("key")];
      await commit(store, {
        keys: [
          aNewKey({ id: d, agentId: ZHIWEI }),
          aNewKey({ id: c, agentId: LULU }),
          aNewKey({ id: b, agentId: ZHIWEI, revokedAtMs: NOON_MS }),
          aNewKey({ id: a }),
          aNewKey({ tenant: OTHER_TENANT, agentId: ZHIWEI }),
        ],
      });
      assert.deepEqual(await keyIds(store), [a, b, c, d]);
      assert.deepEqual(await keyIds(store, { limit: 2 }), [a, b]);
      assert.deepEqual(await keyIds(store, { afterId: b, limit: 1 }), [c]);
      assert.deepEqual(await keyIds(store, { agentId: ZHIWEI }), [b, d]);
      assert.deepEqual(await keyIds(store, { agentId: ZHIWEI, limit: 1 }), [b]);
      assert.deepEqual(await keyIds(store, { agentId: ZHIWEI, afterId: b }), [d]);
      assert.deepEqual(await keyIds(store, { agentId: "unknown@host" as AgentId }), []);
    });

    it("are as they were when something else of the same change is refused", async () => {
      await using store = await open();
      const kept = aNewKey();
      await commit(store, { keys: [kept] });
      const before = await store.keys.get(kept.id);
      assert.ok(before);
      const lost = aNewKey();
      const [refused, accepted] = await Promise.all([
        clashOf(store, {
          keys: [{ ...before, revokedAtMs: NOON_MS }, lost],
          tenants: [{ id: TENANT, capabilities: true, createdAtMs: 0, version: 0 }],
        }),
        clashOf(store, { keys: [aNewKey()] }),
      ]);
      assert.deepEqual([refused, accepted], ["tenant", "none, it was committed"]);
      assert.deepEqual(await store.keys.get(kept.id), before);
      assert.equal(await store.keys.get(lost.id), undefined);
    });
  });
}

function describeTenantRecords(open: OpenStore): void {
  describe("the relay's identity", () => {
    it("is the first one that was offered, also when many are offered at the same time", async () => {
      await using store = await open();
      const offered = ["甲", "乙", "丙"];
      const answers = await Promise.all(offered.map((candidate) => store.keys.identity(candidate)));
      const [kept = ""] = answers;
      assert.ok(offered.includes(kept));
      assert.deepEqual(new Set(answers), new Set([kept]));
      assert.equal(await store.keys.identity("丁"), kept);
    });
  });

  describe("tenant records", () => {
    const other = { id: OTHER_TENANT, capabilities: true, createdAtMs: NOON_MS, version: 0 };

    it("hold the default tenant from the beginning, without capabilities", async () => {
      await using store = await open();
      const preset = { id: TENANT, capabilities: false, createdAtMs: 0, version: 1 };
      assert.deepEqual(await store.tenants.list(), [preset]);
      assert.deepEqual(await store.tenants.get(TENANT), preset);
      assert.equal(await clashOf(store, { tenants: [{ ...preset, version: 0 }] }), "tenant");
    });

    it("are added and listed by id", async () => {
      await using store = await open();
      assert.equal(await store.tenants.get(OTHER_TENANT), undefined);
      await commit(store, { tenants: [other, { ...other, id: "a-co", capabilities: false }] });
      assert.deepEqual(
        (await store.tenants.list()).map(({ id }) => id),
        ["a-co", TENANT, OTHER_TENANT],
      );
      assert.deepEqual(await store.tenants.get(OTHER_TENANT), { ...other, version: 1 });
    });

    it("are changed by version, and the change counts at once", async () => {
      await using store = await open();
      await commit(store, { tenants: [other] });
      const before = await store.tenants.get(OTHER_TENANT);
      assert.ok(before);
      await commit(store, { tenants: [{ ...before, capabilities: false }] });
      assert.deepEqual(await store.tenants.get(OTHER_TENANT), { ...before, capabilities: false, version: 2 });
      assert.equal(await clashOf(store, { tenants: [before] }), "tenant");
      assert.equal(await clashOf(store, { tenants: [{ ...other, id: "unknown", version: 1 }] }), "tenant");
      assert.equal((await store.tenants.get(OTHER_TENANT))?.capabilities, false);
    });
  });
}

function describeCapabilities(open: OpenStore): void {
  describe("capabilities", () => {
    it("are given back with every field, in any script", async () => {
      await using store = await open();
      const capability = aNewCapability({
        subject: "知微@known-blocks1" as AgentId,
        writtenAction: "a2a.send.知微",
        scope: { version: 1, task_id: "任务", max_uses: 3, delegable: true },
        parentId: "cap_父",
        expiresAtMs: NOON_MS + 7,
        revokedAtMs: NOON_MS + 5,
        used: 2,
      });
      await commit(store, { capabilities: [capability] });
      assert.deepEqual(await store.capabilities.get(TENANT, capability.id), { ...capability, version: 1 });
      assert.equal(await store.capabilities.get(TENANT, "cap_unknown"), undefined);
      assert.equal(await store.capabilities.get(OTHER_TENANT, capability.id), undefined);
    });

    it("are found by subject and action while not revoked, oldest first", async () => {
      await using store = await open();
      const younger = await grant(store, { issuedAtMs: NOON_MS + 2 });
      const older = await grant(store, { issuedAtMs: NOON_MS + 1, expiresAtMs: NOON_MS + 3 });
      await grant(store, { revokedAtMs: NOON_MS });
      await grant(store, { subjectKey: "another" });
      await grant(store, { action: "a2a.compact" });
      await grant(store, { tenant: OTHER_TENANT });
      const { subjectKey, action } = aNewCapability();
      const found = await store.capabilities.of(TENANT, subjectKey, action);
      assert.deepEqual(
        found.map(({ id }) => id),
        [older, younger],
      );
      assert.deepEqual(await store.capabilities.of(TENANT, subjectKey, "a2a.retry"), []);
    });

    it("count from the moment they are granted until they are revoked, also after a read that found none", async () => {
      await using store = await open();
      const { subjectKey, action } = aNewCapability();
      const inForce = (): Promise<readonly CapabilityRecord[]> =>
        store.capabilities.of(TENANT, subjectKey, action);
      assert.deepEqual(await inForce(), []);
      await grant(store);
      const [before] = await inForce();
      assert.ok(before);
      await commit(store, { capabilities: [{ ...before, used: 1 }] });
      assert.deepEqual(await inForce(), [{ ...before, used: 1, version: 2 }]);
      await commit(store, { capabilities: [{ ...before, version: 2, revokedAtMs: NOON_MS }] });
      assert.deepEqual(await inForce(), []);
    });

    it("let only one of many take the last use", async () => {
      await using store = await open();
      const id = await grant(store, { scope: { max_uses: 1 } });
      const before = await store.capabilities.get(TENANT, id);
      assert.ok(before);
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => clashOf(store, { capabilities: [{ ...before, used: 1 }] })),
      );
      assert.equal(outcomes.filter((outcome) => outcome === "none, it was committed").length, 1);
      assert.equal(outcomes.filter((outcome) => outcome === "capability").length, 19);
      assert.equal((await store.capabilities.get(TENANT, id))?.used, 1);
    });

    it("never share an id in one tenant, and are not changed before they exist", async () => {
      await using store = await open();
      const id = await grant(store);
      assert.equal(await clashOf(store, { capabilities: [aNewCapability({ id })] }), "capability");
      assert.equal(await clashOf(store, { capabilities: [aNewCapability({ version: 1 })] }), "capability");
      await grant(store, { id, tenant: OTHER_TENANT, subjectKey: "theirs" });
      assert.equal((await store.capabilities.get(OTHER_TENANT, id))?.subjectKey, "theirs");
      assert.notEqual((await store.capabilities.get(TENANT, id))?.subjectKey, "theirs");
    });

    it("are listed by id, of one party or of all, revoked ones too, page by page", async () => {
      await using store = await open();
      const [a, b, c, d] = [newId("cap"), newId("cap"), newId("cap"), newId("cap")];
      await grant(store, { id: d, subjectKey: "k1", grantedBy: "操作员" });
      await grant(store, { id: c, subjectKey: "k2", grantedBy: "操作员" });
      await grant(store, { id: b, subjectKey: "k2", grantedBy: "lulu" });
      await grant(store, { id: a, subjectKey: "k1", grantedBy: "lulu", revokedAtMs: NOON_MS });
      await grant(store, { subjectKey: "k1", grantedBy: "lulu", tenant: OTHER_TENANT });
      assert.deepEqual(await capabilityIds(store), [a, b, c, d]);
      assert.deepEqual(await capabilityIds(store, { afterId: a, limit: 2 }), [b, c]);
      const party = { subjectKey: "k1", grantedBy: "lulu" };
      assert.deepEqual(await capabilityIds(store, { party }), [a, b, d]);
      assert.deepEqual(await capabilityIds(store, { party, limit: 2 }), [a, b]);
      assert.deepEqual(await capabilityIds(store, { party, afterId: a, limit: 1 }), [b]);
      assert.deepEqual(await capabilityIds(store, { party, afterId: b }), [d]);
      assert.deepEqual(await capabilityIds(store, { party: { subjectKey: "?", grantedBy: "?" } }), []);
    });
  });
}

export function describeAccess(open: OpenStore): void {
  describeKeys(open);
  describePairs(open);
  describeTenantRecords(open);
  describeCapabilities(open);
}
