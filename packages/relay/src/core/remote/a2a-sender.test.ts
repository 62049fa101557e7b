import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU } from "../../../testing/core-on-memory.ts";
import { AGENT, AGENT_URL, aRemoteTask, remoteCore, RpcError } from "../../../testing/fake-agent.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { OutboundFailure } from "../environment/outbound.ts";

const KEY = { tenant: DEFAULT_TENANT, agentId: AGENT };
const IDEMPOTENT = { idempotency: { duplicate_safety: "idempotent", key: "一次" } } as const;

describe("a letter to an agent elsewhere", () => {
  it("is a message with the letter's parts and words of its own about the rest", async () => {
    await using core = await remoteCore();
    const parts = [{ text: "看图" }, { kind: "file", file: { uri: "https://a.example/图.png" } }];
    const a2a_message = {
      messageId: "客户端的",
      metadata: { 色: "红" },
      extensions: ["urn:x"],
      referenceTaskIds: ["t"],
    };
    const { messageId, taskId } = await core.ask({ parts, subject: "图", a2a_message, thread_id: "话题" });
    assert.deepEqual(await core.push(), ["delivered"]);
    const about = {
      message_id: messageId,
      from: LULU,
      type: "request",
      subject: "图",
      thread_id: "话题",
      task_id: taskId,
    };
    assert.deepEqual(core.agent.calledFor("SendMessage"), [
      {
        message: {
          messageId,
          role: "ROLE_USER",
          parts: [{ text: "看图" }, { url: "https://a.example/图.png" }],
          extensions: ["urn:x"],
          metadata: { 色: "红", a2a_relay: about },
        },
        configuration: { returnImmediately: true, historyLength: 5 },
      },
    ]);
    const { headers } = core.agent.outside.last;
    assert.equal(headers["a2a-version"], "1.0");
    assert.equal(headers["idempotency-key"], messageId);
  });

  it("is tried again after an error that passes, as another relay says it", async () => {
    await using core = await remoteCore();
    const { receiver } = core.agent.outside;
    const data = [{ reason: "MAILBOX_FULL", domain: "a2a-relay" }];
    const text = JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message: "信箱满了", data } });
    core.agent.outside.receiver = (request) =>
      request.method === "GET" ? receiver(request) : anAnswer(200, { text });
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["failed"]);
    core.agent.outside.receiver = receiver;
    core.clock.advance(5_000);
    assert.deepEqual(await core.push(), ["delivered"]);
    await core.look();
    assert.equal((await core.task(taskId)).state, "working");
  });

  it("is refused for good with any other error, and so is the task", async () => {
    await using core = await remoteCore();
    core.agent.send = () => {
      throw new RpcError(-32602, "看不懂");
    };
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["refused"]);
    await core.look();
    const { state, status_text: why } = await core.task(taskId);
    assert.deepEqual([state, why], ["failed", "the agent refused it: 看不懂"]);
  });

  for (const [status, result, state] of [
    [400, "refused", "failed"],
    [401, "refused", "failed"],
    [404, "refused", "failed"],
    [410, "refused", "failed"],
    [429, "failed", "submitted"],
    [500, "failed", "submitted"],
    [503, "failed", "submitted"],
    [504, "unknown", "submitted"],
  ] as const) {
    it(`is ${result} when it is answered ${status}`, async () => {
      await using core = await remoteCore();
      const { receiver } = core.agent.outside;
      core.agent.outside.receiver = (request) =>
        request.method === "GET" ? receiver(request) : anAnswer(status);
      const { taskId } = await core.ask();
      assert.deepEqual(await core.push(), [result]);
      await core.look();
      assert.equal((await core.task(taskId)).state, state);
    });
  }

  it("is refused by what is no agent", async () => {
    await using core = await remoteCore();
    const { receiver } = core.agent.outside;
    for (const text of [
      "<html>",
      '{"ok":true}',
      '{"jsonrpc":"2.0","result":{"x":1}}',
      `{"result":${"[".repeat(99)}`,
    ]) {
      core.agent.outside.receiver = (request) =>
        request.method === "GET" ? receiver(request) : anAnswer(200, { text });
      const { taskId } = await core.ask();
      assert.deepEqual(await core.push(), ["refused"], text);
      await core.look();
      assert.equal((await core.task(taskId)).state, "failed");
    }
  });

  it("goes to an agent without a card in the version that it knows, and then at once", async () => {
    await using core = await remoteCore();
    const methods: string[] = [];
    core.agent.outside.receiver = ({ method, body }) => {
      if (method === "GET") return anAnswer(404);
      const { method: name } = JSON.parse(body ?? "") as { method: string };
      methods.push(name);
      const isKnown = name === "SendMessage";
      const answer = isKnown
        ? { result: { task: aRemoteTask() } }
        : { error: { code: -32601, message: "no" } };
      return anAnswer(200, { text: JSON.stringify({ jsonrpc: "2.0", id: "1", ...answer }) });
    };
    await core.ask();
    assert.deepEqual(await core.push(), ["delivered"]);
    await core.ask();
    assert.deepEqual(await core.push(), ["delivered"]);
    assert.deepEqual(methods, ["message/send", "SendMessage", "SendMessage"]);
  });
});

describe("a letter that may have arrived", () => {
  const broken = (): never => {
    throw new OutboundFailure("protocol", "it hung up", { mayHaveArrived: true });
  };

  it("is not sent again by itself, whatever becomes of its endpoint", async () => {
    await using core = await remoteCore();
    core.agent.send = broken;
    const { messageId } = await core.ask();
    assert.deepEqual(await core.push(), ["unknown"]);
    const endpoint = await core.store.pushEndpoint(DEFAULT_TENANT, AGENT);
    assert.ok(endpoint);
    // As after it was switched off and on: it looks at all open mail again.
    const anew = [{ ...endpoint, afterPosition: 0 }];
    await core.store.commit({ tenant: DEFAULT_TENANT, pushEndpoints: anew, events: [] });
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.deepEqual(await core.push(), []);
    const { push, delivery } = await core.messages.get(core.operator, messageId);
    assert.deepEqual([push?.state, delivery?.state], ["failed", "available"]);
    assert.match(push?.reason ?? "", /may have arrived/);
  });

  it("is sent again when somebody asks for it, and when it is idempotent", async () => {
    await using core = await remoteCore();
    core.agent.send = broken;
    await core.ask();
    assert.deepEqual(await core.push(), ["unknown"]);
    await core.ask(IDEMPOTENT);
    assert.deepEqual(await core.push(), ["failed"]);
    core.agent.send = () => ({ task: aRemoteTask() });
    await core.pushes.replay(core.operator, AGENT_URL, { since: new Date(0).toISOString() });
    assert.deepEqual(await core.push(), ["delivered", "delivered"]);
  });

  it("is on record as such when the relay stops before the answer", async () => {
    await using core = await remoteCore();
    const stopping = new AbortController();
    core.agent.send = () => {
      stopping.abort();
      throw new OutboundFailure("aborted", "stopping", { mayHaveArrived: true });
    };
    const { messageId } = await core.ask();
    assert.deepEqual(await core.push(stopping.signal), ["unknown"]);
    assert.match((await core.messages.get(core.operator, messageId)).push?.reason ?? "", /may have arrived/);
  });

  it("is tried again when the relay stopped before it was sent, announced or not", async () => {
    await using core = await remoteCore();
    const { receiver } = core.agent.outside;
    await core.ask();
    for (const method of ["GET", "POST"]) {
      const stopping = new AbortController();
      core.agent.outside.receiver = (request) => {
        if (request.method !== method) return receiver(request);
        stopping.abort();
        throw new OutboundFailure("aborted", "stopping");
      };
      assert.deepEqual(await core.push(stopping.signal), [method === "GET" ? "idle" : "failed"]);
    }
    core.agent.outside.receiver = receiver;
    core.clock.advance(5_000);
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  it("is taken for such by the relay that comes after one that was killed", async () => {
    await using core = await remoteCore();
    const { messageId } = await core.ask();
    while (await core.pushDelivery.takeUp(KEY)) continue;
    const { signal } = new AbortController();
    // It is sent and answered, and never put on record.
    await core.pushDelivery.attempt(KEY, messageId, signal);
    assert.equal(core.agent.calledFor("SendMessage").length, 1);
    assert.deepEqual(await core.push(), ["unknown"]);
    assert.equal(core.agent.calledFor("SendMessage").length, 1);
  });
});
