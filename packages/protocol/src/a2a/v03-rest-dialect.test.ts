import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { V03_REST_DIALECT } from "./v03-rest-dialect.ts";

const read = { messageId: "m", role: "ROLE_USER", parts: [{ text: "你好" }, { data: { 名: 1 } }] };

describe("A2A 0.3 over REST", () => {
  it("reads the JSON of the protocol buffers, and the bodies of JSON-RPC as well", () => {
    const proto = {
      request: {
        message_id: "m",
        role: "ROLE_USER",
        content: [{ text: "你好" }, { data: { data: { 名: 1 } } }],
      },
      configuration: { blocking: true, push_notification: { url: "https://hook.example" } },
    };
    const schema = {
      message: {
        kind: "message",
        messageId: "m",
        role: "user",
        parts: [
          { kind: "text", text: "你好" },
          { kind: "data", data: { 名: 1 } },
        ],
      },
      configuration: { blocking: true, pushNotificationConfig: { url: "https://hook.example" } },
    };
    for (const body of [proto, schema]) {
      assert.deepEqual(V03_REST_DIALECT.readParams("send", body), {
        message: read,
        configuration: {
          returnImmediately: false,
          taskPushNotificationConfig: { url: "https://hook.example" },
        },
      });
    }
  });

  it("finds tasks and configurations by their paths, or by their ids", () => {
    assert.deepEqual(V03_REST_DIALECT.readParams("get", { name: "tasks/t", historyLength: "2" }), {
      id: "t",
      historyLength: 2,
    });
    assert.deepEqual(V03_REST_DIALECT.readParams("get", { id: "t" }), { id: "t" });
    const name = "tasks/t/pushNotificationConfigs/p";
    assert.deepEqual(V03_REST_DIALECT.readParams("push-get", { name }), { taskId: "t", id: "p" });
    assert.deepEqual(V03_REST_DIALECT.readParams("push-list", { parent: "tasks/t" }), { taskId: "t" });
    assert.deepEqual(V03_REST_DIALECT.readParams("push-delete", { taskId: "t", id: "p" }), {
      taskId: "t",
      id: "p",
    });
  });

  it("reads a push configuration under its path, bare, and as the request that holds it", () => {
    const pushNotificationConfig = { url: "https://hook.example" };
    const flat = { taskId: "t", id: "p", url: "https://hook.example" };
    const bodies = [
      { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig },
      { parent: "tasks/t", configId: "p", config: { pushNotificationConfig } },
      { taskId: "t", pushNotificationConfig: { ...pushNotificationConfig, id: "p" } },
      flat,
    ];
    for (const body of bodies) assert.deepEqual(V03_REST_DIALECT.readParams("push-create", body), flat);
    const unnamed = { name: "tasks/t/pushNotificationConfigs/", pushNotificationConfig };
    assert.deepEqual(V03_REST_DIALECT.readParams("push-create", unnamed), {
      taskId: "t",
      url: "https://hook.example",
    });
  });

  it("spells canceled with two L, and reads it with one or two", () => {
    const status = { state: "TASK_STATE_CANCELED" };
    const task = { id: "t", contextId: "c", status };
    const written = { id: "t", contextId: "c", status: { state: "TASK_STATE_CANCELLED" } };
    assert.deepEqual(V03_REST_DIALECT.writeResult("cancel", task), written);
    for (const one of [written, task]) assert.deepEqual(V03_REST_DIALECT.readResult("cancel", one), task);
  });

  it("takes data that lies no deeper as it is", () => {
    const parts = [{ data: { data: 1, other: 2 } }, { data: "文" }];
    assert.deepEqual(V03_REST_DIALECT.readResult("send", { msg: { content: parts } }), {
      message: { parts },
    });
  });
});
