import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, keyProofText, LIMITS, type RegisterRequest } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { isSignedBy, newKeyPair, signingKey } from "../rules/ed25519.ts";
import { rootOperator } from "../access/principal.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

const KAMES = "kames@桌面" as AgentId;

interface Claimed {
  readonly tenant?: string;
  readonly agent_id?: string;
  readonly atMs?: number;
  readonly pair?: ReturnType<typeof newKeyPair>;
}

/** A registration with a key and its proof. */
function bringing(core: CoreOnMemory, claimed: Claimed = {}): RegisterRequest {
  const { publicKey: pubkey_b58, privateKey } = claimed.pair ?? newKeyPair();
  const signed_at = new Date(claimed.atMs ?? core.clock.nowMs()).toISOString();
  const { tenant = "default", agent_id = KAMES } = claimed;
  const text = keyProofText({ tenant, agent_id, pubkey_b58, signed_at });
  return {
    agent_id: KAMES,
    pubkey_b58,
    key_proof: { signed_at, signature_b58: signingKey(privateKey).sign(text) },
  };
}

describe("a name that is a public key", () => {
  it("is only for the agent that has that key", async () => {
    await using core = await coreOnMemory();
    const { pubkey_b58: lulu = "" } = await core.agents.get(core.operator, LULU);
    for (const more of [{ agent_id: lulu }, { aliases: [lulu] }, { display_name: lulu }]) {
      const request = { agent_id: KAMES, ...more };
      await refused(core.agents.register(core.operator, request), "invalid_argument", /is a public key/);
    }
    const { agent } = await core.agents.register(core.lulu, { agent_id: LULU, aliases: [lulu] });
    assert.deepEqual(agent.aliases, [lulu]);
  });
});

describe("an agent that brings no key", () => {
  it("gets one that the relay holds, and keeps it", async () => {
    await using core = await coreOnMemory();
    const { agent } = await core.agents.register(core.operator, { agent_id: KAMES });
    assert.equal(agent.custodial, true);
    const publicKey = agent.pubkey_b58 ?? "";
    const held = await core.store.agents.custodialKey("default", publicKey);
    const signature = signingKey(held?.privateKey ?? "").sign("你好");
    assert.ok(isSignedBy(publicKey, "你好", signature));
    const again = await core.agents.register(core.operator, { agent_id: KAMES, display_name: "卡梅斯" });
    assert.equal(again.agent.pubkey_b58, publicKey);
    const listed = (await core.agents.list(core.operator, {})).items.find(
      ({ agent_id }) => agent_id === KAMES,
    );
    assert.deepEqual([listed?.pubkey_b58, listed?.custodial], [publicKey, true]);
    const { events } = await core.journal.events(core.operator, { type: "agent.registered", agent: KAMES });
    assert.deepEqual(events[0]?.data, { aliases: [], pubkey_b58: publicKey, custodial: true });
  });

  it("and is of an older store gets one when it registers next", async () => {
    await using core = await coreOnMemory();
    const known = await core.store.agents.get("default", LULU);
    assert.ok(known);
    const nameless = { ...known.agent, publicKey: null, isCustodial: false };
    await core.store.commit({ tenant: "default", agents: [nameless], events: [] });
    assert.equal((await core.agents.get(core.operator, LULU)).pubkey_b58, undefined);
    const { created, api_key, agent } = await core.agents.register(core.operator, { agent_id: LULU });
    assert.deepEqual([created, api_key, agent.custodial], [false, undefined, true]);
    assert.ok(await core.store.agents.custodialKey("default", agent.pubkey_b58 ?? ""));
  });

  it("gets another one after its removal", async () => {
    await using core = await coreOnMemory();
    const before = await core.agents.get(core.operator, LULU);
    await core.agents.remove(core.operator, LULU);
    const { agent } = await core.agents.register(core.operator, { agent_id: LULU });
    assert.notEqual(agent.pubkey_b58, before.pubkey_b58);
  });
});

describe("an agent that brings its key", () => {
  it("is known by it once it has shown that it holds the private half", async () => {
    await using core = await coreOnMemory();
    const request = bringing(core);
    const { agent } = await core.agents.register(core.operator, request);
    assert.deepEqual([agent.pubkey_b58, agent.custodial], [request.pubkey_b58, false]);
    const { key_proof, ...unchanged } = request;
    const again = await core.agents.register(core.operator, unchanged);
    assert.equal(again.agent.custodial, false, "the same key needs no new proof");
    assert.ok(key_proof);
  });

  it("may change it with a new proof", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: KAMES });
    const first = bringing(core);
    await core.agents.register(core.operator, first);
    const second = bringing(core);
    const { agent } = await core.agents.register(core.operator, second);
    assert.deepEqual([agent.pubkey_b58, agent.custodial], [second.pubkey_b58, false]);
    assert.equal(await publicKeyOf(core.store, "default", KAMES), second.pubkey_b58);
  });

  it("may not bring one that another agent has", async () => {
    await using core = await coreOnMemory();
    const pair = newKeyPair();
    await core.agents.register(core.operator, bringing(core, { pair }));
    const other = { ...bringing(core, { pair, agent_id: "nina@desk" }), agent_id: "nina@desk" };
    await refused(core.agents.register(core.operator, other), "conflict", /^pubkey_b58: another agent/);
    await core.keys.create(rootOperator(), { tenant: "acme" });
    const inAcme = bringing(core, { pair, tenant: "acme" });
    await core.agents.register(rootOperator("acme"), inAcme);
  });

  it("has to sign within minutes of now", async () => {
    await using core = await coreOnMemory();
    for (const lateMs of [-LIMITS.keyProofAgeMsMax, LIMITS.keyProofAgeMsMax]) {
      const atMs = core.clock.nowMs() + lateMs;
      await core.agents.register(core.operator, bringing(core, { atMs }));
      const stale = bringing(core, { atMs: atMs + Math.sign(lateMs) });
      await refused(core.agents.register(core.operator, stale), "permission_denied", /5 minutes/);
    }
  });

  const elses: readonly [what: string, claimed: Claimed][] = [
    ["another agent", { agent_id: "nina@desk" }],
    ["another tenant", { tenant: "acme" }],
  ];
  for (const [what, claimed] of elses) {
    it(`does not get in with a proof for ${what}, and the refusal is recorded`, async () => {
      await using core = await coreOnMemory();
      await refused(
        core.agents.register(core.operator, bringing(core, claimed)),
        "permission_denied",
        /^key_proof: the signature is not one of pubkey_b58/,
      );
      const { events } = await core.journal.events(core.operator, { type: "access.denied" });
      assert.deepEqual(
        events.map(({ agent, data }) => [agent, data]),
        [[KAMES, { verb: "agents.write" }]],
      );
      await refused(core.agents.get(core.operator, KAMES), "unknown_agent");
    });
  }

  it("does not get in with another's key, or without a proof", async () => {
    await using core = await coreOnMemory();
    const { pubkey_b58 = "", key_proof } = bringing(core);
    assert.ok(key_proof);
    const others = newKeyPair().publicKey;
    const tries: readonly [RegisterRequest, "permission_denied" | "invalid_argument", RegExp][] = [
      [{ agent_id: KAMES, pubkey_b58: others, key_proof }, "permission_denied", /^key_proof: /],
      [{ agent_id: KAMES, pubkey_b58 }, "invalid_argument", /^key_proof: is missing/],
      [{ agent_id: KAMES, key_proof }, "invalid_argument", /^key_proof: .* without pubkey_b58/],
      [
        { agent_id: KAMES, pubkey_b58: "知微", key_proof },
        "invalid_argument",
        /^pubkey_b58: expected the 32 bytes/,
      ],
      [{ agent_id: KAMES, pubkey_b58: "1", key_proof }, "invalid_argument", /^pubkey_b58: /],
      [{ pubkey_b58, key_proof }, "invalid_argument", /^pubkey_b58: needs agent_id/],
      [
        { agent_id: KAMES, pubkey_b58, key_proof: { ...key_proof, signed_at: "now" } },
        "invalid_argument",
        /^key_proof\.signed_at: /,
      ],
      [
        { agent_id: KAMES, pubkey_b58, key_proof: { ...key_proof, signature_b58: "no signature" } },
        "permission_denied",
        /^key_proof: /,
      ],
    ];
    for (const [request, code, words] of tries) {
      await refused(core.agents.register(core.operator, request), code, words);
    }
  });
});
