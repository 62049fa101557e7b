import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { anOkResult, aQueueTask, coreWithQueue, KAMES } from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

const NOTHING = { kind: "a2a_task_opt", task: null };
const NO_RESULT = { kind: "a2a_result_opt", result: null };

describe("the next task", () => {
  it("is the caller's oldest, once, with the lease that it was taken under", async () => {
    await using core = await coreWithQueue();
    assert.deepEqual(await core.taskQueue.nextTask(core.zhiwei, {}), NOTHING);
    const task = aQueueTask({ task_kind: "translate" });
    await core.taskQueue.sendTask(core.lulu, task);
    const second = await core.queueTask();
    const taken = await core.taskQueue.nextTask(core.zhiwei, {});
    const pubkey = await publicKeyOf(core.store, DEFAULT_TENANT, ZHIWEI);
    assert.deepEqual(taken.task, {
      ...task,
      sender: { display: LULU, pubkey: await publicKeyOf(core.store, DEFAULT_TENANT, LULU) },
      recipient: { display: ZHIWEI, pubkey },
    });
    const [message] = (await core.tasks.list(core.zhiwei, {})).tasks;
    assert.deepEqual(taken.lease, {
      lease_id: (await core.delivery(message?.message_id ?? "")).lease?.id,
      attempt: 1,
      leased_at_ms: core.clock.nowMs(),
      message_id: message?.message_id,
      relay_task_id: message?.id,
    });
    assert.equal((await core.takeTask()).id, second);
    assert.deepEqual(await core.taskQueue.nextTask(core.zhiwei, {}), NOTHING);
  });

  it("leaves tasks of other agents, and all other messages", async () => {
    await using core = await coreWithQueue();
    await core.send({ body: "只是一封信" });
    await core.taskQueue.sendTask(core.lulu, aQueueTask({ recipient: KAMES }));
    assert.deepEqual(await core.taskQueue.nextTask(core.zhiwei, {}), NOTHING);
    assert.deepEqual(await core.taskQueue.nextTask(core.lulu, {}), NOTHING);
    const id = await core.queueTask();
    assert.equal((await core.takeTask()).id, id);
    const [note] = await core.inboxOf(ZHIWEI);
    assert.deepEqual([note?.message.body, note?.status], ["只是一封信", "PENDING"]);
    assert.equal((await core.inboxOf(KAMES)).length, 1);
  });

  it("may have been asked for on any wire", async () => {
    await using core = await coreWithQueue();
    const { receipt } = await core.send({ type: "request", body: "从信里来" });
    const { task, lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    assert.deepEqual([task?.id, task?.intent_text], [receipt.task_id, "从信里来"]);
    assert.equal(lease?.relay_task_id, receipt.task_id);
  });

  it("wakes a waiting caller", async () => {
    await using core = await coreWithQueue();
    const waiting = core.taskQueue.nextTask(core.zhiwei, { wait_ms: 5_000 });
    const id = await core.queueTask();
    assert.equal((await waiting).task?.id, id);
  });

  for (const [when, checksBefore, attempt] of [
    ["is not taken for a caller that has disconnected", 0, 0],
    ["goes back when the caller disconnects while it is taken", 1, 1],
  ] as const) {
    it(when, async () => {
      await using core = await coreWithQueue();
      await core.queueTask();
      let checks = 0;
      const isGone = (): boolean => (checks += 1) > checksBefore;
      const gone = { signal: AbortSignal.abort(), isGone };
      assert.deepEqual(await core.taskQueue.nextTask(core.zhiwei, {}, gone), NOTHING);
      const [message] = await core.inboxOf(ZHIWEI);
      assert.equal((await core.delivery(message?.message_id ?? "")).attempt, attempt);
    });
  }

  it("of another agent is refused, and of all agents is for operators", async () => {
    await using core = await coreWithQueue();
    const first = await core.queueTask();
    await core.taskQueue.sendTask(core.lulu, aQueueTask({ recipient: KAMES }));
    await refused(core.taskQueue.nextTask(core.kames, { agent: ZHIWEI }), "permission_denied");
    const named = await core.taskQueue.nextTask(core.operator, { agent: KAMES });
    assert.equal(named.task?.recipient.display, KAMES);
    assert.equal((await core.taskQueue.nextTask(core.operator, {})).task?.id, first);
    assert.deepEqual(await core.taskQueue.nextTask(core.operator, {}), NOTHING);
  });

  it("comes oldest first for an operator that names no agent, and wakes it", async () => {
    await using core = await coreWithQueue();
    const ids: string[] = [];
    for (const recipient of [KAMES, ZHIWEI, KAMES]) {
      const task = aQueueTask({ recipient });
      ids.push((await core.taskQueue.sendTask(core.lulu, task)).task_id);
    }
    const taken: (string | undefined)[] = [];
    for (const _ of ids) taken.push((await core.taskQueue.nextTask(core.operator, {})).task?.id);
    assert.deepEqual(taken, ids);
    const waiting = core.taskQueue.nextTask(core.operator, { wait_ms: 5_000 });
    const id = await core.queueTask();
    assert.equal((await waiting).task?.id, id);
  });

  it("has a lease without an expiry", async () => {
    await using core = await coreWithQueue();
    await core.queueTask({ idempotency: { duplicate_safety: "idempotent", key: "k" } });
    await core.takeTask();
    core.clock.advance(6 * 24 * 60 * 60 * 1_000);
    await core.sweep.step();
    assert.deepEqual(await core.taskQueue.nextTask(core.zhiwei, {}), NOTHING);
  });
});

describe("the next result", () => {
  it("is drained by the requester only, in the order of the answers", async () => {
    await using core = await coreWithQueue();
    const first = await core.queueTask();
    const foreign = aQueueTask({ sender: KAMES });
    await core.taskQueue.sendTask(core.kames, foreign);
    const second = await core.queueTask();
    for (const _ of [1, 2, 3]) await core.finishTask();
    const { taskQueue } = core;
    assert.deepEqual(await taskQueue.nextResult(core.zhiwei, {}, "now"), NO_RESULT);
    assert.deepEqual(await taskQueue.nextResult(core.lulu, {}, "now"), {
      kind: "a2a_result_opt",
      result: { task_id: first, status: "ok", content: [{ type: "text", text: "翻译好了" }] },
    });
    assert.equal((await taskQueue.nextResult(core.kames, {}, "now")).result?.task_id, foreign.id);
    assert.equal((await taskQueue.nextResult(core.lulu, {}, "now")).result?.task_id, second);
    assert.deepEqual(await taskQueue.nextResult(core.lulu, {}, "now"), NO_RESULT);
    await refused(taskQueue.nextResult(core.kames, { agent: LULU }, "now"), "permission_denied");
  });

  it("leaves all other messages", async () => {
    await using core = await coreWithQueue();
    await core.send({ from: ZHIWEI, to: LULU, body: "闲聊" });
    await core.queueTask();
    await core.finishTask();
    assert.equal((await core.taskQueue.nextResult(core.lulu, {}, "now")).result?.status, "ok");
    const [note] = await core.inboxOf(LULU);
    assert.deepEqual([note?.message.body, note?.status], ["闲聊", "PENDING"]);
  });

  it("is given to one of many who drain at the same time", async () => {
    await using core = await coreWithQueue();
    for (const _ of [1, 2, 3]) await core.queueTask();
    for (const _ of [1, 2, 3]) await core.finishTask();
    const takers = Array.from({ length: 8 }, () => core.taskQueue.nextResult(core.lulu, {}, "now"));
    const ids = (await Promise.all(takers)).flatMap(({ result }) => result?.task_id ?? []);
    assert.deepEqual([ids.length, new Set(ids).size], [3, 3]);
  });

  it("wakes a waiting caller, and is not lost when that caller has disconnected", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    const waiting = core.taskQueue.nextResult(core.lulu, { wait_ms: 5_000 }, "now");
    const id = await core.finishTask();
    assert.equal((await waiting).result?.task_id, id);
    await core.queueTask();
    await core.finishTask();
    const gone = { signal: AbortSignal.abort(), isGone: () => true };
    assert.deepEqual(await core.taskQueue.nextResult(core.lulu, {}, "now", gone), NO_RESULT);
    assert.equal((await core.taskQueue.recentResults(core.lulu, {})).results.length, 1);
  });

  it("of all agents is for operators, who may name one", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.taskQueue.sendTask(core.kames, aQueueTask({ sender: KAMES }));
    for (const _ of [1, 2]) await core.finishTask();
    const named = await core.taskQueue.nextResult(core.operator, { agent: KAMES }, "now");
    assert.equal(named.result?.status, "ok");
    assert.equal((await core.taskQueue.nextResult(core.operator, {}, "now")).result?.task_id, id);
  });
});

describe("a result that waits to be acknowledged", () => {
  it("is leased again until then, however often its reader fails", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.finishTask();
    const { taskQueue, clock } = core;
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const { result, lease } = await taskQueue.nextResult(core.lulu, {}, "explicit");
      assert.deepEqual([result?.task_id, lease?.attempt], [id, attempt]);
      assert.deepEqual(await taskQueue.nextResult(core.lulu, {}, "explicit"), NO_RESULT);
      clock.advance(LIMITS.resultLeaseMsDefault - 1);
      await core.sweep.step();
      assert.deepEqual(await taskQueue.nextResult(core.lulu, {}, "now"), NO_RESULT);
      clock.advance(1);
      await core.sweep.step();
    }
    const { lease } = await taskQueue.nextResult(core.lulu, {}, "explicit");
    const ref = { message_id: lease?.message_id, lease_id: lease?.lease_id };
    const acked = { kind: "a2a_result_acked", task_id: id };
    assert.deepEqual(await taskQueue.ackResult(core.lulu, ref), acked);
    assert.deepEqual(await taskQueue.ackResult(core.lulu, ref), acked);
    clock.advance(10 * LIMITS.resultLeaseMsDefault);
    await core.sweep.step();
    assert.deepEqual(await taskQueue.nextResult(core.lulu, {}, "now"), NO_RESULT);
  });

  it("is leased again also when it was a reply by message", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    const reply = {
      from: ZHIWEI,
      to: LULU,
      type: "reply",
      reply_to: lease?.message_id,
      lease_id: lease?.lease_id,
    } as const;
    await core.messages.send(core.zhiwei, { ...reply, body: "回信" });
    await core.taskQueue.nextResult(core.lulu, {}, "explicit");
    core.clock.advance(LIMITS.resultLeaseMsDefault);
    await core.sweep.step();
    const { result } = await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(result?.content, [{ type: "text", text: "回信" }]);
  });

  it("is acknowledged under its own lease only, by its reader only", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    await core.finishTask();
    const { lease } = await core.taskQueue.nextResult(core.lulu, {}, "explicit");
    const message_id = lease?.message_id ?? "";
    const lease_id = lease?.lease_id ?? "";
    const { taskQueue } = core;
    await refused(taskQueue.ackResult(core.lulu, { message_id, lease_id: "other" }), "lease_lost");
    await refused(taskQueue.ackResult(core.kames, { message_id, lease_id }), "not_found");
    await refused(
      taskQueue.ackResult(core.kames, { message_id, lease_id, agent: LULU }),
      "permission_denied",
    );
    await refused(taskQueue.ackResult(core.lulu, { message_id: "nothing", lease_id }), "not_found");
    const { receipt } = await core.send({ from: ZHIWEI, to: LULU });
    const note = { message_id: receipt.message_id, lease_id };
    await refused(taskQueue.ackResult(core.lulu, note), "not_found", /there is no result/);
    assert.equal(
      (await taskQueue.ackResult(core.operator, { message_id, lease_id })).kind,
      "a2a_result_acked",
    );
  });
});

describe("what is pending", () => {
  it("is read without being taken, up to the limit, oldest first", async () => {
    await using core = await coreWithQueue();
    const ids: string[] = [];
    for (let count = 0; count < 12; count += 1) ids.push(await core.queueTask());
    const { taskQueue } = core;
    const recent = async (query: object): Promise<readonly string[]> =>
      (await taskQueue.recentTasks(core.zhiwei, query)).tasks.map(({ id }) => id);
    assert.deepEqual(await recent({}), ids.slice(0, 10));
    assert.deepEqual(await recent({ limit: 0 }), []);
    assert.deepEqual(await recent({ limit: 3 }), ids.slice(0, 3));
    assert.deepEqual(await recent({ limit: 100 }), ids);
    for (const _ of ids) await core.finishTask();
    assert.deepEqual(await recent({}), []);
    const results = async (query: object): Promise<readonly string[]> =>
      (await taskQueue.recentResults(core.lulu, query)).results.map(({ task_id }) => task_id);
    assert.deepEqual(await results({}), ids.slice(0, 10));
    assert.deepEqual(await results({ limit: 0 }), []);
    assert.deepEqual(await results({ limit: 100 }), ids);
    assert.equal((await taskQueue.nextResult(core.lulu, {}, "now")).result?.task_id, ids[0]);
  });

  it("is never hidden by what others have waiting", async () => {
    await using core = await coreWithQueue();
    for (let count = 0; count < 15; count += 1) await core.queueTask();
    const mine = aQueueTask({ sender: KAMES });
    await core.taskQueue.sendTask(core.kames, mine);
    const { tasks } = await core.taskQueue.recentTasks(core.kames, { limit: 1 });
    assert.deepEqual(
      tasks.map(({ id }) => id),
      [mine.id],
    );
    for (let count = 0; count < 16; count += 1) await core.finishTask();
    const { results } = await core.taskQueue.recentResults(core.kames, { limit: 1 });
    assert.equal(results[0]?.task_id, mine.id);
  });

  it("is visible to the sender, the recipient and operators only", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    const { taskQueue } = core;
    const counts = async (): Promise<readonly number[]> =>
      Promise.all(
        [core.lulu, core.zhiwei, core.operator, core.kames].map(
          async (caller) => (await taskQueue.recentTasks(caller, {})).tasks.length,
        ),
      );
    assert.deepEqual(await counts(), [1, 1, 1, 0]);
    assert.equal((await taskQueue.recentTasks(core.operator, { agent: KAMES })).tasks.length, 0);
    await refused(taskQueue.recentTasks(core.kames, { agent: LULU }), "permission_denied");
    await core.finishTask();
    assert.equal((await taskQueue.recentResults(core.zhiwei, {})).results.length, 0);
    assert.equal((await taskQueue.recentResults(core.operator, {})).results.length, 1);
    await refused(taskQueue.recentResults(core.kames, { agent: LULU }), "permission_denied");
  });

  it("fits into one answer, however long its messages are", async () => {
    await using core = await coreWithQueue();
    const intent_text = "长".repeat(300_000);
    for (let count = 0; count < 12; count += 1) await core.queueTask({ intent_text });
    const { tasks } = await core.taskQueue.recentTasks(core.zhiwei, { limit: 12 });
    assert.equal(tasks.length, Math.floor(LIMITS.answerBytesMax / 900_500));
    const anOk = anOkResult((await core.takeTask()).id, intent_text);
    await core.taskQueue.postResult(core.zhiwei, anOk);
    assert.equal((await core.taskQueue.recentResults(core.lulu, {})).results.length, 1);
  });
});
