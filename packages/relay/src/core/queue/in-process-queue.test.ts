import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { aQueueTask, type CoreWithQueue, coreWithQueue, KAMES } from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT, rootOperator } from "../access/principal.ts";
import { type Mailbox, InProcessQueue } from "./in-process-queue.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

interface Embedded extends AsyncDisposable {
  readonly core: CoreWithQueue;
  readonly mailbox: Mailbox;
  readonly stop: () => void;
}

async function setup(): Promise<Embedded> {
  const core = await coreWithQueue();
  const stopping = new AbortController();
  const mailbox = new InProcessQueue(core.taskQueue, rootOperator(), stopping.signal);
  return {
    core,
    mailbox,
    stop: () => stopping.abort(),
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

describe("the task queue inside a program", () => {
  it("sends a task and receives its result", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    const task = aQueueTask({ task_kind: "translate" });
    await mailbox.sendTask(task);
    assert.deepEqual(
      (await mailbox.recentTasks(10)).map(({ id }) => id),
      [task.id],
    );
    const { lease, ...taken } = await mailbox.recvTask();
    assert.deepEqual([taken.id, taken.task_kind, taken.sender.display], [task.id, "translate", LULU]);
    const [entry] = await mailbox.taskQueue(10);
    assert.deepEqual([entry?.state, entry?.lease_id, entry?.attempt], ["in_flight", lease.lease_id, 1]);
    const result = { task_id: task.id, status: "ok", content: [{ type: "text", text: "好了" }] } as const;
    await mailbox.sendResult({ ...result, content: [...result.content], lease_id: lease.lease_id });
    assert.deepEqual(await mailbox.recentResults(10), [result]);
    assert.deepEqual(await mailbox.recvResult(), result);
    assert.deepEqual(await mailbox.recentResults(10), []);
  });

  it("waits for a task, and for a result, until there is one", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    const task = aQueueTask();
    const waiting = mailbox.recvTask();
    await mailbox.sendTask(task);
    assert.equal((await waiting).id, task.id);
    const result = mailbox.recvResult();
    await mailbox.sendResult({ task_id: task.id, status: "error", error_message: "不行" });
    assert.equal((await result).error_message, "不行");
  });

  it("gives each task to one of many waiting callers, the oldest first, for all recipients", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    const waiting = [1, 2, 3].map(() => mailbox.recvTask());
    const tasks = [aQueueTask(), aQueueTask({ recipient: KAMES }), aQueueTask()];
    for (const task of tasks) await mailbox.sendTask(task);
    const taken = (await Promise.all(waiting)).map(({ id }) => id);
    assert.deepEqual(taken.toSorted(), tasks.map(({ id }) => id).toSorted());
    for (const task of [aQueueTask({ recipient: KAMES }), aQueueTask()]) await mailbox.sendTask(task);
    assert.equal((await mailbox.recvTask()).recipient.display, KAMES);
    assert.equal((await mailbox.recvTask()).recipient.display, ZHIWEI);
  });

  it("checks once for one agent, by name or by key, and leaves what is for others", async () => {
    await using embedded = await setup();
    const { core, mailbox } = embedded;
    assert.equal(await mailbox.tryRecvTaskFor(ZHIWEI), undefined);
    const task = aQueueTask();
    await mailbox.sendTask(task);
    assert.equal(await mailbox.tryRecvTaskFor(KAMES), undefined);
    const pubkey = await publicKeyOf(core.store, DEFAULT_TENANT, ZHIWEI);
    assert.ok(pubkey);
    assert.equal((await mailbox.tryRecvTaskFor({ display: "?", pubkey }))?.id, task.id);
    assert.equal(await mailbox.tryRecvTaskFor({ display: "zhiwei" }), undefined);
    await mailbox.sendResult({ task_id: task.id, status: "ok" });
    assert.equal(await mailbox.tryRecvResultFor(ZHIWEI), undefined);
    assert.equal((await mailbox.tryRecvResultFor("lulu"))?.task_id, task.id);
    assert.equal(await mailbox.tryRecvResultFor(LULU), undefined);
    await refused(mailbox.tryRecvTaskFor("unknown"), "unknown_agent");
  });

  it("repairs what is stuck", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    const task = aQueueTask();
    await mailbox.sendTask(task);
    const { lease } = await mailbox.recvTask();
    const command = {
      action: "requeue",
      duplicate_risk: "operator_accepted",
      lease_id: lease.lease_id,
    } as const;
    assert.deepEqual(await mailbox.repairTask({ task_id: task.id, reason: "lost", command }), {
      task_id: task.id,
      action: "requeued",
      state: "queued",
      attempt: 1,
    });
    assert.equal((await mailbox.recvTask()).lease.attempt, 2);
  });

  it("stops waiting when the signal aborts, with its reason, and takes nothing", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    const controller = new AbortController();
    const waiting = [mailbox.recvTask(controller), mailbox.recvResult(controller)];
    controller.abort(new Error("genug"));
    for (const each of waiting) await assert.rejects(each, /genug/);
    await assert.rejects(mailbox.recvTask(controller), /genug/);
    await mailbox.sendTask(aQueueTask());
    assert.equal((await mailbox.recentTasks(10)).length, 1);
  });

  it("stops waiting when the relay stops", async () => {
    await using embedded = await setup();
    const { mailbox, stop } = embedded;
    const waiting = mailbox.recvTask();
    stop();
    await refused(waiting, "unavailable", /is stopping/);
    await refused(mailbox.recvResult(), "unavailable");
  });

  it("refuses what the wire refuses", async () => {
    await using embedded = await setup();
    const { mailbox } = embedded;
    await refused(mailbox.sendTask(aQueueTask({ intent_text: " " })), "invalid_argument", /^invalid task: /);
    await refused(mailbox.sendResult({ task_id: "nothing", status: "ok" }), "not_found", /never dispatched/);
    await refused(mailbox.recentTasks(-1), "invalid_argument");
  });
});
