import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { V1_DIALECT } from "./v1-dialect.ts";

describe("A2A 1.0", () => {
  it("takes snake_case for every member that it knows, and leaves metadata and data alone", () => {
    const read = V1_DIALECT.readParams("send", {
      message: {
        message_id: "m-1",
        context_id: "c-1",
        task_id: "t-1",
        reference_task_ids: ["t-0"],
        role: "ROLE_USER",
        parts: [{ raw: "AA==", media_type: "image/png" }, { data: { task_id: 1 } }],
        metadata: { message_id: "kept" },
      },
      configuration: {
        accepted_output_modes: ["text/plain"],
        history_length: 2,
        return_immediately: true,
        task_push_notification_config: { url: "https://hook.example", task_id: "t-1" },
      },
    });
    assert.deepEqual(read, {
      message: {
        messageId: "m-1",
        contextId: "c-1",
        taskId: "t-1",
        referenceTaskIds: ["t-0"],
        role: "ROLE_USER",
        parts: [{ raw: "AA==", mediaType: "image/png" }, { data: { task_id: 1 } }],
        metadata: { message_id: "kept" },
      },
      configuration: {
        acceptedOutputModes: ["text/plain"],
        historyLength: 2,
        returnImmediately: true,
        taskPushNotificationConfig: { url: "https://hook.example", taskId: "t-1" },
      },
    });
  });

  it("takes numbers, truth and states as a query writes them", () => {
    const query = { page_size: "20", include_artifacts: "true", status: "working", historyLength: "0" };
    assert.deepEqual(V1_DIALECT.readParams("list", query), {
      pageSize: 20,
      includeArtifacts: true,
      status: "TASK_STATE_WORKING",
      historyLength: 0,
    });
    assert.deepEqual(V1_DIALECT.readParams("get", { id: "t", history_length: "多" }), {
      id: "t",
      historyLength: "多",
    });
  });

  it("drops nothing that it does not know", () => {
    const params = {
      id: "t-1",
      "x-own": { a: [null] },
      constructor: 1,
      toString: "知微",
    };
    assert.deepEqual(V1_DIALECT.readParams("cancel", params), params);
    assert.deepEqual(V1_DIALECT.readParams("extended-card", undefined), {});
  });

  it("takes null for absent in what is around a message, and leaves it where it may mean something", () => {
    const parts = [{ data: null }, { text: "你好", metadata: { 空: null } }];
    const read = V1_DIALECT.readParams("send", {
      tenant: null,
      message: {
        messageId: "m",
        role: "ROLE_USER",
        parts,
        taskId: null,
        context_id: null,
        extensions: null,
        x: null,
      },
      configuration: {
        historyLength: null,
        returnImmediately: true,
        accepted_output_modes: null,
        taskPushNotificationConfig: {
          url: "https://hook.example",
          id: null,
          token: null,
          authentication: { scheme: "Bearer", credentials: null },
        },
      },
      metadata: { 空: null },
    });
    assert.deepEqual(read, {
      message: { messageId: "m", role: "ROLE_USER", parts, x: null },
      configuration: {
        returnImmediately: true,
        taskPushNotificationConfig: { url: "https://hook.example", authentication: { scheme: "Bearer" } },
      },
      metadata: { 空: null },
    });
    const bare = { message: { parts, metadata: null }, configuration: null, metadata: null };
    assert.deepEqual(V1_DIALECT.readParams("stream", bare), { message: { parts } });
    const list = { contextId: null, status: null, pageSize: null, page_token: null, includeArtifacts: null };
    assert.deepEqual(V1_DIALECT.readParams("list", list), {});
    assert.deepEqual(V1_DIALECT.readParams("get", { id: "t", history_length: null }), { id: "t" });
    const config = { taskId: "t", id: null, url: "https://hook.example", authentication: null };
    assert.deepEqual(V1_DIALECT.readParams("push-create", config), {
      taskId: "t",
      url: "https://hook.example",
    });
  });

  it("prefers its own spelling where both are given, and keeps the other", () => {
    for (const params of [
      { taskId: "t", task_id: "other", id: "p" },
      { task_id: "other", taskId: "t", id: "p" },
    ]) {
      assert.deepEqual(V1_DIALECT.readParams("push-get", params), params);
    }
  });

  it("lets only 0.1 name a task", () => {
    assert.deepEqual(V1_DIALECT.readParams("get", { id: "t-1", clientTaskId: "mine" }), { id: "t-1" });
  });

  it("takes a message that is written in an older dialect", () => {
    const message = {
      kind: "message",
      messageId: "m",
      role: "user",
      parts: [{ kind: "text", text: "你好" }],
    };
    assert.deepEqual(V1_DIALECT.readParams("send", { message })["message"], {
      messageId: "m",
      role: "ROLE_USER",
      parts: [{ text: "你好" }],
    });
  });

  it("refuses only what nothing can be made of, and says where", () => {
    const refused: readonly (readonly [unknown, RegExp])[] = [
      [[], /^params: expected an object, got a list$/],
      [{}, /^message: expected an object, got nothing$/],
      [
        { message: { role: "ROLE_USER" } },
        /^message\.parts: expected a list, got nothing; a part is an object such as \{"text": "hello"\}$/,
      ],
      [{ message: { parts: "hi" } }, /^message\.parts: expected a list, got a string; a part is .+$/],
      [
        { message: { parts: ["hi"] } },
        /^message\.parts\[0\]: expected an object, got a string; a part is .+$/,
      ],
      [{ message: { parts: [] }, configuration: 1 }, /^configuration: expected an object, got a number$/],
    ];
    for (const [params, message] of refused) {
      assert.throws(() => V1_DIALECT.readParams("send", params), { code: "invalid_argument", message });
    }
  });

  it("reads an answer by what it is: bare or wrapped, in any spelling", () => {
    const task = { id: "t", status: { state: "TASK_STATE_CANCELED" } };
    const tasks: readonly unknown[] = [
      { task },
      task,
      { id: "t", kind: "task", status: { state: "canceled" } },
      { task: { id: "t", status: { state: "cancelled" } } },
    ];
    for (const written of tasks) assert.deepEqual(V1_DIALECT.readResult("send", written), { task });
    for (const written of tasks) assert.deepEqual(V1_DIALECT.readResult("get", written), task);
    const message = { role: "ROLE_AGENT", parts: [{ text: "好" }] };
    const messages = [
      { message },
      { msg: { role: "agent", content: [{ text: "好" }] } },
      { kind: "message", role: "agent", parts: [{ kind: "text", text: "好" }] },
      { role: "agent", parts: [{ type: "text", text: "好" }] },
    ];
    for (const written of messages) assert.deepEqual(V1_DIALECT.readResult("send", written), { message });
  });

  it("calls an answer that is nothing the agent's fault", () => {
    for (const result of [null, undefined, "ok", [], {}, { ok: true }]) {
      assert.throws(() => V1_DIALECT.readResult("send", result), {
        code: "internal",
        a2a: "InvalidAgentResponse",
      });
      assert.throws(() => V1_DIALECT.readEvent(result), { a2a: "InvalidAgentResponse" });
    }
    assert.throws(() => V1_DIALECT.readResult("get", { id: "t", status: "done" }), {
      a2a: "InvalidAgentResponse",
      message: /status: expected an object, got a string/,
    });
  });

  it("writes what was kept in an older form as its own", () => {
    const artifact = { artifactId: "a", parts: [{ kind: "text", text: "信" }] };
    const status = { state: "TASK_STATE_WORKING" } as const;
    const task = { id: "t", contextId: "c", status, artifacts: [artifact] };
    assert.deepEqual(V1_DIALECT.writeEvent({ task }, { isFinal: false }), {
      task: { ...task, artifacts: [{ artifactId: "a", parts: [{ text: "信" }] }] },
    });
  });
});
