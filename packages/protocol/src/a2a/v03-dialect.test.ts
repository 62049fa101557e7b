import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { V02_DIALECT, V03_DIALECT } from "./v03-dialect.ts";

const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "你好" }] };
const read = { messageId: "m", role: "ROLE_USER", parts: [{ text: "你好" }] };

describe("A2A 0.3 and 0.2", () => {
  it("keep a sender waiting who gives no configuration, or asks for it, and no other", () => {
    const configurations: readonly (readonly [unknown, unknown])[] = [
      [{}, { returnImmediately: true }],
      [{ blocking: false }, { returnImmediately: true }],
      [{ blocking: true }, { returnImmediately: false }],
      [{ historyLength: 1 }, { returnImmediately: true, historyLength: 1 }],
    ];
    for (const [configuration, expected] of configurations) {
      assert.deepEqual(V03_DIALECT.readParams("send", { message, configuration }), {
        message: read,
        configuration: expected,
      });
    }
    assert.deepEqual(V03_DIALECT.readParams("send", { message }), { message: read });
  });

  it("always say whether the sender waits when they ask", () => {
    const asked = (configuration: object) =>
      (V03_DIALECT.writeParams("send", { message: read, configuration }) as { configuration: unknown })
        .configuration;
    assert.deepEqual(asked({}), { blocking: true });
    assert.deepEqual(asked({ returnImmediately: true }), { blocking: false });
  });

  it("find the push configuration of a task by the task's id, with or without its own", () => {
    assert.deepEqual(V03_DIALECT.readParams("push-get", { id: "t" }), { taskId: "t" });
    const both = { id: "t", pushNotificationConfigId: "p" };
    assert.deepEqual(V03_DIALECT.readParams("push-delete", both), { taskId: "t", id: "p" });
    assert.deepEqual(V03_DIALECT.readParams("push-get", { taskId: "t", id: "p" }), { taskId: "t", id: "p" });
  });

  it("keep all schemes of a push configuration; 1.0 uses the first", () => {
    const pushNotificationConfig = {
      url: "https://hook.example",
      authentication: { schemes: ["Bearer", "Basic"], credentials: "秘" },
    };
    const flat = V03_DIALECT.readParams("push-create", { taskId: "t", pushNotificationConfig });
    assert.deepEqual(flat, {
      taskId: "t",
      url: "https://hook.example",
      authentication: { scheme: "Bearer", schemes: ["Bearer", "Basic"], credentials: "秘" },
    });
    assert.deepEqual(V03_DIALECT.writeResult("push-create", flat), { taskId: "t", pushNotificationConfig });
  });

  it("tell the end of a stream in its last update", () => {
    const statusUpdate = { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } as const;
    for (const isFinal of [true, false]) {
      const written = V03_DIALECT.writeEvent({ statusUpdate }, { isFinal });
      assert.deepEqual(written, {
        kind: "status-update",
        taskId: "t",
        contextId: "c",
        status: { state: "completed" },
        final: isFinal,
      });
      assert.deepEqual(V03_DIALECT.readEvent(written), { statusUpdate });
    }
  });

  it("read an update without a tag as what it is", () => {
    const status = { state: "working" };
    assert.deepEqual(V03_DIALECT.readEvent({ taskId: "t", status, final: false }), {
      statusUpdate: { taskId: "t", status: { state: "TASK_STATE_WORKING" } },
    });
    assert.deepEqual(V03_DIALECT.readEvent({ taskId: "t", artifact: { artifactId: "a", parts: [] } }), {
      artifactUpdate: { taskId: "t", artifact: { artifactId: "a", parts: [] } },
    });
  });

  it("answer a send with a bare message where there is no task", () => {
    assert.deepEqual(V03_DIALECT.writeResult("send", { message: read }), message);
  });

  it("differ in their number, and in the modes that 0.2 must be told", () => {
    assert.equal(V02_DIALECT.version, "0.2");
    assert.equal(V02_DIALECT.methods["extended-card"], undefined);
    assert.deepEqual(V02_DIALECT.writeParams("send", { message: read, configuration: {} }), {
      message,
      configuration: { acceptedOutputModes: [], blocking: true },
    });
    assert.equal(V03_DIALECT.methods.list, undefined);
  });
});
