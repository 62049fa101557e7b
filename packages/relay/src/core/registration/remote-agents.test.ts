import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FakeOutside } from "../../../testing/fake-outside.ts";
import { outcomesOf } from "../../../testing/outcomes.ts";
import { refused } from "../../../testing/refusal.ts";
import { aNewAgent } from "../../../testing/store-builders.ts";
import { DEFAULT_TENANT, type Principal } from "../access/principal.ts";

const URL_A = "https://Agent.Example:443/助手";
const ID = "https://agent.example/%E5%8A%A9%E6%89%8B" as AgentId;

describe("a remote agent", () => {
  it("is registered by the first message to its URL, in any spelling", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const first = await core.send({ to: URL_A });
    assert.equal(first.receipt.recipient, ID);
    const { receipt } = await core.send({ to: "HTTPS://agent.example/%E5%8A%A9%E6%89%8B" });
    assert.equal(receipt.recipient, ID);
    const agent = await core.agents.get(core.operator, URL_A);
    assert.equal(agent.agent_id, ID);
    assert.equal(agent.display_name, "agent.example/%E5%8A%A9%E6%89%8B");
    assert.deepEqual([agent.callback_url, agent.push, agent.custodial], [ID, "a2a", true]);
    const endpoint = await core.pushes.endpoint(core.operator, ID, {});
    assert.deepEqual([endpoint.push, endpoint.ack, endpoint.state], ["a2a", true, "active"]);
    assert.equal((await core.inboxOf(ID)).length, 2);
    assert.equal((await core.agents.list(core.operator, {})).total, 3);
  });

  it("is registered once by many messages at once", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    await Promise.all(Array.from({ length: 20 }, () => core.send({ to: URL_A })));
    const { events } = await core.journal.events(core.operator, { type: "agent.registered" });
    assert.equal(events.filter(({ agent }) => agent === ID).length, 1);
    assert.equal((await core.inboxOf(ID)).length, 20);
  });

  it("gets messages from batches and from A2A callers", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const message = { from: LULU, to: URL_A, body: "喂" };
    const sent = await core.messages.sendBatch(core.operator, { messages: [message] });
    assert.deepEqual(outcomesOf(sent), ["created"]);
    assert.equal(await core.a2a.resolve(core.operator, "https://other.example"), "https://other.example/");
    const caller = {
      principal: core.lulu,
      agentId: "https://other.example/" as AgentId,
      version: "1.0",
    } as const;
    const params = {
      message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "喂" }] },
      configuration: { returnImmediately: true },
    };
    const asked = { ...caller, extensions: [], idempotencyKey: undefined };
    const { task } = await core.a2a.send(asked, params, {});
    assert.equal(task?.status.state, "TASK_STATE_SUBMITTED");
    assert.equal((await core.inboxOf("https://other.example/")).length, 1);
  });

  it("does not exist before that, and no agent can register or send under such an id", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    await refused(core.agents.get(core.operator, URL_A), "unknown_agent", /no agent has written to/);
    await refused(core.send({ from: URL_A, to: ZHIWEI }), "unknown_agent", /^from: /);
    await refused(core.send({ to: URL_A, from: "unknown" }), "unknown_agent", /^from: /);
    for (const named of [
      { agent_id: ID },
      { agent_id: "x@y", aliases: ["https:x"] },
      { agent_id: "http:x" },
    ]) {
      await refused(core.agents.register(core.operator, named), "invalid_argument");
    }
    assert.equal((await core.agents.list(core.operator, {})).total, 2);
  });

  it("is refused at a blocked address, or at one that is longer than an id", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    await refused(core.send({ to: "http://10.0.0.1/" }), "invalid_argument", /A2A_RELAY_EGRESS_ALLOW/);
    await refused(core.send({ to: "https://a@b.example/" }), "invalid_argument", /without a user/);
    await refused(core.send({ to: "https://b.example/#" }), "invalid_argument", /a fragment/);
    for (const query of ["?key=机密", "?"]) {
      const error = await refused(
        core.send({ to: `https://b.example/a${query}` }),
        "invalid_argument",
        /no query/,
      );
      assert.doesNotMatch(String(error), /机密/);
    }
    const long = `https://b.example/${"x".repeat(LIMITS.idCharsMax)}`;
    await refused(core.send({ to: long }), "too_large", /push: "a2a" instead/);
  });

  it("may be removed, and is registered again by the next message", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    await core.send({ to: URL_A });
    await core.agents.remove(core.operator, URL_A);
    await refused(core.agents.get(core.operator, URL_A), "unknown_agent");
    await core.send({ to: URL_A, body: "又来" });
    const messages = await core.inboxOf(ID);
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["又来"],
    );
    assert.equal((await core.pushes.endpoint(core.operator, ID, {})).state, "active");
  });

  it("is not registered when the message to it is refused", async () => {
    await using core = await coreOnMemory({ capabilities: true }, new FakeOutside());
    const request = { to: URL_A, type: "request", body: "做" } as const;
    await refused(core.messages.send(core.lulu, request), "permission_denied", /must be an operator's/);
    for (const bad of [
      { reply_to: "没有", type: "reply" },
      { expires_at: new Date(0).toISOString() },
      { parent: "没有", type: "request" },
    ] as const) {
      await assert.rejects(core.send({ to: URL_A, ...bad }));
    }
    assert.equal((await core.store.agents.count(DEFAULT_TENANT)).remote, 0);
    assert.equal(await core.store.endpoints.get(DEFAULT_TENANT, ID), undefined);
    await core.send(request);
    assert.equal((await core.store.agents.count(DEFAULT_TENANT)).remote, 1);
    await refused(core.messages.send(core.lulu, request), "permission_denied", /a2a\.send/);
  });

  it("is registered by a batch with several messages for it, all or none, or one by one", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const messages = [URL_A, ZHIWEI, URL_A].map((to) => ({ from: LULU, to, body: "喂" }));
    for (const atomic of [true, false]) {
      const sent = await core.messages.sendBatch(core.operator, { messages, atomic });
      assert.deepEqual(outcomesOf(sent), ["created", "created", "created"]);
      assert.equal((await core.inboxOf(ID)).length, 2);
      await core.agents.remove(core.operator, ID);
    }
    const { events } = await core.journal.events(core.operator, { type: "agent.registered" });
    assert.equal(events.filter(({ agent }) => agent === ID).length, 2);
  });

  it("is not shown to agents that did not name it", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    for (let n = 0; n < 7; n += 1) await core.send({ to: `https://agent.example/${n}` });
    await core.agents.register(core.operator, { agent_id: "aaa@host" });
    const { agents, total } = await core.agents.list(core.lulu, {});
    assert.deepEqual([agents.map(({ agent_id: id }) => id), total], [["aaa@host", LULU, ZHIWEI], 3]);
    const first = await core.agents.list(core.lulu, { limit: 2 });
    const second = await core.agents.list(core.lulu, { limit: 2, page_token: first.pageToken });
    assert.deepEqual(
      [...first.agents, ...second.agents].map(({ agent_id: id }) => id),
      ["aaa@host", LULU, ZHIWEI],
    );
    assert.equal((await core.agents.list(core.operator, {})).total, 10);
    assert.equal((await core.agents.get(core.lulu, "https://agent.example/3")).callback_url, undefined);
  });

  it("is not visible without a key", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const url = "https://plain.example/";
    const before = await refused(core.a2aCards.agentCard(undefined, url), "unknown_agent");
    await core.send({ to: url });
    const after = await refused(core.a2aCards.agentCard(undefined, url), "unknown_agent");
    assert.equal(after.message, before.message);
    await refused(core.a2aCards.agentCard(undefined, "plain.example"), "unknown_agent");
    await refused(core.a2aCards.writtenCard(undefined, url), "unknown_agent");
    assert.equal((await core.a2aCards.agentCard(core.lulu, url)).card["name"], "plain.example");
  });

  it("is found by the relay's own agent for operators only", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    await core.send({ to: URL_A });
    const params = { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "list agents" }] } };
    const said = async (principal: Principal): Promise<string> =>
      JSON.stringify((await core.relayAgent.answer(principal, params)).message);
    assert.match(await said(core.operator), /agent\.example/);
    assert.doesNotMatch(await said(core.lulu), /agent\.example/);
  });

  it("is one of a bounded number, also for a batch of all or none", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const agents = Array.from({ length: LIMITS.externalAgentsMax - 1 }, (_, index) =>
      aNewAgent({ id: `https://agent.example/${index}` as AgentId, displayName: `助手${index}` }),
    );
    await core.store.commit({ tenant: DEFAULT_TENANT, agents, events: [] });
    const messages = ["甲", "乙"].map((name) => ({
      from: LULU,
      to: `https://agent.example/${name}`,
      body: "喂",
    }));
    await refused(core.messages.sendBatch(core.operator, { messages, atomic: true }), "resource_exhausted");
    const sent = await core.messages.sendBatch(core.operator, { messages });
    assert.deepEqual(outcomesOf(sent), ["created", "resource_exhausted"]);
  });

  it("is one of a bounded number", async () => {
    await using core = await coreOnMemory({}, new FakeOutside());
    const agents = Array.from({ length: LIMITS.externalAgentsMax - 1 }, (_, index) =>
      aNewAgent({ id: `https://agent.example/${index}` as AgentId, displayName: `助手${index}` }),
    );
    await core.store.commit({ tenant: DEFAULT_TENANT, agents, events: [] });
    await core.send({ to: "https://agent.example/last" });
    await refused(core.send({ to: "https://agent.example/more" }), "resource_exhausted", /DELETE \/agents/);
    await core.send({ to: "https://agent.example/last" });
    await core.agents.remove(core.operator, "https://agent.example/7");
    await core.send({ to: "https://agent.example/more" });
  });
});
