import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2aError, type A2aStreamResponse } from "@a2a-relay/protocol";
import { type SdkAgent, type SdkAgentOptions, startSdkAgent } from "../../testing/sdk-agent-server.ts";
import { A2AClient } from "./a2a-client.ts";
import type { A2AClientOptions } from "./a2a-client-options.ts";
import type { A2aStreamEvent } from "./stream-event.ts";
import { textOf } from "./text-of.ts";

const WAYS: readonly SdkAgentOptions[] = [
  { dialect: "1.0", binding: "JSONRPC" },
  { dialect: "1.0", binding: "HTTP+JSON" },
  { dialect: "0.3", binding: "JSONRPC" },
  { dialect: "0.3", binding: "HTTP+JSON" },
];

async function setup(
  way: SdkAgentOptions,
  options: A2AClientOptions = {},
): Promise<AsyncDisposable & { readonly agent: SdkAgent; readonly client: A2AClient }> {
  const agent = await startSdkAgent(way);
  const client = new A2AClient({ url: agent.url, timeoutMs: 10_000, pollMs: 5, ...options });
  return { agent, client, [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose]() };
}

async function collect(events: AsyncIterable<A2aStreamEvent>): Promise<A2aStreamEvent[]> {
  const all: A2aStreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** What it is, and the state or the text that it brings. */
function summary(event: A2aStreamResponse): string {
  const state = (event.task ?? event.statusUpdate)?.status.state;
  const [kind = ""] = Object.keys(event);
  return `${kind} ${state === undefined ? textOf(event) : state.replace("TASK_STATE_", "")}`;
}

for (const way of WAYS) {
  describe(`a client of an agent of the SDK that speaks ${way.dialect} over ${way.binding}`, () => {
    it("gets the answer of a task", async () => {
      await using setting = await setup(way);
      const { task } = await setting.client.sendMessage("你好", { contextId: "ctx-1" });
      assert.ok(task);
      assert.equal(task.status.state, "TASK_STATE_COMPLETED");
      assert.equal(task.contextId, "ctx-1");
      assert.equal(textOf(task), "echo: 你好");
      const [asked] = task.history ?? [];
      assert.equal(asked?.role, "ROLE_USER");
      assert.deepEqual(asked?.parts, [{ text: "你好" }]);
    });

    it("gets a plain message", async () => {
      await using setting = await setup(way);
      const result = await setting.client.sendMessage("message 直接说");
      assert.equal(result.task, undefined);
      assert.equal(result.message?.role, "ROLE_AGENT");
      assert.equal(textOf(result), "直接说");
      const events = await collect(setting.client.streamMessage("message 直接说"));
      assert.deepEqual(events.map(summary), ["message 直接说"]);
    });

    it("gets a failure as a task that says why", async () => {
      await using setting = await setup(way);
      const { task } = await setting.client.sendMessage("fail 坏了");
      assert.equal(task?.status.state, "TASK_STATE_FAILED");
      assert.equal(textOf(task), "坏了");
    });

    it("carries text, data, files and links both ways", async () => {
      await using setting = await setup(way);
      const parts = [
        { text: "parts" },
        { data: { n: 1 } },
        { raw: "5paH", filename: "b.txt", mediaType: "text/plain" },
      ];
      const { task } = await setting.client.sendMessage({ parts });
      const history = task?.history?.[0]?.parts.map(({ text, data, raw }) => ({ text, data, raw }));
      assert.deepEqual(history?.[1]?.data, { n: 1 });
      assert.equal(history?.[2]?.raw, "5paH");
      const [text, data, file, link] = task?.artifacts?.[0]?.parts ?? [];
      assert.equal(text?.["text"], "看附件");
      assert.deepEqual(data?.["data"], { answer: 42 });
      assert.equal(file?.["raw"], "5paH5Lu2");
      assert.equal(file?.["mediaType"], "text/plain");
      assert.equal(link?.["url"], "https://example.org/a.png");
    });

    it("streams the events of a message, in pieces", async () => {
      await using setting = await setup(way);
      const events = await collect(setting.client.streamMessage("stream 你 好 吗"));
      assert.deepEqual(events.map(summary), [
        "task SUBMITTED",
        "statusUpdate WORKING",
        "artifactUpdate 你",
        "artifactUpdate 好",
        "artifactUpdate 吗",
        "statusUpdate COMPLETED",
      ]);
      assert.deepEqual(
        events.flatMap(({ artifactUpdate }) =>
          artifactUpdate === undefined ? [] : [artifactUpdate.append === true],
        ),
        [false, true, true],
      );
      const taskId = events[0]?.task?.id ?? "";
      assert.equal(textOf(await setting.client.getTask(taskId)), "你好吗");
    });

    it("answers an agent that asks for input", async () => {
      await using setting = await setup(way);
      const asked = await collect(setting.client.streamMessage("ask 什么颜色？"));
      const last = asked.at(-1);
      assert.equal(last?.statusUpdate?.status.state, "TASK_STATE_INPUT_REQUIRED");
      assert.equal(textOf(last ?? {}), "什么颜色？");
      const { taskId, contextId } = last?.statusUpdate ?? {};
      const { task } = await setting.client.sendMessage("蓝色", { taskId, contextId });
      assert.equal(task?.id, taskId);
      assert.equal(textOf(task ?? {}), "answered: 蓝色");
    });

    it("returns at once if that is wanted, waits for the task, and sees it end on a subscription", async () => {
      await using setting = await setup(way);
      const { agent, client } = setting;
      const { task } = await client.sendMessage("wait", { returnImmediately: true });
      assert.ok(task);
      assert.notEqual(task.status.state, "TASK_STATE_COMPLETED");
      const subscription = client.subscribe(task.id);
      const { value: first } = await subscription.next();
      assert.equal(first?.task?.id, task.id);
      const waiting = client.waitFor(task.id);
      agent.finish(task.id, "做完了");
      assert.equal(textOf(await waiting), "做完了");
      assert.deepEqual((await collect(subscription)).map(summary).slice(-2), [
        "artifactUpdate 做完了",
        "statusUpdate COMPLETED",
      ]);
    });

    it("sees a task that is over already as its only event", async () => {
      await using setting = await setup(way);
      const { task } = await setting.client.sendMessage("你好");
      const events = await collect(setting.client.subscribe(task?.id ?? ""));
      assert.deepEqual(events.map(summary), ["task COMPLETED"]);
    });

    it("cancels, and is told when there is nothing to cancel", async () => {
      await using setting = await setup(way);
      const { client } = setting;
      const { task } = await client.sendMessage("wait", { returnImmediately: true });
      const canceled = await client.cancelTask(task?.id ?? "");
      assert.equal(canceled.status.state, "TASK_STATE_CANCELED");
      const { task: done } = await client.sendMessage("你好");
      await assert.rejects(client.cancelTask(done?.id ?? ""), { a2a: "TaskNotCancelable" });
      await assert.rejects(client.cancelTask("没有"), { a2a: "TaskNotFound" });
      await assert.rejects(client.getTask("没有"), (error) => {
        assert.ok(error instanceof A2aError);
        assert.match(error.message, /没有/);
        assert.equal(error.code, "not_found");
        return true;
      });
    });

    it("keeps push configurations", async () => {
      await using setting = await setup(way);
      const { client } = setting;
      const { task } = await client.sendMessage("wait", { returnImmediately: true });
      const taskId = task?.id ?? "";
      const url = "https://example.org/hook";
      const made = await client.createPushConfig({ taskId, id: "one", url, token: "t-1" });
      assert.deepEqual([made.id, made.taskId, made.url, made.token], ["one", taskId, url, "t-1"]);
      assert.equal((await client.getPushConfig(taskId, "one")).url, url);
      assert.deepEqual(
        (await client.listPushConfigs(taskId)).map(({ id }) => id),
        ["one"],
      );
      await client.deletePushConfig(taskId, "one");
      assert.deepEqual(await client.listPushConfigs(taskId), []);
    });

    it("falls back to sending and asking again where the agent has no streams", async () => {
      await using setting = await setup({ ...way, isStreaming: false });
      const { agent, client } = setting;
      const events: A2aStreamEvent[] = [];
      for await (const event of client.streamMessage("wait")) {
        if (events.length === 0) agent.finish(event.task?.id ?? "", "轮询");
        events.push(event);
      }
      assert.ok(events.every(({ task }) => task !== undefined));
      assert.equal(events.at(-1)?.task?.status.state, "TASK_STATE_COMPLETED");
      assert.equal(textOf(events.at(-1) ?? {}), "轮询");
    });

    it("returns the card in 1.0, also the one for authenticated callers", async () => {
      await using setting = await setup({ ...way, apiKey: "k" }, { apiKey: "k" });
      const card = await setting.client.getAgentCard();
      const [first] = card["supportedInterfaces"] as readonly Record<string, unknown>[];
      assert.equal(first?.["protocolBinding"], way.binding);
      assert.match(String(first?.["protocolVersion"]), way.dialect === "1.0" ? /^1\.0/ : /^0\.3/);
      const extended = await setting.client.getAgentCard({ extended: true });
      assert.equal(extended["description"], "extended");
    });
  });
}

describe("a client of an agent that speaks several ways", () => {
  it("takes JSON-RPC and the newest version", async () => {
    await using setting = await setup({ dialect: "both" });
    await setting.client.sendMessage("你好");
    const sent = setting.agent.requests.at(-1);
    assert.equal(sent?.path, "/rpc");
    assert.equal(sent?.headers["a2a-version"], "1.0");
  });

  it("takes what it is told to take", async () => {
    await using setting = await setup({ dialect: "both" }, { dialect: "0.3", binding: "HTTP+JSON" });
    await setting.client.sendMessage("你好");
    assert.equal(setting.agent.requests.at(-1)?.path, "/rest/v1/message:send");
  });

  it("lists tasks in 1.0, and says why it cannot in 0.3", async () => {
    await using setting = await setup({ dialect: "both" });
    for (const binding of ["JSONRPC", "HTTP+JSON"] as const) {
      const client = new A2AClient({ url: setting.agent.url, binding });
      await client.sendMessage("你好", { contextId: binding });
      await client.sendMessage("fail", { contextId: binding });
      const { tasks, totalSize } = await client.listTasks({
        contextId: binding,
        status: "TASK_STATE_FAILED",
      });
      assert.deepEqual([tasks.length, totalSize], [1, 1]);
      const old = new A2AClient({ url: setting.agent.url, binding, dialect: "0.3" });
      await assert.rejects(old.listTasks(), { a2a: "UnsupportedOperation", message: /0\.3/ });
    }
  });

  it("repeats the tenant that the card names, in the way of the binding", async () => {
    await using setting = await setup({ tenant: "acme" });
    await setting.client.sendMessage("你好");
    const sent = setting.agent.requests.at(-1)?.body as { readonly params: { readonly tenant: string } };
    assert.equal(sent.params.tenant, "acme");
    const rest = new A2AClient({ url: setting.agent.url, binding: "HTTP+JSON" });
    const { task } = await rest.sendMessage("你好");
    assert.equal(setting.agent.requests.at(-1)?.path, "/rest/acme/message:send");
    assert.equal((await rest.getTask(task?.id ?? "")).id, task?.id);
  });

  it("sends credentials and an idempotency key, and explains a 401", async () => {
    await using setting = await setup({ apiKey: "s3cret" }, { apiKey: "s3cret" });
    const { agent, client } = setting;
    await client.sendMessage("你好", { idempotencyKey: "k-1", metadata: { a: 1 }, historyLength: 0 });
    const sent = agent.requests.at(-1);
    assert.ok(sent);
    assert.equal(sent.headers["idempotency-key"], "k-1");
    const { params } = sent.body as { readonly params: Record<string, unknown> };
    assert.deepEqual(params["metadata"], { a: 1 });
    assert.deepEqual(params["configuration"], { returnImmediately: false, historyLength: 0 });
    const stranger = new A2AClient(agent.url);
    await assert.rejects(stranger.sendMessage("你好"), { code: "unauthenticated", message: /401.*apiKey/ });
  });

  it("stops when its signal says so", async () => {
    await using setting = await setup({});
    const { client } = setting;
    const controller = new AbortController();
    const reason = new Error("不要了");
    await assert.rejects(async () => {
      for await (const _event of client.streamMessage("wait", { signal: controller.signal }))
        controller.abort(reason);
    }, reason);
    const waiting = client.sendMessage("wait", { signal: AbortSignal.abort(reason) });
    await assert.rejects(waiting, reason);
  });
});
