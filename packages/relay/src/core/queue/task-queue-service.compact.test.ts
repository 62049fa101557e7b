import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { anOkResult, coreWithQueue } from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

describe("compaction", () => {
  it("archives the requests and results of finished work", async () => {
    await using core = await coreWithQueue();
    const id = await core.queueTask();
    await core.finishTask();
    const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, id);
    const { message_id, result_message_id = "" } = await core.tasks.get(core.lulu, task?.id ?? "");
    await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.deepEqual(await core.taskQueue.compact(core.operator), { kind: "a2a_compacted", dropped: 2 });
    for (const gone of [message_id, result_message_id]) {
      await refused(core.messages.get(core.operator, gone), "not_found");
    }
    await refused(core.tasks.get(core.operator, task?.id ?? ""), "not_found");
    const archived = core.archive.messages.map((line) => (line as { message: { id: string } }).message.id);
    assert.deepEqual(archived, [message_id, result_message_id]);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
    assert.deepEqual(await core.taskQueue.compact(core.operator), { kind: "a2a_compacted", dropped: 0 });
  });

  it("keeps queued and leased work, unacknowledged results, and messages", async () => {
    await using core = await coreWithQueue();
    await core.queueTask({ intent_text: "pending result" });
    await core.finishTask();
    await core.queueTask({ intent_text: "in the reader's hand" });
    await core.finishTask();
    await core.queueTask({ intent_text: "taken" });
    await core.takeTask();
    await core.queueTask({ intent_text: "queued" });
    const { receipt } = await core.send({ body: "读过的信" });
    await core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids: [receipt.message_id] });
    await core.taskQueue.nextResult(core.lulu, {}, "explicit");
    const before = await core.taskQueue.queue(core.operator, {});
    const head = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 0);
    assert.deepEqual(await core.taskQueue.queue(core.operator, {}), before);
    assert.deepEqual((await core.store.journal.chain(DEFAULT_TENANT)).head, head);
    assert.deepEqual(core.archive.messages, []);
    assert.equal((await core.message(receipt.message_id)).body, "读过的信");
  });

  it("takes failed, rejected and canceled work too, once its sender knows", async () => {
    await using core = await coreWithQueue();
    const ids: string[] = [];
    for (const _ of [1, 2, 3]) {
      const { receipt } = await core.send({ type: "request", body: "x" });
      ids.push(receipt.task_id ?? "");
    }
    await core.tasks.fail(core.zhiwei, ids[0] ?? "", { reason: "r" });
    await core.tasks.reject(core.zhiwei, ids[1] ?? "", { reason: "r" });
    await core.tasks.cancel(core.lulu, ids[2] ?? "", {});
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 0);
    for (const _ of ids) await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 6);
  });

  it("keeps expired deliveries until their retention ends", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    await core.finishTask();
    core.clock.advance(7 * DAY_MS);
    await core.sweep.step();
    assert.deepEqual((await core.taskQueue.recentResults(core.lulu, {})).results, []);
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 0);
  });

  it("waits while anything else about the task is open", async () => {
    await using core = await coreWithQueue();
    await core.queueTask();
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    const task_id = lease?.relay_task_id;
    await core.messages.send(core.zhiwei, { to: LULU, type: "note", task_id, body: "快好了" });
    await core.taskQueue.postResult(core.zhiwei, anOkResult(task_id ?? ""));
    await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 0);
    const [note] = await core.inboxOf(LULU);
    await core.mailboxes.ack(core.lulu, LULU, { message_ids: [note?.message_id] });
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 2);
  });

  it("handles many tasks, and answers late repeats of archived ones", async () => {
    await using core = await coreWithQueue();
    const task = { sender: LULU, recipient: ZHIWEI, intent_text: "x" };
    for (let count = 0; count < 230; count += 1) {
      await core.taskQueue.sendTask(core.lulu, { ...task, id: `t-${count}` });
      await core.finishTask();
      await core.taskQueue.nextResult(core.lulu, {}, "now");
    }
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 460);
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, { ...task, id: "t-0" }), {
      kind: "a2a_task_queued",
      task_id: "t-0",
    });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });
});
