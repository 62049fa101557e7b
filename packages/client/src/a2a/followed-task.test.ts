import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rpcStream, startWireAgent, streamOf, wireCard } from "../../testing/wire-agent.ts";
import { WireServer } from "../../testing/wire-server.ts";
import { settledWithin } from "../http/abort.ts";
import type { A2AClientOptions } from "./a2a-client-options.ts";
import { A2AClient } from "./a2a-client.ts";
import type { A2aStreamEvent } from "./stream-event.ts";
import { textOf } from "./text-of.ts";

const IDS = { taskId: "t", contextId: "c" };
const TASK = { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } };
const DONE_TASK = {
  id: "t",
  contextId: "c",
  status: { state: "TASK_STATE_COMPLETED" },
  artifacts: [{ artifactId: "a", parts: [{ text: "全部" }] }],
};
const DONE = { statusUpdate: { ...IDS, status: { state: "TASK_STATE_COMPLETED" } } };

function piece(text: string): object {
  return { artifactUpdate: { ...IDS, artifact: { artifactId: "a", parts: [{ text }] }, append: true } };
}

function clientOf(agent: WireServer, options: A2AClientOptions = {}): A2AClient {
  return new A2AClient({ url: agent.url, retryDelayMs: 1, pollMs: 1, timeoutMs: 5_000, ...options });
}

async function collect(events: AsyncIterable<A2aStreamEvent>): Promise<A2aStreamEvent[]> {
  const all: A2aStreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

function kinds(events: readonly A2aStreamEvent[]): readonly string[] {
  return events.map((event) => `${event.eventId ?? "-"} ${Object.keys(event)[0]} ${textOf(event)}`.trim());
}

describe("a stream of an agent that breaks", () => {
  it("goes on behind the last event that came, if the agent numbers them", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () =>
        rpcStream(
          [
            ["1", TASK],
            ["2", piece("你")],
          ],
          "reset",
        ),
      SubscribeToTask: (_params, { headers }) =>
        headers["last-event-id"] === "2"
          ? rpcStream([["3", piece("好")]], "reset")
          : rpcStream(
              [
                ["4", piece("吗")],
                ["5", DONE],
              ],
              "end",
            ),
    });
    const events = await collect(clientOf(agent).streamMessage("你好"));
    assert.deepEqual(kinds(events), [
      "1 task",
      "2 artifactUpdate 你",
      "3 artifactUpdate 好",
      "4 artifactUpdate 吗",
      "5 statusUpdate",
    ]);
    const asked = agent.requests.filter(({ body }) => body["method"] === "SubscribeToTask");
    assert.deepEqual(
      asked.map(({ headers }) => headers["last-event-id"]),
      ["2", "3"],
    );
    assert.deepEqual(asked[0]?.body["params"], { id: "t" });
  });

  it("goes on over HTTP+JSON as well, by POST where the agent knows no GET", async () => {
    const agent: WireServer = await WireServer.start(({ method, path, headers }) => {
      if (path.startsWith("/.well-known")) {
        const supportedInterfaces = [
          { url: `${agent.url}/a`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
        ];
        return { json: { ...wireCard(agent.url), supportedInterfaces } };
      }
      if (path === "/a/message:stream") return { stream: streamOf([["7", TASK]], "reset") };
      if (path !== "/a/tasks/t:subscribe" || method !== "POST") return { status: 405, text: "" };
      assert.equal(headers["last-event-id"], "7");
      return { stream: streamOf([["8", DONE]], "end") };
    });
    await using _agent = agent;
    assert.deepEqual(kinds(await collect(clientOf(agent).streamMessage("你好"))), [
      "7 task",
      "8 statusUpdate",
    ]);
  });

  it("is followed by the task itself where the agent refuses to be subscribed to", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () =>
        rpcStream(
          [
            ["", TASK],
            ["", piece("你")],
          ],
          "reset",
        ),
      SubscribeToTask: () => ({ error: { code: -32004, message: "it is over" } }),
      GetTask: () => ({ result: DONE_TASK }),
    });
    const events = await collect(clientOf(agent).streamMessage("你好"));
    assert.deepEqual(kinds(events), ["- task", "- artifactUpdate 你", "- task 全部"]);
  });

  it("is followed by polling where each subscription gives the task and ends", async () => {
    let polls = 0;
    await using agent = await startWireAgent({
      SendStreamingMessage: () => rpcStream([["", TASK]], "end"),
      SubscribeToTask: () => rpcStream([["", TASK]], "end"),
      GetTask: () => {
        polls += 1;
        return { result: polls < 3 ? TASK.task : DONE_TASK };
      },
    });
    const events = await collect(clientOf(agent).streamMessage("你好"));
    assert.equal(polls, 3);
    // Of the send, of the subscription, of the first poll, and, as the second saw no change, of the third.
    assert.deepEqual(kinds(events), ["- task", "- task", "- task", "- task 全部"]);
    const subscriptions = agent.requests.filter(({ body }) => body["method"] === "SubscribeToTask");
    assert.equal(subscriptions.length, 1);
  });

  it("is given up after as many tries as allowed", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => rpcStream([["1", TASK]], "reset"),
      SubscribeToTask: () => "reset",
    });
    await assert.rejects(collect(clientOf(agent, { retries: 3 }).streamMessage("你好")), {
      code: "unavailable",
      message: /\/rpc failed.*is the agent running/,
    });
    const subscriptions = agent.requests.filter(({ body }) => body["method"] === "SubscribeToTask");
    assert.equal(subscriptions.length, 3);
  });

  it("is not sent again where nothing came, as the agent may have got it", async () => {
    await using agent = await startWireAgent({ SendStreamingMessage: () => rpcStream([], "reset") });
    await assert.rejects(collect(clientOf(agent).streamMessage("你好")), { code: "unavailable" });
    assert.equal(agent.requests.filter(({ method }) => method === "POST").length, 1);
  });

  it("is resumed when it falls silent", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => rpcStream([["1", TASK]], "silence"),
      SubscribeToTask: () => rpcStream([["2", DONE]], "silence"),
    });
    const events = await collect(clientOf(agent, { idleMs: 50 }).streamMessage("你好"));
    assert.deepEqual(kinds(events), ["1 task", "2 statusUpdate"]);
  });
});

describe("a stream of an agent", () => {
  it("ends when the agent waits for input, but not for an observer", async () => {
    const asks = { statusUpdate: { ...IDS, status: { state: "TASK_STATE_INPUT_REQUIRED" } } };
    await using agent = await startWireAgent({
      SendStreamingMessage: () =>
        rpcStream(
          [
            ["", TASK],
            ["", asks],
          ],
          "silence",
        ),
      SubscribeToTask: () =>
        rpcStream(
          [
            ["", TASK],
            ["", asks],
            ["", piece("好")],
            ["", DONE],
          ],
          "silence",
        ),
    });
    const client = clientOf(agent);
    assert.equal((await collect(client.streamMessage("你好"))).length, 2);
    assert.equal((await collect(client.subscribe("t"))).length, 4);
  });

  it("that breaks while the agent waits for input is resumed", async () => {
    const waits = { task: { ...TASK.task, status: { state: "TASK_STATE_INPUT_REQUIRED" } } };
    let asked = 0;
    await using agent = await startWireAgent({
      SendStreamingMessage: () => rpcStream([["", waits]], "reset"),
      SubscribeToTask: () => {
        asked += 1;
        if (asked === 1) return rpcStream([["", waits]], "silence");
        return asked === 2
          ? rpcStream([["", waits]], "reset")
          : rpcStream(
              [
                ["", waits],
                ["", DONE],
              ],
              "end",
            );
      },
    });
    const client = clientOf(agent);
    // The sender has to answer the question; an observer waits for the end.
    assert.deepEqual(kinds(await collect(client.streamMessage("蓝色", { taskId: "t" }))), [
      "- task",
      "- task",
    ]);
    assert.deepEqual(kinds(await collect(client.subscribe("t"))), ["- task", "- task", "- statusUpdate"]);
  });

  it("goes on over a task that still waits, as it did before it was answered", async () => {
    const waits = { task: { ...TASK.task, status: { state: "TASK_STATE_INPUT_REQUIRED" } } };
    await using agent = await startWireAgent({
      SendStreamingMessage: () =>
        rpcStream(
          [
            ["", waits],
            ["", DONE],
          ],
          "end",
        ),
    });
    assert.equal((await collect(clientOf(agent).streamMessage("蓝色", { taskId: "t" }))).length, 2);
  });

  it("is replaced by a send where the card promises what the agent does not have", async () => {
    await using agent = await startWireAgent({
      SendMessage: () => ({ result: TASK }),
      GetTask: () => ({ result: DONE_TASK }),
    });
    const events = await collect(clientOf(agent).streamMessage("你好"));
    assert.deepEqual(kinds(events), ["- task", "- task 全部"]);
  });

  it("is polled again after an absence of an agent that is only polled", async () => {
    let polls = 0;
    await using agent = await startWireAgent(
      {
        SendMessage: () => ({ result: TASK }),
        GetTask: () => {
          polls += 1;
          return polls <= 3 ? "reset" : { result: DONE_TASK };
        },
      },
      { card: { capabilities: {} } },
    );
    const events = await collect(clientOf(agent, { retries: 1 }).streamMessage("你好"));
    assert.equal(textOf(events.at(-1) ?? {}), "全部");
    const methods = agent.requests.map(({ body }) => body["method"]);
    assert.deepEqual(methods, [undefined, "SendMessage", "GetTask", "GetTask", "GetTask", "GetTask"]);
  });

  it("may be one answer without a stream", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => ({ result: { task: DONE_TASK } }),
    });
    assert.deepEqual(kinds(await collect(clientOf(agent).streamMessage("你好"))), ["- task 全部"]);
  });

  it("gives the error that the agent sends on it", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => ({
        stream: streamOf(
          [
            ["", { jsonrpc: "2.0", id: 1, result: TASK }],
            ["", { error: { code: -32603, message: "哎" } }],
          ],
          "end",
        ),
      }),
    });
    await assert.rejects(collect(clientOf(agent).streamMessage("你好")), {
      a2a: "InternalError",
      message: "哎",
    });
  });

  it("is hung up when the caller stops reading", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => rpcStream([["", TASK]], "silence"),
    });
    for await (const _event of clientOf(agent).streamMessage("你好")) break;
    const sent = agent.requests.at(-1);
    assert.ok(sent);
    const hungUp = new Promise((resolve) => {
      sent.signal.addEventListener("abort", resolve);
    });
    if (!sent.signal.aborted) await settledWithin(5_000, hungUp);
    assert.ok(sent.signal.aborted);
  });

  it("that begins with a watcher survives an agent that is away for a moment", async () => {
    let asked = 0;
    await using agent = await startWireAgent({
      SubscribeToTask: () => {
        asked += 1;
        return asked < 3
          ? "reset"
          : rpcStream(
              [
                ["", TASK],
                ["", DONE],
              ],
              "end",
            );
      },
    });
    assert.equal((await collect(clientOf(agent).subscribe("t", { lastEventId: "9" }))).length, 2);
    assert.equal(agent.requests.at(-1)?.headers["last-event-id"], "9");
  });
});
