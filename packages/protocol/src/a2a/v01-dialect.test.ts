import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { V01_DIALECT } from "./v01-dialect.ts";

const message = { role: "user", parts: [{ type: "text", text: "你好" }] };
const read = { role: "ROLE_USER", parts: [{ text: "你好" }] };

describe("A2A 0.1", () => {
  it("lets the caller name the task, is answered at once, and makes up no message id", () => {
    const params = {
      id: "mine",
      sessionId: "s-1",
      message,
      acceptedOutputModes: ["text"],
      historyLength: 2,
      pushNotification: { url: "https://hook.example", authentication: { schemes: ["Bearer"] } },
      metadata: { a: 1 },
    };
    assert.deepEqual(V01_DIALECT.readParams("send", params), {
      message: { ...read, contextId: "s-1" },
      configuration: {
        acceptedOutputModes: ["text"],
        historyLength: 2,
        taskPushNotificationConfig: { url: "https://hook.example", authentication: { scheme: "Bearer" } },
        returnImmediately: true,
      },
      metadata: { a: 1 },
      clientTaskId: "mine",
    });
  });

  it("takes the nulls that its Python clients send for what is not there", () => {
    const params = { id: "mine", sessionId: null, message, historyLength: null, pushNotification: null };
    assert.deepEqual(V01_DIALECT.readParams("stream", params), {
      message: read,
      configuration: {},
      clientTaskId: "mine",
    });
  });

  it("asks with the id of the task, or else of the caller's making", () => {
    const idOf = (params: Readonly<Record<string, unknown>>) =>
      (V01_DIALECT.writeParams("send", params) as { id: unknown }).id;
    const named = { ...read, messageId: "m" };
    assert.equal(idOf({ message: { ...named, taskId: "t" }, clientTaskId: "mine" }), "t");
    assert.equal(idOf({ message: named, clientTaskId: "mine" }), "mine");
    assert.equal(idOf({ message: named }), "m");
    assert.throws(() => idOf({ message: read }), { code: "invalid_argument", message: /clientTaskId/ });
  });

  it("writes tasks with sessions and numbered artifacts, and states that it knows", () => {
    const artifacts = [
      { artifactId: "a", parts: [{ text: "一" }] },
      { artifactId: "b", parts: [{ text: "二" }] },
    ];
    const task = { id: "t", contextId: "s", status: { state: "TASK_STATE_REJECTED" }, artifacts };
    assert.deepEqual(V01_DIALECT.writeResult("send", { task }), {
      id: "t",
      sessionId: "s",
      status: { state: "failed" },
      artifacts: [
        { index: 0, artifactId: "a", parts: [{ type: "text", text: "一" }] },
        { index: 1, artifactId: "b", parts: [{ type: "text", text: "二" }] },
      ],
    });
    const waiting = { id: "t", contextId: "s", status: { state: "TASK_STATE_AUTH_REQUIRED" } };
    assert.deepEqual(V01_DIALECT.writeResult("get", waiting), {
      id: "t",
      sessionId: "s",
      status: { state: "input-required" },
    });
  });

  it("makes a finished task of a message, as it has no other answer", () => {
    const answer = { ...read, role: "ROLE_AGENT", messageId: "m", contextId: "s" };
    assert.deepEqual(V01_DIALECT.writeResult("send", { message: answer }), {
      id: "m",
      sessionId: "s",
      status: {
        state: "completed",
        message: { ...message, role: "agent", messageId: "m", contextId: "s" },
      },
    });
  });

  it("reads numbered artifacts under their number, alone and in pieces", () => {
    const artifacts = [{ parts: [] }, { index: 7, parts: [], append: null, lastChunk: true }];
    const task = { id: "t", sessionId: "s", status: { state: "completed" }, artifacts };
    assert.deepEqual(V01_DIALECT.readResult("get", task), {
      id: "t",
      contextId: "s",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [
        { artifactId: "0", parts: [] },
        { artifactId: "7", parts: [] },
      ],
    });
    const piece = { id: "t", artifact: { index: 7, parts: [], append: true, lastChunk: null } };
    assert.deepEqual(V01_DIALECT.readEvent(piece), {
      artifactUpdate: { taskId: "t", append: true, artifact: { artifactId: "7", parts: [] } },
    });
  });

  it("numbers a piece of an artifact as it is told", () => {
    const artifactUpdate = {
      taskId: "t",
      contextId: "s",
      artifact: { artifactId: "b", parts: [] },
      append: true,
    };
    assert.deepEqual(V01_DIALECT.writeEvent({ artifactUpdate }, { isFinal: false, artifactIndex: 1 }), {
      id: "t",
      sessionId: "s",
      artifact: { index: 1, artifactId: "b", parts: [], append: true },
    });
  });

  it("reads an update of the status, which has no tag and may not say whether it is final", () => {
    assert.deepEqual(V01_DIALECT.readEvent({ id: "t", status: { state: "working" } }), {
      statusUpdate: { taskId: "t", status: { state: "TASK_STATE_WORKING" } },
    });
  });

  it("names the task of a push configuration by its id", () => {
    const written = { id: "t", pushNotificationConfig: { url: "https://hook.example" } };
    const flat = V01_DIALECT.readParams("push-create", written);
    assert.deepEqual(flat, { taskId: "t", url: "https://hook.example" });
    assert.deepEqual(V01_DIALECT.writeResult("push-create", flat), written);
    assert.deepEqual(V01_DIALECT.readParams("push-get", { id: "t" }), { taskId: "t" });
  });
});
