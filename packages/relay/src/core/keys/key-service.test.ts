import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import { type AgentId, LIMITS, type Verb } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, operatorOf, type Principal, rootOperator } from "../access/principal.ts";

const ROOT = rootOperator();
const ACME = operatorOf("acme");

function limited<Caller extends Principal>(principal: Caller, ...verbs: readonly Verb[]): Caller {
  return { ...principal, keyId: "key_limited", verbs: new Set(verbs) };
}

async function eventsOf(core: CoreOnMemory, tenant: string, type: string) {
  return (await core.journal.events(operatorOf(tenant), { type, limit: 500 })).events;
}

describe("a new key", () => {
  it("is returned once and stored as a digest", async () => {
    await using core = await coreOnMemory();
    const created = await core.keys.create(core.operator, { agent_id: "kames@桌面" });
    assert.match(created.key, /^key_[0-9a-f-]{36}\.[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    const [id, secret = ""] = created.key.split(".");
    assert.equal(id, created.key_id);
    const kept = await core.store.keys.get(created.key_id);
    assert.equal(kept?.digest, hash("sha256", secret, "hex"));
    assert.ok(!JSON.stringify(kept).includes(secret));
    const listed = await core.keys.list(core.operator, { agent: "kames@桌面" });
    const { key: _, ...view } = created;
    assert.deepEqual(listed.keys, [view]);
    const events = await eventsOf(core, "default", "key.created");
    assert.deepEqual(events.at(-1)?.data, { key_id: created.key_id, agent_id: "kames@桌面" });
    assert.ok(!JSON.stringify(events).includes(secret));
    assert.equal(view.created_by, "operator");
    assert.equal(view.state, "active");
  });

  it("creates its tenant, with an event in that tenant's journal", async () => {
    await using core = await coreOnMemory();
    for (const name of ["acme", "工作室", "a.b_c-d"]) {
      const { tenant } = await core.keys.create(ROOT, { tenant: name });
      assert.equal(tenant, name);
      const { events } = await core.journal.events(operatorOf(name), {});
      assert.deepEqual(
        events.map(({ type }) => type),
        ["tenant.changed", "key.created"],
      );
    }
    await core.keys.create(ROOT, { tenant: "acme" });
    assert.equal((await eventsOf(core, "acme", "tenant.changed")).length, 1);
    assert.deepEqual(await eventsOf(core, "default", "tenant.changed"), []);
  });

  it("creates one tenant, also when several are created at once", async () => {
    await using core = await coreOnMemory();
    await Promise.all([1, 2, 3].map(() => core.keys.create(ROOT, { tenant: "acme" })));
    assert.equal((await eventsOf(core, "acme", "tenant.changed")).length, 1);
    assert.equal((await core.keys.list(ROOT, { tenant: "acme" })).keys.length, 3);
  });

  it("is for an id: an alias is refused, and an unknown id is accepted", async () => {
    await using core = await coreOnMemory();
    const wanted = { agent_id: "nina@desk", aliases: ["nina"], display_name: "妮娜" };
    await core.agents.register(core.operator, wanted);
    for (const agent_id of ["nina", "妮娜"]) {
      await refused(
        core.keys.create(ROOT, { agent_id }),
        "conflict",
        /is a name of nina@desk; a key needs the id/,
      );
    }
    assert.equal((await core.keys.create(ROOT, { agent_id: "nina@desk" })).agent_id, "nina@desk");
    assert.equal((await core.keys.create(ROOT, { agent_id: "nina@home" })).agent_id, "nina@home");
    assert.equal((await core.keys.create(ROOT, { tenant: "别家", agent_id: "nina" })).agent_id, "nina");
  });

  it("normalises a tenant's name", async () => {
    await using core = await coreOnMemory();
    await core.keys.create(ROOT, { tenant: "cafe\u0301" });
    const { key_id } = await core.keys.create(ROOT, { tenant: "caf\u00e9" });
    assert.equal((await core.keys.list(ROOT, { tenant: "cafe\u0301" })).keys.length, 2);
    assert.equal((await core.store.keys.get(key_id))?.tenant, "caf\u00e9");
  });

  const wrong: readonly [request: object, words: RegExp, code?: "too_large"][] = [
    [{ tenant: "a/b" }, /^tenant: "a\/b" is not a tenant's name/],
    [{ tenant: ".." }, /^tenant: /],
    [{ tenant: "a b" }, /^tenant: /],
    [{ tenant: "a\u0000" }, /^tenant: /],
    [{ tenant: "" }, /^tenant: /],
    [{ tenant: "知".repeat(65) }, /^tenant: .*64 characters/, "too_large"],
    [{ agent_id: "operator" }, /^agent_id: "operator" is reserved/],
    [{ agent_id: "operator:key_1" }, /reserved/],
    [{ agent_id: "postmaster@relay" }, /reserved/],
    [{ agent_id: "a b" }, /^agent_id: /],
    [{ verbs: ["messages.send", "fly"] }, /^verbs: there is no fly; known are agents\.read, /],
    [{ verbs: [] }, /^verbs: /],
    [{ expires_at: "tomorrow" }, /^expires_at: expected an ISO 8601/],
    [{ expires_at: "2020-01-01T00:00:00Z" }, /^expires_at: .* has passed; it is 2026-05-08T12:00:00/],
    [{ expires_at: Number.MAX_SAFE_INTEGER }, /^expires_at: .*year 9999/],
    [{ expires: 7 }, /unknown field/],
  ];
  for (const [request, words, code = "invalid_argument"] of wrong) {
    it(`is not made from ${JSON.stringify(request)}`, async () => {
      await using core = await coreOnMemory();
      await refused(core.keys.create(ROOT, request), code, words);
    });
  }

  it("expires at the given time, as ISO 8601 or in milliseconds", async () => {
    await using core = await coreOnMemory();
    const atMs = core.clock.nowMs() + DAY_MS;
    const instant = new Date(atMs).toISOString();
    for (const expires_at of [atMs, instant]) {
      assert.equal((await core.keys.create(ROOT, { expires_at })).expires_at, instant);
    }
    assert.equal((await core.keys.create(ROOT, { expires_at: null })).expires_at, undefined);
    core.clock.advance(DAY_MS);
    const { keys } = await core.keys.list(ROOT, {});
    assert.deepEqual(
      keys.slice(-3).map(({ state }) => state),
      ["expired", "expired", "active"],
    );
  });

  it("is made only by operators, and only in their own tenant", async () => {
    await using core = await coreOnMemory();
    await core.keys.create(ROOT, { tenant: "acme" });
    assert.equal((await core.keys.create(ACME, { agent_id: LULU })).tenant, "acme");
    for (const tenant of ["default", "nowhere"]) {
      await refused(core.keys.create(ACME, { tenant }), "permission_denied", /^an operator of acme may not/);
      await refused(core.keys.list(ACME, { tenant }), "permission_denied");
    }
    await refused(core.keys.create(core.lulu, { agent_id: LULU }), "permission_denied");
    await refused(core.keys.list(core.lulu, {}), "permission_denied");
    assert.equal((await eventsOf(core, "acme", "access.denied")).length, 4);
    assert.equal((await eventsOf(core, "default", "access.denied")).length, 2);
    assert.equal(await core.store.tenants.get("nowhere"), undefined);
  });

  it("may do no more than the key that created it", async () => {
    await using core = await coreOnMemory();
    const caller = limited(core.operator, "keys.write", "messages.send");
    const made = await core.keys.create(caller, { verbs: ["messages.send"] });
    assert.deepEqual(made.verbs, ["messages.send"]);
    assert.equal(made.created_by, "operator:key_limited");
    for (const verbs of [undefined, ["messages.send", "events.read"]]) {
      const request = verbs === undefined ? {} : { verbs };
      await refused(core.keys.create(caller, request), "permission_denied", /keys\.write, messages\.send/);
    }
    assert.equal((await eventsOf(core, "default", "access.denied")).length, 2);
    const reader = limited(core.operator, "keys.read");
    await refused(core.keys.create(reader, {}), "permission_denied", /may not be used for keys\.write/);
  });

  it("is refused beyond the limit of one agent", async () => {
    await using core = await coreOnMemory();
    const kames = "kames@desk";
    for (let count = 0; count < LIMITS.agentKeysMax; count += 1) {
      await core.keys.create(ROOT, { agent_id: kames });
    }
    await refused(core.keys.create(ROOT, { agent_id: kames }), "resource_exhausted", /revoke some/);
    const [first] = (await core.keys.list(ROOT, { agent: kames })).keys;
    await refused(core.keys.rotate(ROOT, first?.key_id ?? "", {}), "resource_exhausted");
    await core.keys.revoke(ROOT, first?.key_id ?? "");
    await core.keys.create(ROOT, { agent_id: kames });
  });
});

describe("the list of keys", () => {
  it("comes in pages, by agent on request, and refuses an unknown tenant", async () => {
    await using core = await coreOnMemory();
    for (let count = 0; count < 3; count += 1) await core.keys.create(ROOT, { agent_id: LULU });
    const { keys } = await core.keys.list(core.operator, { agent: LULU });
    assert.equal(keys.length, 4, "with the one of its registration");
    const found: string[] = [];
    let page_token: string | undefined;
    do {
      const query = { limit: 2, ...(page_token === undefined ? {} : { page_token }) };
      const page = await core.keys.list(core.operator, query);
      found.push(...page.keys.map(({ key_id }) => key_id));
      page_token = page.pageToken;
    } while (page_token !== undefined);
    assert.equal(new Set(found).size, 5);
    await refused(core.keys.list(ROOT, { tenant: "nowhere" }), "not_found", /no tenant nowhere/);
  });
});

describe("rotation", () => {
  it("makes a key of the same scope, and ends the old one after the overlap", async () => {
    await using core = await coreOnMemory();
    const old = await core.keys.create(ROOT, { agent_id: LULU, verbs: ["mailbox.read"] });
    const next = await core.keys.rotate(core.operator, old.key_id, {});
    assert.notEqual(next.key, old.key);
    assert.deepEqual([next.agent_id, next.verbs, next.replaces], [LULU, ["mailbox.read"], old.key_id]);
    const endsAt = new Date(core.clock.nowMs() + LIMITS.keyOverlapMsDefault).toISOString();
    assert.deepEqual([next.old_key_id, next.old_expires_at], [old.key_id, endsAt]);
    const [event] = await eventsOf(core, "default", "key.rotated");
    assert.deepEqual(event?.data, {
      key_id: next.key_id,
      agent_id: LULU,
      verbs: ["mailbox.read"],
      replaces: old.key_id,
      old_expires_at: endsAt,
    });
  });

  it("neither prolongs the old key nor the new one", async () => {
    await using core = await coreOnMemory();
    const expires_at = new Date(core.clock.nowMs() + 1_000).toISOString();
    const old = await core.keys.create(ROOT, { expires_at });
    const next = await core.keys.rotate(core.operator, old.key_id, { overlap_ms: DAY_MS });
    assert.deepEqual([next.expires_at, next.old_expires_at], [expires_at, expires_at]);
    core.clock.advance(1_000);
    await refused(core.keys.rotate(core.operator, next.key_id, {}), "wrong_state", /has expired/);
  });

  it("without an overlap ends the old key at once", async () => {
    await using core = await coreOnMemory();
    const old = await core.keys.create(ROOT, {});
    await core.keys.rotate(core.operator, old.key_id, { overlap_ms: 0 });
    const { keys } = await core.keys.list(core.operator, {});
    assert.equal(keys.find(({ key_id }) => key_id === old.key_id)?.state, "expired");
    await refused(core.keys.rotate(core.operator, old.key_id, { overlap_ms: -1 }), "invalid_argument");
  });

  it("is for operators, and for the key of an agent itself", async () => {
    await using core = await coreOnMemory();
    const own = await core.keys.create(ROOT, { agent_id: LULU });
    const second = await core.keys.create(ROOT, { agent_id: LULU });
    const caller = { ...core.lulu, keyId: own.key_id };
    const next = await core.keys.rotate(caller, own.key_id, {});
    assert.deepEqual([next.agent_id, next.created_by], [LULU, LULU]);
    const again = await core.keys.rotate(caller, own.key_id, {});
    assert.notEqual(again.key_id, next.key_id, "the reply with the first may have been lost");
    for (const keyId of [second.key_id, "key_nowhere"]) {
      await refused(
        core.keys.rotate(caller, keyId, {}),
        "permission_denied",
        /lulu@kamac may not use keys\.write/,
      );
    }
    await refused(core.keys.revoke(caller, own.key_id), "permission_denied");
    const few = { ...limited(core.lulu, "messages.send"), keyId: own.key_id };
    await refused(core.keys.rotate(few, own.key_id, {}), "permission_denied", /may not be used for/);
  });

  it("is no way around the limits of the caller's own key", async () => {
    await using core = await coreOnMemory();
    const mighty = await core.keys.create(ROOT, {});
    const caller = limited(core.operator, "keys.write");
    await refused(core.keys.rotate(caller, mighty.key_id, {}), "permission_denied", /hands out no more/);
    const modest = await core.keys.create(ROOT, { verbs: ["keys.write"] });
    await core.keys.rotate(caller, modest.key_id, {});
  });
});

describe("revocation", () => {
  it("is final", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await core.keys.create(ROOT, { agent_id: ZHIWEI });
    const revoked = await core.keys.revoke(core.operator, key_id);
    assert.deepEqual([revoked.state, revoked.revoked_at], ["revoked", "2026-05-08T12:00:00.000Z"]);
    assert.equal("key" in revoked, false);
    await refused(core.keys.revoke(core.operator, key_id), "wrong_state", /was revoked at 2026-05-08/);
    await refused(core.keys.rotate(core.operator, key_id, {}), "wrong_state");
    const events = await eventsOf(core, "default", "key.revoked");
    assert.deepEqual(
      events.map(({ agent, data }) => [agent, data]),
      [[ZHIWEI, { key_id, agent_id: ZHIWEI }]],
    );
  });

  it("finds no key of another tenant, and the journal does not name it either", async () => {
    await using core = await coreOnMemory();
    await core.keys.create(ROOT, { tenant: "acme" });
    const { key_id } = await core.keys.create(ROOT, {});
    const heads = await Promise.all(["acme", "default"].map((tenant) => core.store.journal.chain(tenant)));
    const messages = [];
    for (const id of [key_id, "key_nowhere"]) {
      messages.push((await refused(core.keys.revoke(ACME, id), "not_found")).message);
      messages.push((await refused(core.keys.rotate(ACME, id, {}), "not_found")).message);
    }
    assert.equal(new Set(messages).size, 1);
    assert.deepEqual(
      await Promise.all(["acme", "default"].map((tenant) => core.store.journal.chain(tenant))),
      heads,
    );
  });

  it("in every tenant is for the relay's operator, with an event in that tenant", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await core.keys.create(ROOT, { tenant: "acme" });
    await core.keys.revoke(ROOT, key_id);
    assert.equal((await eventsOf(core, "acme", "key.revoked")).length, 1);
    assert.equal((await eventsOf(core, "default", "key.revoked")).length, 0);
  });
});

describe("an agent that leaves", () => {
  it("loses all its keys in the same commit, and no other agent does", async () => {
    await using core = await coreOnMemory();
    const inAcme = agentOf("acme", LULU);
    await core.keys.create(ROOT, { tenant: "acme", agent_id: inAcme.agentId });
    const gone = await core.keys.create(ROOT, { agent_id: LULU });
    await core.keys.revoke(ROOT, gone.key_id);
    for (let count = 0; count < 3; count += 1) await core.keys.create(ROOT, { agent_id: LULU });
    await core.agents.remove(core.operator, LULU);
    const { keys } = await core.keys.list(core.operator, {});
    const working = keys.filter(({ state }) => state === "active");
    assert.deepEqual(
      working.map(({ agent_id }) => agent_id),
      [ZHIWEI],
    );
    assert.equal((await core.keys.list(ROOT, { tenant: "acme" })).keys[0]?.state, "active");
    assert.equal((await eventsOf(core, "default", "key.revoked")).length, 1 + 4);
    const again = await core.agents.register(core.operator, { agent_id: LULU });
    assert.equal(again.created, true);
    assert.match(again.api_key ?? "", /^key_/);
  });

  it("has a key that was rotated in between revoked as well", async () => {
    await using core = await coreOnMemory();
    const [own] = (await core.keys.list(core.operator, { agent: LULU })).keys;
    const caller = { ...core.lulu, keyId: own?.key_id ?? "" };
    await Promise.all([
      core.keys.rotate(caller, caller.keyId, {}).catch(() => undefined),
      core.agents.remove(core.operator, LULU),
    ]);
    const { keys } = await core.keys.list(core.operator, { agent: LULU });
    assert.ok(
      keys.every(({ state }) => state === "revoked"),
      JSON.stringify(keys),
    );
  });
});

describe("the key of a registration", () => {
  it("is the agent's own, created in the same commit and returned once", async () => {
    await using core = await coreOnMemory();
    const kames = "kames@desk" as AgentId;
    const first = await core.agents.register(core.operator, { agent_id: kames });
    const [key] = (await core.keys.list(core.operator, { agent: kames })).keys;
    assert.equal(first.api_key?.split(".")[0], key?.key_id);
    const update = await core.agents.register(core.operator, { agent_id: kames, display_name: "卡梅斯" });
    assert.deepEqual([update.created, update.api_key], [false, undefined]);
    assert.equal((await core.keys.list(core.operator, { agent: kames })).keys.length, 1);
  });

  it("is limited as the caller's own", async () => {
    await using core = await coreOnMemory();
    const caller = limited(core.operator, "agents.write", "agents.read");
    await core.agents.register(caller, { agent_id: "kames@desk" });
    const { keys } = await core.keys.list(core.operator, { agent: "kames@desk" });
    assert.deepEqual(keys[0]?.verbs, ["agents.write", "agents.read"]);
  });
});
