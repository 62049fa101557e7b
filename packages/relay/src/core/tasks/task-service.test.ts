import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { askedTask } from "../../../testing/asked-task.ts";
import { refused } from "../../../testing/refusal.ts";

const PARTS = [{ kind: "text", text: "第一段" }];

describe("working on a task", () => {
  it("shows its state and its last text, which may come as parts", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    const first = await tasks.reportStatus(operator, taskId, { state: "working", text: "在看" });
    assert.deepEqual([first.state, first.status_text], ["working", "在看"]);
    const second = await tasks.reportStatus(operator, taskId, { state: "input-required", parts: PARTS });
    assert.deepEqual([second.state, second.status_text], ["input-required", "第一段"]);
    const third = await tasks.reportStatus(operator, taskId, { state: "auth-required" });
    assert.equal(third.status_text, undefined);
    assert.deepEqual(await tasks.get(operator, taskId), third);
    const long = await tasks.reportStatus(operator, taskId, {
      state: "working",
      text: `x${"🦊".repeat(2_000)}`,
    });
    assert.ok((long.status_text ?? "").length <= 2_000 && long.status_text?.isWellFormed() === true);
  });

  it("leaves a receipt on the message that asked, once each", async () => {
    const { core, taskId, requestId } = await askedTask();
    await using _ = core;
    await core.tasks.reportStatus(core.operator, taskId, { state: "working" });
    await core.tasks.complete(core.operator, taskId, { text: "好了" });
    const { receipts } = await core.messages.get(core.operator, requestId);
    assert.deepEqual(
      receipts.map(({ stage, by }) => [stage, by]),
      [
        ["accepted", LULU],
        ["working", ZHIWEI],
        ["acknowledged", ZHIWEI],
        ["replied", ZHIWEI],
      ],
    );
  });

  it("cannot go back to submitted, nor end by a status", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    for (const state of ["submitted", "completed", "canceled", "done", undefined]) {
      await refused(core.tasks.reportStatus(core.operator, taskId, { state }), "invalid_argument");
    }
  });
});

describe("completing", () => {
  it("settles the task and its deliveries and makes one result, which carries text, parts and state", async () => {
    const { core, taskId, requestId } = await askedTask();
    await using _ = core;
    const { lease_id } = await core.lease();
    const parts = [{ kind: "data", data: { ok: true } }];
    const request = { text: "好了", parts, result_status: "partial", lease_id };
    const task = await core.tasks.complete(core.operator, taskId, request);
    assert.deepEqual([task.state, task.result_status, task.status_text], ["completed", "partial", "好了"]);
    assert.equal((await core.delivery(requestId)).state, "acknowledged");
    const inbox = await core.inboxOf(LULU);
    assert.equal(inbox.length, 1);
    const result = inbox[0]?.message;
    assert.deepEqual(
      [
        result?.id,
        result?.type,
        result?.from,
        result?.subject,
        result?.body,
        result?.parts,
        result?.reply_to,
      ],
      [task.result_message_id, "reply", ZHIWEI, "Re: 看看", "好了", parts, requestId],
    );
    assert.deepEqual([result?.["task_state"], result?.["result_status"]], ["completed", "partial"]);
  });

  it("straight from submitted implies working, and needs no text", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    for (const request of [undefined, {}]) await core.tasks.complete(core.operator, taskId, request);
    assert.equal((await core.inboxOf(LULU))[0]?.message.body, "done");
  });

  it("again with the same content is answered as before, with other content refused", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const artifacts = [{ artifactId: "a", name: "报告", parts: PARTS }];
    const first = await core.tasks.complete(core.operator, taskId, { text: "好了", artifacts });
    core.clock.advance(1_000);
    const reordered = {
      artifacts: [{ parts: PARTS, name: "报告", artifactId: "a" }],
      text: "好了",
      lease_id: "any",
    };
    assert.deepEqual(await core.tasks.complete(core.operator, taskId, reordered), first);
    for (const other of [
      {},
      { text: "好" },
      { text: "好了" },
      { text: "好了", artifacts, result_status: "partial" },
    ]) {
      await refused(
        core.tasks.complete(core.operator, taskId, other),
        "task_finished",
        /first result stands/,
      );
    }
    await refused(core.tasks.fail(core.operator, taskId, { reason: "好了" }), "task_finished");
    await refused(core.tasks.cancel(core.operator, taskId, {}), "task_finished");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  for (const end of ["fail", "reject"] as const) {
    it(`by ${end} is the same one again only if all members are the same`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      const said = {
        reason: "做不了",
        parts: PARTS,
        metadata: { 步: 1 },
        a2a_message: { messageId: "自己的" },
      };
      const first = await core.tasks[end](core.operator, taskId, said);
      assert.deepEqual(await core.tasks[end](core.operator, taskId, { lease_id: "any", ...said }), first);
      for (const other of [
        { reason: "做不了" },
        { ...said, parts: [{ text: "别的" }] },
        { ...said, metadata: { 步: 2 } },
        { ...said, a2a_message: { messageId: "别的" } },
      ]) {
        await refused(core.tasks[end](core.operator, taskId, other), "task_finished");
      }
    });
  }

  it("by many at once is accepted from one of them", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const ends = Array.from({ length: 30 }, (_each, index) =>
      index % 3 === 0
        ? core.tasks.fail(core.operator, taskId, { reason: `${index}` })
        : core.tasks.complete(core.operator, taskId, { text: `${index}` }),
    );
    const settled = await Promise.allSettled(ends);
    assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("under an old lease is refused, also after the work went back once more", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const old = await core.lease();
    await core.mailboxes.release(core.operator, ZHIWEI, { leases: [old] });
    assert.equal((await core.tasks.get(core.operator, taskId)).state, "submitted");
    const newer = await core.lease();
    const { tasks, operator } = core;
    await refused(tasks.complete(operator, taskId, { lease_id: old.lease_id }), "lease_lost");
    await refused(tasks.complete(operator, taskId, {}), "lease_required");
    await core.mailboxes.release(operator, ZHIWEI, { leases: [newer] });
    await refused(tasks.complete(operator, taskId, { lease_id: old.lease_id }), "lease_lost");
    await tasks.complete(operator, taskId, { lease_id: newer.lease_id });
  });
});

describe("failing and rejecting", () => {
  for (const [verb, state] of [
    ["fail", "failed"],
    ["reject", "rejected"],
  ] as const) {
    it(`ends the task as ${state} with its reason, and the same again is harmless`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      const task = await core.tasks[verb](core.operator, taskId, { reason: "没有权限" });
      assert.deepEqual([task.state, task.result_status, task.status_text], [state, "error", "没有权限"]);
      assert.deepEqual(await core.tasks[verb](core.operator, taskId, { reason: "没有权限" }), task);
      await refused(core.tasks[verb](core.operator, taskId, { reason: "别的" }), "task_finished");
      const inbox = await core.inboxOf(LULU);
      assert.deepEqual(
        inbox.map(({ message }) => [message.body, message["task_state"]]),
        [["没有权限", state]],
      );
    });

    it(`needs a reason to be ${state}`, async () => {
      const { core, taskId } = await askedTask();
      await using _ = core;
      for (const reason of ["", "  ", undefined, 7]) {
        await refused(core.tasks[verb](core.operator, taskId, { reason }), "invalid_argument");
      }
    });
  }
});

describe("the list of tasks", () => {
  it("is narrowed by state, agent, thread and parent, and goes from page to page", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const child =
      (await core.send({ from: ZHIWEI, to: LULU, type: "request", parent: taskId })).receipt.task_id ?? "";
    const other = (await core.send({ type: "request", thread_id: "t9" })).receipt.task_id ?? "";
    await core.tasks.complete(core.operator, other, {});
    const ids = async (query: object): Promise<readonly string[]> =>
      (await core.tasks.list(core.operator, query)).tasks.map(({ id }) => id);
    assert.deepEqual(await ids({}), [taskId, child, other]);
    assert.deepEqual(await ids({ state: "completed" }), [other]);
    assert.deepEqual(await ids({ thread_id: "t9" }), [other]);
    assert.deepEqual(await ids({ parent: taskId }), [child]);
    assert.deepEqual(await ids({ agent: "zhiwei" }), [taskId, child, other]);
    assert.deepEqual(await ids({ state: "rejected" }), []);
    const { tasks, cursor } = await core.tasks.list(core.operator, { limit: 2 });
    assert.deepEqual([tasks.length, cursor], [2, child]);
    assert.deepEqual(await ids({ limit: 2, since: cursor }), [other]);
  });

  it("shows how many artifacts a task has, not what is in them", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    await core.send({ type: "request" });
    for (const artifactId of ["a", "b"]) {
      await core.tasks.addArtifact(core.operator, taskId, { artifact: { artifactId, parts: PARTS } });
    }
    const { tasks } = await core.tasks.list(core.operator, {});
    assert.deepEqual(
      tasks.map((task) => [task.artifact_count, "artifacts" in task]),
      [
        [2, false],
        [0, false],
      ],
    );
    const { artifacts, ...rest } = await core.tasks.get(core.operator, taskId);
    assert.deepEqual(tasks[0], { ...rest, artifact_count: artifacts.length });
  });

  it("is refused with an invalid filter", async () => {
    const { core } = await askedTask();
    await using _ = core;
    for (const query of [{ state: "done" }, { limit: 0 }, { agent: "" }, { agent: "a/b" }]) {
      await refused(core.tasks.list(core.operator, query), "invalid_argument");
    }
    await refused(core.tasks.list(core.operator, { agent: "unknown" }), "unknown_agent");
  });
});

describe("a tree of tasks", () => {
  it("shows all subtasks, level by level", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const grow = async (parent: string): Promise<string> =>
      (await core.send({ from: ZHIWEI, to: LULU, type: "request", parent })).receipt.task_id ?? "";
    const child = await grow(taskId);
    const grandchild = await grow(child);
    const second = await grow(taskId);
    const { task, children } = await core.tasks.tree(core.operator, taskId);
    assert.equal(task.id, taskId);
    assert.deepEqual(
      children.map((each) => [each.task.id, each.children.map((leaf) => leaf.task.id)]),
      [
        [child, [grandchild]],
        [second, []],
      ],
    );
  });

  it("shows how many artifacts each task has, not what is in them", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const asked = await core.send({ from: ZHIWEI, to: LULU, type: "request", parent: taskId });
    const childId = asked.receipt.task_id ?? "";
    await core.tasks.addArtifact(core.operator, childId, { artifact: { artifactId: "a", parts: PARTS } });
    const { task, children } = await core.tasks.tree(core.operator, taskId);
    assert.deepEqual(
      [task, children[0]?.task].map((each) => [each?.artifact_count, "artifacts" in (each ?? {})]),
      [
        [0, false],
        [1, false],
      ],
    );
  });

  it("is refused for an unknown task", async () => {
    await using core = await coreOnMemory();
    await refused(core.tasks.tree(core.operator, "nothing"), "not_found");
    await refused(core.tasks.get(core.operator, "a/b"), "invalid_argument");
  });
});

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

  it("sends no message for mere progress", async () => {
    await using relay = await coreOnMemory();
    const { receipt } = await relay.send({ type: "request" });
    await relay.tasks.reportStatus(relay.zhiwei, receipt.task_id ?? "", {
      state: "working",
      text: "reading",
    });
    assert.deepEqual(await relay.inboxOf(LULU), []);
  });
});
