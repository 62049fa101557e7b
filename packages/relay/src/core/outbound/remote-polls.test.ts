import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, type CoreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { aNewTask } from "../../../testing/store-builders.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import type { TimedRemoteTask } from "../ports/remote-tasks.ts";

const HANGING = "https://hanging.example/一";
const HEALTHY = "https://healthy.example/二";

/** Adds remote tasks of a tenant at a URL, due for `dueMs`. */
async function tasksAt(
  core: CoreOnMemory,
  url: string,
  count: number,
  { tenant = DEFAULT_TENANT, dueMs = 0 }: { readonly tenant?: string; readonly dueMs?: number } = {},
): Promise<void> {
  const nowMs = core.clock.nowMs();
  for (let n = 0; n < count; n += 1) {
    const task = aNewTask({ tenant, id: `${url}-${tenant}-${n}` });
    const remote = {
      url,
      binding: "JSONRPC" as const,
      dialect: "0.3" as const,
      a2aTenant: null,
      tenant,
      taskId: task.id,
      agentId: ZHIWEI,
      requester: LULU,
      threadId: "话题",
      remoteTaskId: "他们的",
      remoteContextId: null,
      answer: null,
      statusDigest: null,
      changedAtMs: nowMs,
      nextAtMs: nowMs - dueMs,
      failures: 0,
      misses: 0,
      version: 0,
    };
    const { committed } = await core.store.commit({
      tenant,
      tasks: [task],
      remoteTasks: [remote],
      events: [],
    });
    assert.ok(committed);
  }
}

function countBy(due: readonly TimedRemoteTask[], member: "origin" | "tenant"): Record<string, number> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(due, (task) => task[member])).map(([name, of = []]) => [name, of.length]),
  );
}

describe("polls of remote tasks", () => {
  it("are chosen for every tenant, however many of another one wait longer", async () => {
    await using core = await coreOnMemory();
    for (let host = 0; host < 20; host += 1) {
      await tasksAt(core, `https://h${host}.example/`, LIMITS.remotePollsOfOriginMax, { dueMs: 1_000 });
    }
    await tasksAt(core, HEALTHY, 1, { tenant: "别人" });
    const first = await core.remoteWork.chooseDue([]);
    assert.deepEqual(countBy(first.due, "tenant"), { [DEFAULT_TENANT]: LIMITS.remotePollsMax, 别人: 1 });
    await tasksAt(core, `${HEALTHY}/后来`, 1, { tenant: "别人" });
    const second = await core.remoteWork.chooseDue(first.due);
    assert.deepEqual(countBy(second.due, "tenant"), { 别人: 1 });
    assert.equal(second.waitMs, Infinity);
  });

  it("are chosen at every origin, however many wait longer at another one", async () => {
    await using core = await coreOnMemory();
    await tasksAt(core, HANGING, 3 * LIMITS.remotePollsMax, { dueMs: 1_000 });
    await tasksAt(core, HEALTHY, 2);
    const { due } = await core.remoteWork.chooseDue([]);
    assert.deepEqual(countBy(due, "origin"), {
      "https://hanging.example": LIMITS.remotePollsOfOriginMax,
      "https://healthy.example": 2,
    });
    const [hung, ...others] = due;
    assert.ok(hung);
    const again = await core.remoteWork.chooseDue(others);
    assert.deepEqual(countBy(again.due, "origin"), { [hung.origin]: 1 });
  });

  it("wait for the first that is due beside those under way", async () => {
    await using core = await coreOnMemory();
    await tasksAt(core, HANGING, 1);
    await tasksAt(core, HEALTHY, 1, { dueMs: -700 });
    await tasksAt(core, HEALTHY, 1, { dueMs: -900, tenant: "别人" });
    const { due, waitMs } = await core.remoteWork.chooseDue([]);
    assert.deepEqual([due.length, waitMs], [1, 700]);
    assert.equal((await core.remoteWork.chooseDue(due)).waitMs, 700);
  });
});
