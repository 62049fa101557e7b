import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, LULU } from "../../../testing/core-on-memory.ts";

describe("asking for input over the task's status", () => {
  it("puts the question into the requester's mailbox, once, and shows it on the task", async () => {
    await using relay = await coreOnMemory();
    const { receipt } = await relay.send({ type: "request", body: "请翻译" });
    const taskId = receipt.task_id ?? "";
    const task = await relay.tasks.reportStatus(relay.zhiwei, taskId, {
      state: "input-required",
      text: "翻译成什么语言?",
    });
    assert.equal(task.state, "input-required");
    const [question, ...others] = await relay.inboxOf(LULU);
    assert.equal(others.length, 0);
    assert.equal(question?.message.body, "翻译成什么语言?");
    assert.equal(question?.message.needs_reply, true);
    assert.equal(question?.message["task_state"], "input-required");
    assert.equal(question?.task_id, taskId);
  });

  it("sends no mail for mere progress", async () => {
    await using relay = await coreOnMemory();
    const { receipt } = await relay.send({ type: "request" });
    await relay.tasks.reportStatus(relay.zhiwei, receipt.task_id ?? "", {
      state: "working",
      text: "reading",
    });
    assert.deepEqual(await relay.inboxOf(LULU), []);
  });
});
