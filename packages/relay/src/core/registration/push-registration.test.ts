import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import type { AgentId, RegisterRequest, Verb } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { HOOK, pushingCore } from "../../../testing/pushing-core.ts";
import { refused } from "../../../testing/refusal.ts";
import type { Principal } from "../access/principal.ts";

const KEY_ID = "key_limited";
const MOVED = "https://moved.example/收";

function limited(principal: Principal, verbs: readonly Verb[]): Principal {
  return { ...principal, keyId: KEY_ID, verbs: new Set(verbs) };
}

async function eventsOf(core: CoreOnMemory, type: string) {
  const { events } = await core.journal.events(core.operator, { type, limit: 500 });
  return events.filter(({ agent }) => agent === ZHIWEI);
}

function digestOf(url: string): string {
  return hash("sha256", url, "hex").slice(0, 16);
}

describe("a key that may register and not read messages", () => {
  const wishes: readonly [what: string, said: Partial<RegisterRequest>][] = [
    ["switches no push on", { callback_url: MOVED, push: "webhook" }],
    ["has none acknowledged", { push_ack: true }],
    ["does not move the endpoint", { callback_url: MOVED }],
    ["does not take its address away", { callback_url: null }],
    ["does not switch it off", { push: null }],
    ["does not change what is sent", { notice: true }],
  ];
  for (const [what, said] of wishes) {
    it(`${what}, and the refusal is recorded`, async () => {
      await using core = await pushingCore();
      const before = await core.store.endpoints.get("default", ZHIWEI);
      for (const holder of [core.zhiwei, core.operator]) {
        const caller = limited(holder, ["agents.write", "agents.read"]);
        const register = core.agents.register(caller, { agent_id: ZHIWEI, ...said });
        await refused(register, "permission_denied", /may not be used for push\.write/);
      }
      assert.deepEqual(await core.store.endpoints.get("default", ZHIWEI), before);
      assert.equal((await core.agents.get(core.zhiwei, ZHIWEI)).callback_url, HOOK);
      const denied = (await eventsOf(core, "access.denied")).map(({ data }) => data);
      const data = { verb: "push.write", key_id: KEY_ID };
      assert.deepEqual(denied, [data, data]);
    });
  }

  it("may still register, also with the same address", async () => {
    await using core = await pushingCore();
    const caller = limited(core.zhiwei, ["agents.write"]);
    await core.agents.register(caller, { agent_id: ZHIWEI, callback_url: HOOK, ttl_ms: 60_000 });
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, callback_url: null });
    await core.agents.register(caller, { agent_id: ZHIWEI, display_name: "知微" });
    await core.agents.register(caller, { agent_id: ZHIWEI, callback_url: null });
    await core.agents.register(core.lulu, { agent_id: LULU, callback_url: HOOK });
    const other = limited(core.lulu, ["agents.write"]);
    await core.agents.register(other, { agent_id: LULU, callback_url: HOOK });
    await core.agents.register(other, { agent_id: LULU, callback_url: null });
    assert.deepEqual(await eventsOf(core, "access.denied"), []);
  });

  it("leaves no other address behind in an endpoint that is switched off", async () => {
    await using core = await pushingCore();
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: null });
    const caller = limited(core.zhiwei, ["agents.write"]);
    const planted = core.agents.register(caller, { agent_id: ZHIWEI, callback_url: MOVED });
    await refused(planted, "permission_denied");
    const { agent } = await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    assert.equal(agent.callback_url, HOOK);
  });
});

describe("a key that may register and not read messages, for an agent without push", () => {
  const states: readonly [when: string, said: readonly Partial<RegisterRequest>[]][] = [
    ["an agent without an address", []],
    ["an agent with an address that is not called", [{ callback_url: HOOK }]],
    [
      "an agent that took its address away",
      [{ callback_url: HOOK, push: "webhook" }, { callback_url: null }],
    ],
  ];
  for (const [when, said] of states) {
    it(`plants no address with ${when}, which would be called later`, async () => {
      await using core = await coreOnMemory();
      for (const each of said) await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, ...each });
      const before = (await core.agents.get(core.zhiwei, ZHIWEI)).callback_url;
      for (const [missing, ...verbs] of [
        ["push.write", "agents.write", "agents.read"],
        ["mailbox.read", "agents.write", "push.write"],
      ] as const) {
        const planted = core.agents.register(limited(core.zhiwei, verbs), {
          agent_id: ZHIWEI,
          callback_url: MOVED,
        });
        await refused(planted, "permission_denied", new RegExp(`may not be used for ${missing}`));
      }
      assert.equal((await core.agents.get(core.zhiwei, ZHIWEI)).callback_url, before);
    });
  }

  it("registers no new agent with an address", async () => {
    await using core = await coreOnMemory();
    const caller = limited(core.operator, ["agents.write"]);
    const agentId = "新来的@known-blocks1" as AgentId;
    const wanted = { agent_id: agentId, callback_url: MOVED };
    await refused(core.agents.register(caller, wanted), "permission_denied", /push\.write/);
    assert.equal(await core.store.agents.get("default", agentId), undefined);
  });
});

describe("registering for push", () => {
  const missing: readonly [missing: Verb, verbs: readonly Verb[], said: Partial<RegisterRequest>][] = [
    ["push.write", ["agents.write", "mailbox.read"], { push: "webhook" }],
    ["mailbox.read", ["agents.write", "push.write"], { push: "webhook", notice: true }],
    ["mailbox.settle", ["agents.write", "push.write", "mailbox.read"], { push: "webhook", push_ack: true }],
    ["mailbox.settle", ["agents.write", "push.write", "mailbox.read"], { push: "a2a" }],
  ];
  for (const [verb, verbs, said] of missing) {
    it(`takes ${verb} for ${JSON.stringify(said)}`, async () => {
      await using core = await coreOnMemory();
      const wanted = { agent_id: ZHIWEI, callback_url: HOOK, ...said };
      const register = core.agents.register(limited(core.zhiwei, verbs), wanted);
      await refused(register, "permission_denied", new RegExp(`may not be used for ${verb}`));
      assert.equal(await core.store.endpoints.get("default", ZHIWEI), undefined);
      const { push_secret } = await core.agents.register(limited(core.zhiwei, [...verbs, verb]), wanted);
      if (said.push === "webhook") assert.match(push_secret ?? "", /^whsec_/);
      else assert.equal(push_secret, undefined);
    });
  }

  it("that acknowledges takes mailbox.settle, whichever key chose that before", async () => {
    await using core = await pushingCore({ push_ack: true });
    const caller = limited(core.zhiwei, ["agents.write", "push.write", "mailbox.read"]);
    for (const said of [{ callback_url: MOVED }, { push: "webhook" }, { push_ack: true }]) {
      const register = core.agents.register(caller, { agent_id: ZHIWEI, ...said });
      await refused(register, "permission_denied", /may not be used for mailbox\.settle/);
    }
    const plain = { agent_id: ZHIWEI, callback_url: MOVED, push_ack: false };
    assert.equal((await core.agents.register(caller, plain)).agent.callback_url, MOVED);
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push_ack: true });
    assert.equal(
      (await core.agents.register(caller, { agent_id: ZHIWEI, push: null })).agent.push,
      undefined,
    );
  });

  it("makes an event with the key and a digest of the address, never the address", async () => {
    await using core = await coreOnMemory();
    const caller = limited(core.zhiwei, ["agents.write", "push.write", "mailbox.read"]);
    const register = (said: Partial<RegisterRequest>) =>
      core.agents.register(caller, { agent_id: ZHIWEI, ...said });
    await register({ callback_url: HOOK, push: "webhook" });
    await register({ callback_url: MOVED });
    await register({ ttl_ms: 60_000 });
    await register({ push: null });
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: "webhook" });
    const events = await eventsOf(core, "agent.updated");
    assert.deepEqual(
      events.map(({ actor, data: { push, callback_digest, key_id } }) => [
        actor,
        push,
        callback_digest,
        key_id,
      ]),
      [
        [ZHIWEI, "webhook", digestOf(HOOK), KEY_ID],
        [ZHIWEI, "webhook", digestOf(MOVED), KEY_ID],
        [ZHIWEI, undefined, undefined, undefined],
        [ZHIWEI, null, digestOf(MOVED), KEY_ID],
        ["operator", "webhook", digestOf(MOVED), undefined],
      ],
    );
    assert.doesNotMatch(JSON.stringify(events), /example/);
  });
});

describe("the address of a receiver", () => {
  it("is for the agent itself and for operators, in every view of agents", async () => {
    await using core = await pushingCore();
    const seen = async (viewer: Principal): Promise<readonly unknown[]> => {
      const one = await core.agents.get(viewer, "zhiwei");
      const { items, agents } = await core.agents.list(viewer, {});
      return [one, ...[items, agents].map((all) => all.find(({ agent_id }) => agent_id === ZHIWEI))].map(
        (view) => view?.callback_url,
      );
    };
    assert.deepEqual(await seen(core.zhiwei), [HOOK, HOOK, HOOK]);
    assert.deepEqual(await seen(core.operator), [HOOK, HOOK, HOOK]);
    assert.deepEqual(await seen(core.lulu), [undefined, undefined, undefined]);
    const { push, agent_card } = await core.agents.get(core.lulu, ZHIWEI);
    assert.equal(push, "webhook");
    assert.doesNotMatch(JSON.stringify(agent_card), /zhiwei\.example/);
    assert.equal((await core.agents.heartbeat(core.zhiwei, ZHIWEI)).callback_url, HOOK);
  });
});
