import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { A2aMessage, A2aTask } from "@a2a-relay/protocol";
import { textOf } from "./text-of.ts";

function said(text: string, role: A2aMessage["role"] = "ROLE_AGENT"): A2aMessage {
  return { messageId: "m", role, parts: [{ text }] };
}

function task(members: Partial<A2aTask>): A2aTask {
  return { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" }, ...members };
}

const ARTIFACTS = [
  { artifactId: "1", parts: [{ text: "你" }, { text: "好" }, { data: { a: 1 } }] },
  { artifactId: "2", parts: [{ kind: "text", text: "第二" }] },
];
const STATUS = { state: "TASK_STATE_COMPLETED", message: said("status") } as const;
const HISTORY = [said("first"), said("last"), said("mine", "ROLE_USER")];

describe("the text of what an agent said", () => {
  it("is that of all artifacts, whose streamed pieces are put together again", () => {
    assert.equal(textOf(task({ artifacts: ARTIFACTS, status: STATUS, history: HISTORY })), "你好\n第二");
  });

  it("is else that of the status, else the last message of the agent, else empty", () => {
    assert.equal(textOf(task({ artifacts: [], status: STATUS, history: HISTORY })), "status");
    assert.equal(textOf(task({ history: HISTORY })), "last");
    assert.equal(textOf(task({ history: [said("mine", "ROLE_USER")] })), "");
    assert.equal(
      textOf(task({ artifacts: [{ artifactId: "1", parts: [{ data: 1 }] }], status: STATUS })),
      "status",
    );
  });

  it("is that of a message, bare or as an answer", () => {
    assert.equal(textOf(said("直接")), "直接");
    assert.equal(textOf({ message: said("直接") }), "直接");
    assert.equal(textOf({ task: task({ status: STATUS }) }), "status");
  });

  it("is that of one event of a stream", () => {
    const [artifact] = ARTIFACTS;
    assert.ok(artifact);
    assert.equal(textOf({ artifactUpdate: { taskId: "t", contextId: "c", artifact } }), "你好");
    assert.equal(textOf({ statusUpdate: { taskId: "t", contextId: "c", status: STATUS } }), "status");
    assert.equal(
      textOf({ statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } }),
      "",
    );
  });

  it("is empty where an agent left out the parts that it promised", () => {
    const broken = { messageId: "m", role: "ROLE_AGENT" } as unknown as A2aMessage;
    assert.equal(textOf({ message: broken }), "");
    assert.equal(textOf(task({ artifacts: [{ artifactId: "1" } as never], history: [broken] })), "");
  });
});
