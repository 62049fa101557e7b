import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import {
  AGENT_URL,
  aRemoteTask,
  type RemoteCore,
  remoteCore,
  RpcError,
} from "../../../testing/fake-agent.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { OutboundFailure } from "../../transports/egress/http-client.ts";

const IDEMPOTENT = { idempotency: { duplicate_safety: "idempotent", key: "一次" } } as const;

/** The agent serves its card, and answers everything else with this status. */
function answering(core: RemoteCore, status: number, text = ""): void {
  const { receiver } = core.agent.outside;
  core.agent.outside.receiver = (request) =>
    request.method === "GET" ? receiver(request) : anAnswer(status, { text });
}

describe("a message to a remote agent", () => {
  it("carries the message's parts, and the rest as metadata", async () => {
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
      hops: 1,
      task_id: taskId,
    };
    assert.deepEqual(core.agent.calledFor("SendMessage"), [
      {
        message: {
          messageId: "客户端的",
          role: "ROLE_USER",
          parts: [{ text: "看图" }, { url: "https://a.example/图.png" }],
          extensions: ["urn:x"],
          referenceTaskIds: ["t"],
          metadata: { 色: "红", a2a_relay: about },
        },
        configuration: { returnImmediately: true, historyLength: 20 },
      },
    ]);
    const { headers } = core.agent.outside.last;
    assert.equal(headers["a2a-version"], "1.0");
    assert.equal(headers["idempotency-key"], messageId);
  });

  it("is retried after a temporary error of another relay", async () => {
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
    await core.poll();
    assert.equal((await core.task(taskId)).state, "working");
  });

  it("is refused for good after any other error, and its task is rejected", async () => {
    await using core = await remoteCore();
    core.agent.send = () => {
      throw new RpcError(-32602, "看不懂");
    };
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["refused"]);
    await core.poll();
    const { state, status_text: why } = await core.task(taskId);
    assert.deepEqual([state, why], ["failed", "the agent refused it: 看不懂"]);
  });

  for (const [status, result, state] of [
    [400, "refused", "failed"],
    [401, "refused", "failed"],
    [404, "refused", "failed"],
    [410, "refused", "failed"],
    [429, "failed", "submitted"],
    [500, "unknown", "failed"],
    [502, "unknown", "failed"],
    [503, "failed", "submitted"],
    [504, "unknown", "failed"],
  ] as const) {
    it(`is ${result} when it is answered ${status}`, async () => {
      await using core = await remoteCore();
      answering(core, status);
      const { taskId } = await core.ask();
      assert.deepEqual(await core.push(), [result]);
      await core.poll();
      assert.equal((await core.task(taskId)).state, state);
      core.clock.advance(60_000);
      assert.deepEqual(await core.push(), state === "failed" ? [] : [result]);
    });
  }

  for (const [status, text, result] of [
    [500, '{"jsonrpc":"2.0","error":{"code":-32603,"message":"内部错误"}}', "unknown"],
    [502, '{"message":"Bad gateway"}', "unknown"],
    [503, '{"jsonrpc":"2.0","error":{"code":-32603,"message":"稍后"}}', "failed"],
    [500, '{"jsonrpc":"2.0","error":{"code":-32004,"message":"不会"}}', "refused"],
    [200, '{"jsonrpc":"2.0","error":{"code":-32603,"message":"内部错误"}}', "refused"],
  ] as const) {
    it(`is ${result} when it is answered ${status} with ${text}`, async () => {
      await using core = await remoteCore();
      answering(core, status, text);
      await core.ask();
      assert.deepEqual(await core.push(), [result]);
    });
  }

  it("is retried after a broken answer if it is idempotent", async () => {
    await using core = await remoteCore();
    answering(core, 500);
    await core.ask(IDEMPOTENT);
    assert.deepEqual(await core.push(), ["failed"]);
    core.clock.advance(5_000);
    assert.deepEqual(await core.push(), ["failed"]);
  });

  it("is refused when the answer is not A2A", async () => {
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
      await core.poll();
      assert.equal((await core.task(taskId)).state, "failed");
    }
  });

  it("goes to an agent without a card in the version that it knows, which is guessed once", async () => {
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

describe("a message to an agent whose card names no version", () => {
  it("goes in 0.3, or in 0.1 if the agent does not know the method, and so does every later one", async () => {
    await using core = await remoteCore();
    const methods: string[] = [];
    core.agent.outside.receiver = ({ method, body }) => {
      if (method === "GET") return anAnswer(200, { text: JSON.stringify({ name: "老", url: "/a2a" }) });
      const { method: name, params } = JSON.parse(body ?? "") as { method: string; params: { id: string } };
      methods.push(name);
      const answer = name.startsWith("tasks/")
        ? { result: { id: params.id, status: { state: "working" } } }
        : { error: { code: -32601, message: "no" } };
      return anAnswer(200, { text: JSON.stringify({ jsonrpc: "2.0", id: "1", ...answer }) });
    };
    for (let count = 0; count < 2; count += 1) {
      const { taskId } = await core.taken();
      assert.equal((await core.task(taskId)).state, "working");
    }
    assert.deepEqual(methods, ["message/send", "tasks/send", "tasks/send"]);
    core.clock.advance(await core.waitMs());
    assert.equal(await core.poll(), 2);
    assert.equal(methods.at(-1), "tasks/get");
  });
});

describe("a conversation with a remote agent", () => {
  const THREAD = "同一个话题";

  /** The context of the last message. */
  async function contextOfNext(core: RemoteCore, from: string): Promise<unknown> {
    await core.ask({ from, thread_id: THREAD });
    await core.push();
    const message = core.agent.calledFor("SendMessage").at(-1)?.["message"] as Record<string, unknown>;
    return message["contextId"];
  }

  it("continues in the same context for its requester only", async () => {
    await using core = await remoteCore();
    assert.equal(await contextOfNext(core, LULU), undefined);
    assert.equal(await contextOfNext(core, LULU), "他们的话题");
    core.agent.send = () => ({ task: aRemoteTask({ contextId: "知微的" }) });
    assert.equal(await contextOfNext(core, ZHIWEI), undefined);
    assert.equal(await contextOfNext(core, ZHIWEI), "知微的");
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.equal(await contextOfNext(core, LULU), "他们的话题");
  });

  it("does not continue for the next owner of the id", async () => {
    await using core = await remoteCore();
    await contextOfNext(core, ZHIWEI);
    await core.agents.remove(core.operator, ZHIWEI);
    core.clock.advance(1_000);
    await core.agents.register(core.operator, { agent_id: ZHIWEI });
    assert.equal(await contextOfNext(core, ZHIWEI), undefined);
    assert.equal(await contextOfNext(core, ZHIWEI), "他们的话题");
  });
});

describe("a message that does not reach a remote agent", () => {
  /** Makes all attempts. */
  async function pushToTheEnd(core: RemoteCore): Promise<number> {
    for (let attempts = 0; ; core.clock.advance(300_000)) {
      const { length } = await core.push();
      attempts += length;
      if (length === 0) return attempts;
    }
  }

  const away = (): never => {
    throw new OutboundFailure("unreachable", "no connection");
  };

  it("fails its task after the last attempt, and its requester reads why", async () => {
    await using core = await remoteCore();
    core.agent.outside.receiver = away;
    const { taskId, messageId } = await core.ask();
    assert.equal(await pushToTheEnd(core), 4);
    const { state, status_text: why } = await core.task(taskId);
    assert.deepEqual([state, why], ["failed", "its card: there was no connection to the endpoint"]);
    const [result, ...more] = await core.inboxOf(LULU);
    assert.deepEqual([result?.message["task_state"], more], ["failed", []]);
    assert.equal((await core.delivery(messageId)).state, "dead");
  });

  it("fails its task at once when it may have arrived, and says so", async () => {
    await using core = await remoteCore();
    core.agent.send = () => {
      throw new OutboundFailure("timeout", "too late", { mayHaveArrived: true });
    };
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["unknown"]);
    const { state, status_text: why } = await core.task(taskId);
    assert.equal(state, "failed");
    assert.match(why ?? "", /may have arrived/);
  });

  it("is reported to its sender as undeliverable when it is no request", async () => {
    await using core = await remoteCore();
    core.agent.outside.receiver = away;
    const { receipt } = await core.send({ to: AGENT_URL, subject: "问候" });
    await pushToTheEnd(core);
    const [notice, ...more] = await core.inboxOf(LULU);
    assert.equal(notice?.message.subject, "Undeliverable: 问候");
    assert.match(notice?.message.body ?? "", /no connection to the endpoint/);
    assert.deepEqual([notice?.message.reply_to, more], [receipt.message_id, []]);
  });
});

describe("a message that relays forward in a circle", () => {
  it("ends at the limit of relays", async () => {
    await using core = await remoteCore();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: AGENT_URL, push: "a2a" });
    const caller = { principal: core.operator, agentId: ZHIWEI, version: "1.0" } as const;
    // The agent's address is that of its mailbox at this relay.
    core.agent.send = (params) =>
      core.a2a.send({ ...caller, extensions: [], idempotencyKey: undefined }, params, {});
    const { taskId } = await core.ask({ to: ZHIWEI });
    const results: string[] = [];
    for (let hop = 0; hop < 2 * LIMITS.a2aHopsMax; hop += 1) {
      results.push(...(await core.push(undefined, ZHIWEI)));
    }
    const gone = Array.from({ length: LIMITS.a2aHopsMax }, () => "delivered");
    assert.deepEqual(results, [...gone, "refused"]);
    assert.equal((await core.task(taskId)).state, "submitted");
    await core.poll();
    const last = (await core.tasks.list(core.operator, { agent: ZHIWEI })).tasks.at(-1);
    assert.equal(last?.state, "failed");
    assert.match((await core.task(last?.id ?? "")).status_text ?? "", /through 10 relays already/);
  });
});

describe("a follow-up to a remote task", () => {
  it("waits for the message that starts the task", async () => {
    await using core = await remoteCore();
    core.agent.outside.receiver = () => anAnswer(503);
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["failed"]);
    await core.send({ to: AGENT_URL, type: "note", task_id: taskId, body: "还有" });
    assert.deepEqual(await core.push(), ["refused"]);
    assert.deepEqual(core.agent.calls, []);
  });
});
