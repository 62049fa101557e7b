import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type SdkAgentOptions, startSdkAgent } from "../../packages/client/testing/sdk-agent-server.ts";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { eventually } from "../support/eventually.ts";
import { ENV } from "../support/pushing-relay.ts";
import { ask, messageOf, madeIn, until } from "./remote-agents.ts";

const RELAY = { env: { ...ENV, A2A_RELAY_PUSH_TIMEOUT_MS: "5000" } };

const AGENTS: readonly (readonly [string, SdkAgentOptions])[] = [
  ["1.0 over JSON-RPC", { binding: "JSONRPC" }],
  ["1.0 over HTTP+JSON", { binding: "HTTP+JSON" }],
  ["0.3 over JSON-RPC", { binding: "JSONRPC", dialect: "0.3" }],
  ["0.3 over HTTP+JSON", { binding: "HTTP+JSON", dialect: "0.3" }],
];

for (const [name, options] of AGENTS) {
  describe(`a remote agent that speaks ${name}`, () => {
    it("does what it is asked, and the task here has its artifacts and its end", async () => {
      await using relay = await openHttpRelay(RELAY);
      await using agent = await startSdkAgent(options);
      const { messageId, taskId } = await ask(relay, agent.url, "你好，世界");
      const task = await until(relay, taskId, "completed");
      assert.equal(madeIn(task), "echo: 你好，世界");
      assert.equal(task.assignee, new URL(agent.url).href);
      const { push, delivery, receipts } = await messageOf(relay, messageId);
      assert.deepEqual([push.state, delivery?.state], ["delivered", "acknowledged"]);
      const stages = receipts.map(({ stage }) => stage);
      for (const stage of ["accepted", "delivered", "acknowledged"])
        assert.ok(stages.includes(stage as never), stage);
      const { json } = await relay.get(`/mailbox/${LULU}`);
      assert.match(json.messages[0]?.message.body ?? "", /echo: 你好，世界/);
    });

    it("streams an artifact, asks and is answered, fails and rejects", async () => {
      await using relay = await openHttpRelay(RELAY);
      await using agent = await startSdkAgent(options);
      const streamed = await ask(relay, agent.url, "stream 一 二 三");
      assert.equal(madeIn(await until(relay, streamed.taskId, "completed")), "一二三");
      const asked = await ask(relay, agent.url, "ask 哪一个？");
      await until(relay, asked.taskId, "input-required");
      const { json } = await relay.get(`/mailbox/${LULU}`);
      const question = json.messages.find(({ message }) => message.task_id === asked.taskId)?.message;
      assert.equal(question?.body, "哪一个？");
      const reply = { from: LULU, to: agent.url, type: "reply", reply_to: question?.id, body: "第二个" };
      assert.equal((await relay.post("/messages", reply)).status, 201);
      assert.equal(madeIn(await until(relay, asked.taskId, "completed")), "answered: 第二个");
      const failed = await ask(relay, agent.url, "fail 不行");
      assert.equal((await until(relay, failed.taskId, "failed")).status_text, "不行");
      const rejected = await ask(relay, agent.url, "reject 不做");
      assert.equal((await until(relay, rejected.taskId, "rejected")).status_text, "不做");
    });

    it("answers with a message, and is told when its task is canceled", async () => {
      await using relay = await openHttpRelay(RELAY);
      await using agent = await startSdkAgent(options);
      const plain = await ask(relay, agent.url, "message 收到");
      assert.equal((await until(relay, plain.taskId, "completed")).status_text, "收到");
      const waiting = await ask(relay, agent.url, "wait");
      await until(relay, waiting.taskId, "working");
      assert.equal((await relay.post(`/tasks/${waiting.taskId}/cancel`, {})).status, 200);
      const isCancel = ({ body, path }: (typeof agent.requests)[number]): boolean =>
        path.endsWith(":cancel") || /"(CancelTask|tasks\/cancel)"/.test(JSON.stringify(body ?? null));
      await eventually(
        async () => agent.requests,
        (requests) => requests.some(isCancel),
      );
    });
  });
}

describe("an agent that registers with push: a2a", () => {
  it("is called at its card, its folder or its interface, and has its messages acknowledged", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await startSdkAgent();
    for (const callback_url of [agent.cardUrl, agent.url, agent.rpcUrl]) {
      const { status, json, text } = await relay.post("/agents/register", {
        agent_id: ZHIWEI,
        callback_url,
        push: "a2a",
      });
      assert.equal(status, 200, text);
      assert.equal(json.push_secret, undefined);
      const { taskId } = await ask(relay, "zhiwei", "好");
      assert.equal(madeIn(await until(relay, taskId, "completed")), "echo: 好");
    }
  });

  it("gets what a caller of A2A wrote beside its parts, under the caller's own id", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await startSdkAgent({ binding: "JSONRPC" });
    await relay.post("/agents/register", { agent_id: ZHIWEI, callback_url: agent.url, push: "a2a" });
    const message = {
      messageId: "客户端的",
      role: "ROLE_USER",
      parts: [{ text: "好" }],
      metadata: { 色: "红" },
      extensions: ["urn:x"],
      referenceTaskIds: ["早先的"],
    };
    const configuration = { returnImmediately: true, acceptedOutputModes: ["text/markdown"] };
    const params = { message, configuration, metadata: { 优先: 1, sender_agent_id: LULU } };
    const call = { jsonrpc: "2.0", id: 1, method: "SendMessage", params };
    const { json, text } = await relay.post("/agents/zhiwei/a2a", call, {
      headers: { "a2a-version": "1.0" },
    });
    const { result } = json as unknown as { result?: { task: { id: string } } };
    await until(relay, result?.task.id ?? text, "completed");
    const bodies = agent.requests.map(({ body }) => body as { method?: string; params?: typeof params });
    const sent = bodies.find((body) => body?.method === "SendMessage")?.params;
    const { metadata, ...more } = sent?.message ?? message;
    const { metadata: _, ...written } = message;
    assert.deepEqual(more, written);
    assert.equal(metadata["色"], "红");
    assert.deepEqual(sent?.metadata, { 优先: 1 });
    assert.deepEqual(sent?.configuration.acceptedOutputModes, ["text/markdown"]);
  });

  it("goes on in the same context when a thread goes on", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await startSdkAgent();
    const first = await ask(relay, agent.url, "一", { thread_id: "话题" });
    await until(relay, first.taskId, "completed");
    const second = await ask(relay, agent.url, "二", { thread_id: "话题" });
    await until(relay, second.taskId, "completed");
    const contexts = agent.requests
      .map(
        ({ body }) => body as { method?: string; params?: { message?: { contextId?: string } } } | undefined,
      )
      .filter((body) => body?.method === "SendMessage")
      .map((body) => body?.params?.message?.contextId);
    assert.equal(contexts[0], undefined);
    assert.equal(typeof contexts[1], "string");
  });

  it("gets a note as a message, and its acceptance ends the delivery", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await startSdkAgent();
    const { json } = await relay.post("/messages", { from: LULU, to: agent.url, body: "message 知道了" });
    const { message_id: messageId } = json.receipt;
    for (;;) {
      const { delivery, push } = await messageOf(relay, messageId);
      if (delivery?.state === "acknowledged") {
        assert.equal(push.state, "delivered");
        break;
      }
      assert.notEqual(push?.state, "failed");
    }
  });
});
