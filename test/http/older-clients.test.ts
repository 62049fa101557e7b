import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openHttpRelay } from "../../packages/relay/testing/http-relay.ts";

describe("a client of the older mailbox API", () => {
  it("registers, reads, acknowledges and is done", async () => {
    await using relay = await openHttpRelay();
    const card = { name: "Echo", description: "echoes", url: "http://localhost:9999", version: "1.0.0" };
    const registered = await relay.post("/api/agents", { agent_id: "echo-agent", agent_card: card });
    assert.deepEqual([registered.status, registered.json.agent_id], [201, "echo-agent"]);
    const parts = [{ kind: "text", text: "回声" }];
    await relay.send({ to: "echo-agent", parts, body: "回声" });
    const { json } = await relay.get("/mailbox/echo-agent");
    const [item] = json.messages;
    assert.ok(item);
    assert.equal(item.id, item.message_id);
    assert.equal(item.status, "PENDING");
    assert.equal(item.sender_agent_id, "lulu@kamac");
    assert.deepEqual((item.a2a_payload["message"] as { parts: unknown }).parts, parts);
    const acked = await relay.post("/mailbox/echo-agent/ack", { message_ids: [item.id] });
    assert.deepEqual([acked.status, acked.json.acknowledged], [200, 1]);
    assert.deepEqual((await relay.get("/mailbox/echo-agent")).json.messages, []);
    const listed = await relay.get("/agents");
    assert.ok(listed.json.agents.some(({ agent_id }) => agent_id === "echo-agent"));
    const served = await relay.get("/agents/echo-agent/.well-known/agent.json");
    const { name, url } = served.json as unknown as { readonly name: string; readonly url: string };
    assert.deepEqual([name, url], ["Echo", `${relay.url}/agents/echo-agent/a2a`]);
  });
});
