import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type {
  QueueTask,
  QueueTaskInput,
  QueueTaskResultInput,
  AgentId,
  Message,
  Part,
} from "@a2a-relay/protocol";
import { aDelivery, aLeasedDelivery, aTask } from "../../../testing/records.ts";
import { refused } from "../../../testing/refusal.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import {
  assertTaskTexts,
  shownId,
  taskDigest,
  toEnding,
  toEntry,
  toLease,
  toMessage,
  toOutcome,
  toResult,
  toTask,
} from "./queue-mapping.ts";

const ID = "5f0c1a34-7a0e-4f7e-9d7a-0a8f3a1f2c11";
const WAY = {
  sender: "lulu@kamac" as AgentId,
  recipient: "zhiwei@known-blocks1" as AgentId,
  parentId: undefined,
};

function golden(name: string): unknown {
  const path = new URL(`../../../testing/golden/task-queue/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8")) as unknown;
}

/** The value after JSON, without undefined members. */
function wire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

/** The message that the relay would store. */
function kept(message: object): Message {
  return {
    version: "a2a.v1",
    id: "m1",
    subject: "s",
    urgency: "normal",
    needs_reply: false,
    ...message,
  } as never;
}

/** Maps a task to a message and back. */
function throughTheRelay(task: QueueTask): QueueTask {
  const message = kept(toMessage(task, { ...WAY, parentId: "relay-parent" }));
  const { deadline_ms: deadlineMs = null, idempotency } = task;
  const delivery = aDelivery({
    taskId: "task1",
    duplicateSafety: idempotency?.duplicate_safety ?? "unsafe",
    idempotencyKey: idempotency?.key ?? null,
  });
  const parentId = task.parent === undefined ? null : "relay-parent";
  const parent = task.parent === undefined ? undefined : aTask({ id: "relay-parent", clientId: task.parent });
  const record = aTask({ clientId: task.id, deadlineMs, parentId });
  return toTask(message, delivery, record, { sender: task.sender, recipient: task.recipient, parent });
}

/** Maps a result to the message that ends a task and back. */
function resultThroughTheRelay(result: QueueTaskResultInput): unknown {
  const { state, resultStatus, text, parts, errorMessage } = toEnding(result);
  const message = kept({
    body: text,
    task_id: "task1",
    task_state: state,
    result_status: resultStatus,
    ...(parts === undefined ? {} : { parts }),
    ...(errorMessage === undefined ? {} : { error_message: errorMessage }),
  });
  const task = aTask({ clientId: result.task_id, state, resultStatus });
  const seen = wire(toResult(message, task, []));
  // The message alone gives the same result after retention removed its task.
  assert.deepEqual({ ...(wire(toResult(message, undefined, [])) as object), task_id: result.task_id }, seen);
  return seen;
}

describe("a task on the wire", () => {
  for (const name of ["task", "bare-task"]) {
    it(`survives the mapping there and back: ${name}`, () => {
      const task = golden(name) as QueueTask;
      assert.deepEqual(wire(throughTheRelay(task)), task);
    });
  }

  it("leaves out absent and null members", () => {
    const nulls = { task_kind: null, parent: null, deadline_ms: null, idempotency: null };
    const message = toMessage({ ...(golden("bare-task") as QueueTask), ...nulls }, WAY);
    assert.deepEqual(Object.keys(message), ["from", "to", "type", "body"]);
  });

  it("uses the relay's own ids where the requester gave none", () => {
    const record = aTask({ parentId: "p1" });
    const shown = toTask(kept({ body: "x" }), aDelivery(), record, {
      sender: { display: "a" },
      recipient: { display: "b" },
      parent: undefined,
    });
    assert.deepEqual([shown.id, shown.parent], ["task1", "p1"]);
    assert.equal(shownId({ id: "task1", clientId: ID }), ID);
  });

  it("contains the data of a message without text", () => {
    const parts: readonly Part[] = [{ kind: "data", data: { 页: 3 } }];
    const around = { sender: { display: "a" }, recipient: { display: "b" }, parent: undefined };
    const shown = toTask(kept({ body: "", parts }), aDelivery(), aTask(), around);
    assert.equal(shown.intent_text, JSON.stringify(parts));
  });

  it("refuses blank texts", async () => {
    const task = golden("task") as QueueTaskInput;
    assertTaskTexts(task);
    const idempotency = { duplicate_safety: "unsafe", key: " " } as const;
    const wrong: readonly (readonly [Partial<QueueTaskInput>, RegExp])[] = [
      [{ intent_text: "  \n" }, /^invalid task: intent_text must not be empty$/],
      [{ task_kind: "" }, /^invalid task: task_kind must not be empty when present$/],
      [{ task_kind: "\t" }, /^invalid task: task_kind must not be empty when present$/],
      [{ idempotency }, /^invalid task: idempotency key must not be empty$/],
    ];
    for (const [said, words] of wrong) {
      await refused(() => assertTaskTexts({ ...task, ...said }), "invalid_argument", words);
    }
  });

  it("is the same task whatever its agents are called, and another one if anything else differs", () => {
    const task = golden("task") as QueueTaskInput;
    const digest = taskDigest(task);
    assert.equal(
      taskDigest({ ...task, id: "other", sender: "lulu", recipient: { display: "知微" } }),
      digest,
    );
    assert.equal(
      taskDigest({ ...(golden("bare-task") as QueueTaskInput), parent: null }),
      taskDigest(golden("bare-task") as QueueTaskInput),
    );
    const others = [
      { intent_text: "别的" },
      { task_kind: "x" },
      { parent: "x" },
      { deadline_ms: 1 },
      { idempotency: null },
    ];
    for (const other of others) assert.notEqual(taskDigest({ ...task, ...other }), digest);
  });
});

describe("an entry of the queue on the wire", () => {
  const task = golden("bare-task") as QueueTask;

  it("is queued without a lease, or in flight with one", () => {
    assert.deepEqual(wire(toEntry(aDelivery(), task)), golden("queued-entry"));
    assert.deepEqual(wire(toEntry(aLeasedDelivery(), task)), golden("in-flight-entry"));
  });

  it("keeps its attempt once it is back in the queue", () => {
    const back = aDelivery({ attempt: 1, leaseId: "l1" });
    assert.deepEqual(wire(toEntry(back, task)), { ...(golden("queued-entry") as object), attempt: 1 });
  });

  it("has a lease that a worker can finish with", () => {
    assert.deepEqual(wire(toLease(aLeasedDelivery({ taskId: "task1" }))), golden("lease"));
  });
});

describe("a result on the wire", () => {
  for (const name of ["result", "bare-result"]) {
    it(`survives the mapping there and back: ${name}`, () => {
      const result = golden(name) as QueueTaskResultInput;
      assert.deepEqual(resultThroughTheRelay(result), result);
    });
  }

  it("survives the mapping also as an error, with or without content and message", () => {
    const content = [{ type: "text", text: "日志" }] as const;
    for (const said of [{ content: [] }, { content: [...content] }]) {
      for (const error of [{}, { error_message: "坏了" }]) {
        const result: QueueTaskResultInput = { task_id: ID, status: "error", ...said, ...error };
        assert.deepEqual(resultThroughTheRelay(result), result);
      }
    }
  });

  it("is not in its message twice when it is one plain text", () => {
    const ending = toEnding({ task_id: ID, status: "ok", content: [{ type: "text", text: "长" }] });
    assert.deepEqual([ending.text, ending.parts], ["长", undefined]);
    const texts = ["长", "", "\n"].map((text) => [{ type: "text" as const, text }]);
    for (const content of texts) {
      const result: QueueTaskResultInput = { task_id: ID, status: "ok", content };
      assert.deepEqual(resultThroughTheRelay(result), result);
    }
  });

  it("ends its task: ok and partial complete it, an error fails it", () => {
    const endings = (["ok", "partial", "error"] as const).map((status) => toEnding({ task_id: ID, status }));
    assert.deepEqual(
      endings.map(({ state, resultStatus }) => [state, resultStatus]),
      [
        ["completed", "ok"],
        ["completed", "partial"],
        ["failed", "error"],
      ],
    );
  });

  it("is compared by all of its members", () => {
    const result = golden("result") as QueueTaskResultInput;
    const { digest } = toEnding(result);
    assert.equal(toEnding({ ...result, lease_id: "l1" }).digest, digest);
    assert.equal(
      toEnding({ task_id: ID, status: "ok" }).digest,
      toEnding(golden("bare-result") as QueueTaskResultInput).digest,
    );
    for (const other of [
      { status: "ok" },
      { content: [] },
      { error_message: "x" },
      { error_message: null },
    ]) {
      assert.notEqual(toEnding({ ...result, ...other } as QueueTaskResultInput).digest, digest);
    }
  });

  const ended = (said: Partial<TaskRecord>): TaskRecord =>
    aTask({ state: "completed", resultStatus: "ok", ...said });

  it("of another wire has as content the parts, else the artifacts, else the text", () => {
    const parts: readonly Part[] = [
      { text: "一" },
      { kind: "data", data: [1] },
      { kind: "file", file: { uri: "x" } },
    ];
    const artifacts = [{ artifactId: "a1", parts: [{ text: "正文" }] }];
    const contentOf = (message: object, made: typeof artifacts = []): unknown =>
      toResult(kept(message), ended({}), made).content;
    assert.deepEqual(contentOf({ body: "一", parts }, artifacts), [
      { type: "text", text: "一" },
      { type: "json", value: [1] },
      { type: "json", value: { kind: "file", file: { uri: "x" } } },
    ]);
    assert.deepEqual(contentOf({ body: "好了" }), [{ type: "text", text: "好了" }]);
    assert.deepEqual(contentOf({ body: "正文" }, artifacts), [{ type: "text", text: "正文" }]);
    assert.deepEqual(contentOf({ body: "见附件" }, artifacts), [
      { type: "text", text: "见附件" },
      { type: "text", text: "正文" },
    ]);
  });

  for (const state of ["failed", "rejected", "canceled"] as const) {
    it(`reads as an error with its reason when the task was ${state}`, () => {
      const message = kept({ body: "没有权限", task_state: state });
      const error = { status: "error", content: [], error_message: "没有权限" };
      const shown = toResult(message, ended({ clientId: ID, state, resultStatus: "error" }), []);
      assert.deepEqual(wire(shown), { task_id: ID, ...error });
      const alone = toResult({ ...message, task_id: "task1" }, undefined, []);
      assert.deepEqual(wire(alone), { task_id: "task1", ...error });
    });
  }

  it("is ok when the answer has no status", () => {
    assert.equal(toResult(kept({ body: "好" }), undefined, []).status, "ok");
  });
});

describe("the outcome of a repair on the wire", () => {
  it("contains the action, and the result of a forced error", () => {
    const requeue = { action: "requeue", duplicate_risk: "idempotent" } as const;
    assert.deepEqual(wire(toOutcome(ID, requeue, 1)), golden("requeued"));
    const force = { action: "force_error", message: "请周一再问" } as const;
    assert.deepEqual(wire(toOutcome(ID, force, 1)), golden("forced-error"));
  });
});
