import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import { aSharedTask, coreWithQueue } from "../../../testing/queue-tasks.ts";

describe("work that is asked for under the same key on several relays", () => {
  it("is done once, also when all are asked at the same time", async () => {
    await using core = await coreWithQueue();
    const relays = [core, core.beside(), core.beside()];
    const asked = relays.map((relay) =>
      Array.from({ length: 10 }, () => relay.taskQueue.sendTask(core.lulu, aSharedTask("k-1"))),
    );
    await Promise.all(asked.flat());
    const [work, ...others] = await core.inboxOf(ZHIWEI);
    assert.deepEqual([work?.message.type, others], ["request", []]);
    await core.finishTask();
    await core.sweep.step();
    assert.equal((await core.taskQueue.recentResults(core.lulu, { limit: 100 })).results.length, 30);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("is released once, also when two relays do it at the same time", async () => {
    await using core = await coreWithQueue();
    const ask = async (): Promise<string> =>
      (await core.taskQueue.sendTask(core.lulu, aSharedTask("k-1"))).task_id;
    const first = await ask();
    for (const _ of [1, 2, 3]) await ask();
    await core.takeTask();
    await core.taskQueue.postResult(core.zhiwei, { task_id: first, status: "error" });
    await Promise.all([core.sweep.step(), core.beside().sweep.step()]);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });
});
