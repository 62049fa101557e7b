import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rpcStream, startWireAgent } from "../../testing/wire-agent.ts";
import { A2AClient } from "./a2a-client.ts";
import type { A2aStreamEvent } from "./stream-event.ts";
import { textOf } from "./text-of.ts";

/** As agents had it before cards told versions. */
function oldCard(url: string): object {
  return {
    name: "老",
    url: `${url}/`,
    version: "1",
    capabilities: { streaming: true },
    skills: [],
    defaultInputModes: ["text"],
    defaultOutputModes: ["text"],
  };
}
const OLD = { card: oldCard, cardPath: "/.well-known/agent.json" };
const OLD_TASK = {
  id: "t-1",
  sessionId: "s-1",
  status: { state: "completed", timestamp: "2025-05-01T00:00:00Z" },
  artifacts: [{ parts: [{ type: "text", text: "老回答" }], index: 0 }],
};

async function collect(events: AsyncIterable<A2aStreamEvent>): Promise<A2aStreamEvent[]> {
  const all: A2aStreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe("a client of an agent from before cards told versions", () => {
  it("speaks 0.2, and reads parts with `type` as well", async () => {
    const task = {
      id: "t",
      contextId: "c",
      status: { state: "completed" },
      artifacts: [
        {
          artifactId: "a",
          parts: [
            { type: "text", text: "你好" },
            { kind: "text", text: "！" },
          ],
        },
      ],
    };
    await using agent = await startWireAgent({ "message/send": () => ({ result: task }) }, OLD);
    const result = await new A2AClient(agent.url).sendMessage("在吗");
    assert.equal(textOf(result), "你好！");
    assert.equal(result.task?.status.state, "TASK_STATE_COMPLETED");
    const sent = agent.requests.at(-1);
    assert.ok(sent);
    const { message, configuration } = sent.body["params"] as Record<string, Record<string, unknown>>;
    assert.equal(message?.["role"], "user");
    assert.deepEqual(message?.["parts"], [{ kind: "text", text: "在吗" }]);
    assert.equal(configuration?.["blocking"], true);
    assert.equal(sent.headers["a2a-version"], undefined);
  });

  it("finds the answer where agents put it that follow no version", async () => {
    const said = { role: "agent", parts: [{ text: "在状态里" }] };
    const task = {
      id: "t",
      contextId: "c",
      status: { state: "completed", message: said },
      messages: [],
      artifacts: [],
    };
    await using agent = await startWireAgent({ "message/send": () => ({ result: task }) }, OLD);
    assert.equal(textOf(await new A2AClient(agent.url).sendMessage("在吗")), "在状态里");
  });

  it("speaks 0.1 where 0.2 is not known, and stays with it", async () => {
    await using agent = await startWireAgent(
      {
        "tasks/send": ({ id }) => ({ result: { ...OLD_TASK, id } }),
        "tasks/get": ({ id }) => ({ result: { ...OLD_TASK, id } }),
        "tasks/cancel": () => ({ error: { code: -32002, message: "Task cannot be canceled" } }),
      },
      OLD,
    );
    const client = new A2AClient(agent.url);
    const { task } = await client.sendMessage("你好", { contextId: "s-1" });
    assert.ok(task);
    assert.equal(textOf(task), "老回答");
    assert.equal(task.contextId, "s-1");
    const asked = agent.requests.at(-1)?.body["params"] as Record<string, unknown>;
    assert.equal(asked["sessionId"], "s-1");
    assert.equal(asked["id"], task.id);
    assert.deepEqual((asked["message"] as Record<string, unknown>)["parts"], [
      { type: "text", text: "你好" },
    ]);
    assert.equal((await client.getTask(task.id)).id, task.id);
    await client.sendMessage("再来");
    await assert.rejects(client.cancelTask(task.id), { a2a: "TaskNotCancelable" });
    assert.deepEqual(
      agent.requests.flatMap(({ body }) => (body["method"] === undefined ? [] : [body["method"]])),
      ["message/send", "tasks/send", "tasks/get", "tasks/send", "tasks/cancel"],
    );
  });

  it("reads streams of 0.1", async () => {
    await using agent = await startWireAgent(
      {
        "tasks/sendSubscribe": ({ id }) =>
          rpcStream(
            [
              ["", { id, status: { state: "working" }, final: false }],
              ["", { id, artifact: { parts: [{ type: "text", text: "一" }], index: 0, append: false } }],
              ["", { id, status: { state: "completed" }, final: true }],
            ],
            "end",
          ),
      },
      OLD,
    );
    const events = await collect(new A2AClient(agent.url).streamMessage("你好"));
    assert.deepEqual(
      events.map((event) => Object.keys(event)[0]),
      ["statusUpdate", "artifactUpdate", "statusUpdate"],
    );
    assert.equal(textOf(events[1] ?? {}), "一");
    assert.equal(events.at(-1)?.statusUpdate?.status.state, "TASK_STATE_COMPLETED");
  });

  it("sends where neither dialect streams", async () => {
    await using agent = await startWireAgent(
      { "message/send": () => ({ result: { ...OLD_TASK, contextId: "c" } }) },
      OLD,
    );
    const events = await collect(new A2AClient(agent.url).streamMessage("你好"));
    assert.deepEqual(events.map(textOf), ["老回答"]);
  });

  it("is told which version to speak where that is known", async () => {
    await using agent = await startWireAgent(
      { "tasks/send": ({ id }) => ({ result: { ...OLD_TASK, id } }) },
      OLD,
    );
    const client = new A2AClient({ url: agent.url, dialect: "0.1" });
    assert.equal(textOf(await client.sendMessage("你好")), "老回答");
    assert.equal(agent.requests.filter(({ method }) => method === "POST").length, 1);
  });
});
