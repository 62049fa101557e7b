import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

describe("POST /agents/register", () => {
  it("answers 201 for a new agent and 200 for a known one", async () => {
    await using relay = await openHttpRelay();
    const first = await relay.post("/agents/register", { agent_id: "kames@kamac", display_name: "卡姆斯" });
    assert.equal(first.status, 201);
    assert.equal(first.headers["content-type"], "application/json; charset=utf-8");
    assert.deepEqual([first.json.agent_id, first.json.created], ["kames@kamac", true]);
    assert.equal(first.json.agent.agent_card["name"], "卡姆斯");
    const second = await relay.post("/agents/register", { agent_id: "kames@kamac" });
    assert.deepEqual([second.status, second.json.created], [200, false]);
    assert.equal(second.json.agent.display_name, "卡姆斯");
  });

  it("assigns an id when none is given", async () => {
    await using relay = await openHttpRelay();
    const { status, json } = await relay.post("/agents/register", {});
    assert.equal(status, 201);
    assert.match(json.agent_id, /^urn:uuid:/);
    assert.equal((await relay.get(`/agents/${json.agent_id}`)).status, 200);
  });

  it("goes by the name of POST /api/agents too, with agent_card", async () => {
    await using relay = await openHttpRelay();
    const card = { name: "Legacy", url: "http://localhost:9", skills: [{ id: "s", name: "S" }] };
    const { status, json } = await relay.post("/api/agents", { agent_id: "legacy", agent_card: card });
    assert.equal(status, 201);
    const [skill] = json.agent.agent_card["skills"] as readonly object[];
    assert.deepEqual(skill, { id: "s", name: "S", description: "S", tags: [] });
    // Callers go to the relay, unless the agent lets them go past it.
    assert.doesNotMatch(JSON.stringify(json.agent.agent_card), /localhost:9/);
  });

  it("refuses what it cannot use, and says why", async () => {
    await using relay = await openHttpRelay();
    const register = (body: unknown) => relay.post("/agents/register", body);
    await relay.refused(register({ agent_id: "../x" }), "invalid_argument", /^agent_id: /);
    await relay.refused(register({ agent_id: LULU, ttl_ms: "soon" }), "invalid_argument", /^ttl_ms: /);
    await relay.refused(register({ nickname: "x" }), "invalid_argument", /unknown field nickname/);
    await relay.refused(
      register({ agent_id: "kames", aliases: ["zhiwei"] }),
      "conflict",
      /zhiwei@known-blocks1/,
    );
    await relay.refused(register({ agent_id: "postmaster@relay" }), "invalid_argument", /reserved/);
    await relay.refused(register([]), "invalid_argument");
    await relay.refused(register(undefined), "invalid_argument");
    assert.equal((await relay.get("/agents")).json.total, 2);
  });
});

describe("GET /agents", () => {
  it("lists agents in both spellings, page by page", async () => {
    await using relay = await openHttpRelay();
    const first = await relay.get("/agents?limit=1");
    assert.equal(first.status, 200);
    assert.deepEqual(first.json.items, first.json.agents);
    assert.deepEqual([first.json.items[0]?.agent_id, first.json.total], [LULU, 2]);
    const second = await relay.get(`/agents?limit=1&page_token=${encodeURIComponent(first.json.pageToken)}`);
    assert.equal(second.json.items[0]?.agent_id, ZHIWEI);
  });

  it("refuses a limit that is none", async () => {
    await using relay = await openHttpRelay();
    for (const limit of ["0", "-1", "501", "x", "1.5", "1e2", ""]) {
      await relay.refused(relay.get(`/agents?limit=${limit}`), "invalid_argument", /^limit: /);
    }
  });
});

describe("GET /agents/{id}", () => {
  it("finds by id, alias and display name, in any script", async () => {
    await using relay = await openHttpRelay();
    await relay.post("/agents/register", { agent_id: "知微@机器", aliases: ["微"], display_name: "知微" });
    for (const name of ["知微@机器", "微", "知微"]) {
      const { status, json } = await relay.get(`/agents/${encodeURIComponent(name)}`);
      assert.deepEqual([status, json.agent_id], [200, "知微@机器"]);
    }
  });

  it("refuses an unknown agent", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get("/agents/missing"), "unknown_agent", /"missing"/);
    await relay.refused(relay.get("/agents/missing/card"), "unknown_agent");
    await relay.refused(relay.get("/agents/a%20b"), "unknown_agent");
    await relay.refused(relay.get("/agents/a%09b"), "invalid_argument");
  });
});

describe("POST /agents/{id}/heartbeat", () => {
  it("renews presence, without a body", async () => {
    await using relay = await openHttpRelay();
    await relay.post("/agents/register", { agent_id: LULU, ttl_ms: 60_000 });
    const { status, json } = await relay.post("/agents/lulu/heartbeat");
    assert.deepEqual([status, json.presence], [200, "online"]);
    await relay.refused(relay.post("/agents/missing/heartbeat"), "unknown_agent");
  });
});

describe("DELETE /agents/{id}", () => {
  it("removes the agent and notifies its senders", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    const { status, json } = await relay.call("DELETE", "/agents/zhiwei");
    assert.deepEqual([status, json], [200, { removed: ZHIWEI }]);
    await relay.refused(relay.get(`/agents/${ZHIWEI}`), "unknown_agent");
    await relay.refused(relay.call("DELETE", "/agents/zhiwei"), "unknown_agent");
    const { json: mailbox } = await relay.get("/mailbox/lulu");
    assert.equal(mailbox.messages.length, 1);
  });
});
