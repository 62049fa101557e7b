import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import {
  anOkResult,
  aQueueTask,
  type CoreWithQueue,
  coreWithQueue,
  KAMES,
} from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

async function relayIdOf(core: CoreWithQueue, clientId: string): Promise<string> {
  const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, undefined, clientId);
  return task?.id ?? "";
}

describe("a result that is posted", () => {
  it("ends the task and its work in one commit, and is a message to the requester", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    assert.deepEqual(await core.taskQueue.postResult(core.zhiwei, anOkResult(id)), {
      kind: "a2a_result_posted",
      task_id: id,
    });
    const relayId = await relayIdOf(core, id);
    const task = await core.tasks.get(core.lulu, relayId);
    assert.deepEqual([task.state, task.result_status], ["completed", "ok"]);
    assert.equal((await core.delivery(task.message_id)).state, "acknowledged");
    const [item] = await core.inboxOf(LULU);
    assert.deepEqual([item?.message.type, item?.message.body, item?.task_id], ["reply", "翻译好了", relayId]);
    assert.deepEqual((await core.taskQueue.queue(core.zhiwei, {})).tasks, []);
  });

  for (const [status, state] of [
    ["partial", "completed"],
    ["error", "failed"],
  ] as const) {
    it(`may be ${status}: the task is ${state}`, async () => {
      await using core = await coreWithQueue();
      const id = await core.queueTask();
      await core.takeTask();
      const result = {
        task_id: id,
        status,
        content: [{ type: "json", value: { 页: 3 } }],
        error_message: "第四页打不开",
      };
      await core.taskQueue.postResult(core.zhiwei, result);
      const task = await core.tasks.get(core.lulu, await relayIdOf(core, id));
      assert.deepEqual([task.state, task.result_status], [state, status]);
      assert.deepEqual((await core.taskQueue.nextResult(core.lulu, {}, "now")).result, result);
    });
  }

  it("twice is answered as before, and otherwise the first one stands", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { leaseId } = await core.takeTask();
    const posted = await core.taskQueue.postResult(core.zhiwei, anOkResult(id));
    assert.deepEqual(await core.taskQueue.postResult(core.zhiwei, anOkResult(id)), posted);
    const again = { ...anOkResult(id), lease_id: leaseId };
    assert.deepEqual(await core.taskQueue.postResult(core.zhiwei, again), posted);
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(id, "改了")), "task_finished");
    const error = { task_id: id, status: "error" };
    await refused(core.taskQueue.postResult(core.zhiwei, error), "task_finished");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("for a task that was canceled is refused as such", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    await core.tasks.cancel(core.lulu, await relayIdOf(core, id), { reason: "不用了" });
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(id)), "task_canceled");
    const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(result, { task_id: id, status: "error", content: [], error_message: "不用了" });
  });

  it("refuses unknown members", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    const post = (said: object): Promise<unknown> =>
      core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), ...said });
    for (const status of ["Ok", "OK", "failed", ""]) {
      await refused(post({ status }), "invalid_argument", /^status: must be one of ok, error, partial/);
    }
    for (const content of [
      [{ type: "Text", text: "x" }],
      [{ type: "text" }],
      [{ type: "text", text: "x", more: 1 }],
      [{ type: "image", data: "x" }],
      ["x"],
      "x",
    ]) {
      await refused(post({ content }), "invalid_argument");
    }
    await post({});
  });
});

describe("a result for a task that the caller was never given", () => {
  it("is refused before anything else is asked, the same for all, and on record", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    const relayId = await relayIdOf(core, id);
    const attempts = [
      [core.zhiwei, "nothing"],
      [core.kames, id],
      [core.kames, relayId],
      // The requester cannot answer it either.
      [core.lulu, id],
      [core.operator, "nothing"],
    ] as const;
    for (const [caller, name] of attempts) {
      await refused(
        core.taskQueue.postResult(caller, anOkResult(name)),
        "not_found",
        new RegExp(`^a2a respond rejected: task_id ${name} was never dispatched through this daemon$`),
      );
    }
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["reason"], data["task_id"]]),
      attempts.map(([caller, name]) => [
        caller.kind === "agent" ? caller.agentId : "operator",
        "unknown_task",
        name,
      ]),
    );
    assert.equal((await core.tasks.get(core.lulu, relayId)).state, "submitted");
    assert.deepEqual((await core.taskQueue.recentResults(core.operator, {})).results, []);
  });

  it("is refused before any capability check, where the tenant requires capabilities", async () => {
    await using core = await coreWithQueue({ capabilities: true });
    const { task_id: id } = await core.taskQueue.sendTask(core.operator, aQueueTask());
    await core.takeTask();
    await refused(
      core.taskQueue.postResult(core.zhiwei, anOkResult("nothing")),
      "not_found",
      /never dispatched/,
    );
    const before = await core.journal.events(core.operator, { type: "capability_check" });
    assert.deepEqual(
      before.events.filter(({ actor }) => actor === ZHIWEI),
      [],
    );
    await refused(
      core.taskQueue.postResult(core.zhiwei, anOkResult(id)),
      "permission_denied",
      /a2a\.respond/,
    );
    assert.deepEqual((await core.taskQueue.recentResults(core.lulu, {})).results, []);
    assert.equal((await core.taskQueue.queue(core.operator, {})).tasks[0]?.state, "in_flight");
    await refused(core.queueTask(), "permission_denied", /a2a\.send/);
  });

  it("is refused also when the caller names another agent", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    const asZhiwei = core.taskQueue.postResult(core.kames, anOkResult(id), { agent: ZHIWEI });
    await refused(asZhiwei, "permission_denied");
  });

  it("is found for an operator, who may name the agent it speaks for", async () => {
    await using core = await coreWithQueue();
    for (const caller of [{}, { agent: ZHIWEI }]) {
      const id = await core.queueTask();
      await core.takeTask();
      await core.taskQueue.postResult(core.operator, anOkResult(id), caller);
    }
    const id = await core.queueTask();
    await core.takeTask();
    await refused(core.taskQueue.postResult(core.operator, anOkResult(id), { agent: KAMES }), "not_found");
  });
});

describe("the lease of a result", () => {
  it("is the current one where it names none, and no worker was named either", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { leaseId } = await core.takeTask();
    await refused(
      core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), lease_id: "other" }),
      "lease_lost",
    );
    await core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), lease_id: leaseId });
    const second = await core.queueTask();
    await core.takeTask();
    await core.taskQueue.postResult(core.zhiwei, { ...anOkResult(second), lease_id: null });
  });

  it("must be given where workers have names: one of them is not the other", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, { worker: "anna" });
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(id)), "lease_required");
    await core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), lease_id: lease?.lease_id });
  });

  it("is required: queued work cannot be answered", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const words = /^task .* is queued, and no worker has taken it/;
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(id)), "lease_required", words);
    const { leaseId } = await core.takeTask();
    const repair = {
      task_id: id,
      reason: "worker lost",
      command: { action: "requeue", duplicate_risk: "operator_accepted" },
    };
    await core.taskQueue.repair(core.operator, repair);
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(id)), "lease_required", words);
    // The operator ended the lease, although no other worker took over.
    const late = core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), lease_id: leaseId });
    await refused(late, "lease_lost");
  });

  it("is lost to a late worker once another worker took over", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { leaseId } = await core.takeTask();
    const command = { action: "requeue", duplicate_risk: "operator_accepted" };
    await core.taskQueue.repair(core.operator, { task_id: id, reason: "late", command });
    assert.equal((await core.takeTask()).attempt, 2);
    await refused(
      core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), lease_id: leaseId }),
      "lease_lost",
    );
  });

  it("is not needed by a worker that read the task on another wire", async () => {
    await using core = await coreWithQueue();
    const read = await core.queueTask();
    await core.mailboxes.read(core.zhiwei, ZHIWEI, {});
    await core.taskQueue.postResult(core.zhiwei, anOkResult(read));
    const acknowledged = await core.queueTask();
    const [item] = await core.inboxOf(ZHIWEI);
    await core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids: [item?.message_id] });
    await core.taskQueue.postResult(core.zhiwei, anOkResult(acknowledged));
  });
});

describe("a task's name", () => {
  it("may be the sender's or the relay's", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.takeTask();
    const relayId = await relayIdOf(core, id);
    await core.taskQueue.postResult(core.zhiwei, anOkResult(relayId));
    assert.equal((await core.taskQueue.nextResult(core.lulu, {}, "now")).result?.task_id, id);
  });

  it("that two senders use for unfinished tasks is told apart by the lease or by the relay's id", async () => {
    await using core = await coreWithQueue();
    const task = aQueueTask();
    await core.taskQueue.sendTask(core.lulu, task);
    await core.taskQueue.sendTask(core.kames, { ...task, sender: KAMES });
    const first = await core.taskQueue.nextTask(core.zhiwei, {});
    const second = await core.taskQueue.nextTask(core.zhiwei, {});
    const ids = [second.lease?.relay_task_id, first.lease?.relay_task_id];
    const error = await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(task.id)), "conflict");
    assert.deepEqual(error.details, { task_ids: ids });
    for (const id of ids) assert.match(error.message, new RegExp(id ?? "-"));
    const byLease = { ...anOkResult(task.id, "给kames"), lease_id: second.lease?.lease_id };
    await core.taskQueue.postResult(core.zhiwei, byLease);
    assert.equal((await core.taskQueue.nextResult(core.kames, {}, "now")).result?.task_id, task.id);
    // Only one is left, so its name is enough again.
    await core.taskQueue.postResult(core.zhiwei, anOkResult(task.id, "给lulu"));
    const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(result?.content, [{ type: "text", text: "给lulu" }]);
    // Both are finished: the same results again are accepted.
    await core.taskQueue.postResult(core.zhiwei, byLease);
    await core.taskQueue.postResult(core.zhiwei, anOkResult(task.id, "给lulu"));
  });

  it("cannot be used to answer another's task by giving one the relay's id of it", async () => {
    await using core = await coreWithQueue();
    const { receipt } = await core.send({ type: "request", body: "真的" });
    const victim = receipt.task_id ?? "";
    const forged = aQueueTask({ id: victim, sender: KAMES, intent_text: "假的" });
    await refused(core.taskQueue.sendTask(core.kames, forged), "conflict", /the relay's own name of a task/);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("does not get an answer that was given to another's task of that name and is sent again", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.taskQueue.nextTask(core.zhiwei, {});
    const secret = anOkResult(id, "只给lulu");
    await core.taskQueue.postResult(core.zhiwei, secret);
    await core.taskQueue.sendTask(core.kames, aQueueTask({ id, sender: KAMES, intent_text: "也给我" }));
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    await refused(core.taskQueue.postResult(core.zhiwei, secret), "conflict", /pass lease_id/);
    assert.deepEqual((await core.taskQueue.recentResults(core.kames, {})).results, []);
    await core.taskQueue.postResult(core.zhiwei, { ...secret, lease_id: lease?.lease_id });
    assert.equal((await core.taskQueue.recentResults(core.kames, {})).results.length, 1);
  });
});

describe("two wires", () => {
  it("see the same task: sent here, taken and answered there, and its result taken here", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { lease_id } = await core.lease();
    await core.tasks.complete(core.zhiwei, await relayIdOf(core, id), { text: "另一边做好了", lease_id });
    const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(result, {
      task_id: id,
      status: "ok",
      content: [{ type: "text", text: "另一边做好了" }],
    });
  });

  it("see the same task: sent there, taken and answered here, and its result read there", async () => {
    await using core = await coreWithQueue();
    const { receipt } = await core.send({ type: "request", body: "写一首诗" });
    const { task } = await core.taskQueue.nextTask(core.zhiwei, {});
    await core.taskQueue.postResult(core.zhiwei, anOkResult(task?.id ?? "", "床前明月光"));
    const [item] = await core.inboxOf(LULU);
    assert.deepEqual([item?.message.body, item?.task_id], ["床前明月光", receipt.task_id]);
  });

  it("see the same end: a task that is rejected, or fails, there is an error here", async () => {
    await using core = await coreWithQueue();
    for (const act of ["fail", "reject"] as const) {
      const id = await core.queueTask();
      const { lease_id } = await core.lease();
      await core.tasks[act](core.zhiwei, await relayIdOf(core, id), { reason: "没有权限", lease_id });
      const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
      assert.deepEqual(result, { task_id: id, status: "error", content: [], error_message: "没有权限" });
    }
  });

  it("see what was made: artifacts come as content", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    const { lease_id } = await core.lease();
    const artifacts = [
      { parts: [{ kind: "text", text: "正文" }] },
      { parts: [{ kind: "data", data: { n: 1 } }] },
    ];
    await core.tasks.complete(core.zhiwei, await relayIdOf(core, id), { artifacts, lease_id });
    const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(result?.content, [
      { type: "text", text: "正文" },
      { type: "json", value: { n: 1 } },
    ]);
  });
});
