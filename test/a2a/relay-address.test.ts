import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type HttpRelay, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "问一下 xyzzy" }] };
const NOW = { returnImmediately: true };

interface Answer {
  readonly task?: { readonly id: string };
  readonly message?: object;
}

describe("the relay's own A2A address", () => {
  let relay: HttpRelay;
  before(async () => {
    relay = await openHttpRelay();
  });
  after(() => relay[Symbol.asyncDispose]());

  async function rest(path: string, more: object = {}): Promise<Answer> {
    const { text } = await relay.post(path, { message: MESSAGE, configuration: NOW, ...more });
    return JSON.parse(text) as Answer;
  }

  async function rpc(path: string, more: object = {}): Promise<Answer> {
    const params = { message: MESSAGE, configuration: NOW, ...more };
    const { text } = await relay.post(path, { jsonrpc: "2.0", id: 1, method: "SendMessage", params });
    return (JSON.parse(text) as { readonly result: Answer }).result;
  }

  async function assertReached({ task }: Answer): Promise<void> {
    const { json } = await relay.get(`/tasks/${task?.id ?? ""}`);
    assert.equal((json as unknown as { readonly task: { readonly assignee: string } }).task.assignee, ZHIWEI);
  }

  it("passes a message on to the agent that its metadata or the tenant field names, over every binding", async () => {
    const metadata = { relay_target_agent_id: "zhiwei" };
    for (const send of [
      () => rest("/agents/relay/a2a/message:send", { metadata }),
      () => rest("/agents/relay/a2a/message:send", { message: { ...MESSAGE, metadata } }),
      () => rest("/agents/relay/a2a/message:send", { tenant: "zhiwei" }),
      () => rest("/agents/relay/a2a/zhiwei/message:send"),
      () => rpc("/agents/relay/a2a", { metadata }),
      () => rpc("/agents/relay/a2a", { tenant: "zhiwei" }),
      () => rpc("/a2a", { metadata }),
      () => rpc("/a2a", { tenant: "zhiwei" }),
    ]) {
      await assertReached(await send());
    }
  });

  it("answers itself when the tenant field is empty, else for the agent that it names", async () => {
    assert.ok((await rest("/agents/relay/a2a/message:send")).message);
    assert.ok((await rpc("/a2a", { tenant: "relay" })).message);
    const { text } = await relay.get("/agents/relay/a2a/tasks?tenant=zhiwei");
    assert.ok(Array.isArray((JSON.parse(text) as { readonly tasks: unknown }).tasks));
  });

  it("leaves a message with the agent whose own address was called, whatever it says", async () => {
    const { task } = await rpc(`/agents/${ZHIWEI}/a2a`, { metadata: { relay_target_agent_id: "lulu" } });
    await assertReached({ task: { id: task?.id ?? "" } });
  });

  it("has the cards of agents below their A2A addresses too, and knows what was not modified", async () => {
    const path = `/agents/${ZHIWEI}/a2a/.well-known/agent-card.json`;
    const card = await relay.get(path);
    assert.equal((JSON.parse(card.text) as { readonly name: string }).name, ZHIWEI);
    const since = card.headers["last-modified"] ?? "";
    const again = await relay.get(path, { headers: { "if-modified-since": since } });
    assert.equal(again.status, 304);
    const earlier = new Date(Date.parse(since) - 1_000).toUTCString();
    assert.equal((await relay.get(path, { headers: { "if-modified-since": earlier } })).status, 200);
    const other = { "if-modified-since": since, "if-none-match": '"other"' };
    assert.equal((await relay.get(path, { headers: other })).status, 200);
  });
});
