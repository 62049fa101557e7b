import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2aError, type A2aTask, LIMITS } from "@a2a-relay/protocol";
import { askingFor, askingNow, callerOf } from "../../../testing/a2a-requests.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const V01 = { version: "0.1" } as const;

async function askNow({ a2a, lulu }: CoreOnMemory, text = "请译成英文"): Promise<string> {
  const { task } = await a2a.send(callerOf(lulu), askingNow(text), {});
  assert.ok(task);
  return task.id;
}

async function noTask(act: Promise<unknown>): Promise<void> {
  await assert.rejects(act, (reason) => reason instanceof A2aError && reason.a2a === "TaskNotFound");
}

describe("a new owner of an id", () => {
  async function handedOn(core: CoreOnMemory): Promise<string> {
    const id = await askNow(core, "旧主人的秘密");
    await core.a2a.send(callerOf(core.lulu, V01), askingNow("旧名字", { clientTaskId: "job-1" }), {});
    core.clock.advance(1_000);
    await core.agents.remove(core.operator, LULU);
    core.clock.advance(1_000);
    await core.agents.register(core.operator, { agent_id: LULU });
    return id;
  }

  it("lists its own tasks and counts no others", async () => {
    await using core = await coreOnMemory();
    await handedOn(core);
    const own = await askNow(core, "新主人的");
    const { tasks, totalSize } = await core.a2a.list(callerOf(core.lulu), {});
    assert.deepEqual([tasks.map(({ id }) => id), totalSize], [[own], 1]);
  });

  it("does not find tasks of the earlier owner, by any name", async () => {
    await using core = await coreOnMemory();
    const id = await handedOn(core);
    const caller = callerOf(core.lulu, V01);
    await noTask(core.a2a.get(caller, { id: "job-1" }));
    await noTask(core.a2a.get(caller, { id }));
    await noTask(core.a2a.subscribe(caller, { id: "job-1" }, { afterN: 0 }));
    await noTask(core.a2a.cancel(caller, { id: "job-1" }));
    await noTask(core.a2aPushes.get(caller, { taskId: "job-1" }));
    assert.equal(await core.a2a.isNamedByCaller(core.lulu, "job-1"), false);
    await noTask(core.a2a.send(caller, askingFor("旧名字", { clientTaskId: "job-1" }), {}));
  });
});

describe("a name that callers of 0.1 give", () => {
  it("is found by the caller that gave it, also where the caller works on another task of that name", async () => {
    await using core = await coreOnMemory();
    const caller = callerOf(core.lulu, V01);
    await core.a2a.send(caller, askingNow("名字", { clientTaskId: "job-1" }), {});
    assert.equal((await core.a2a.get(caller, { id: "job-1" })).id, "job-1");
    const other = callerOf(core.zhiwei, { ...V01, agentId: LULU });
    await core.a2a.send(other, askingNow("名字", { clientTaskId: "job-1" }), {});
    const task = await core.a2a.get(caller, { id: "job-1", historyLength: 1 });
    assert.equal(task.history?.[0]?.messageId, "m-名字");
    assert.equal((await core.a2a.list(caller, {})).totalSize, 1);
  });
});

describe("a key that may only send", () => {
  it("learns nothing of a task by its name, and still sends and waits", async () => {
    await using core = await coreOnMemory({ a2aBlockMs: 0 });
    const sender = { ...core.lulu, verbs: new Set(["messages.send"] as const) };
    const caller = callerOf(sender, V01);
    const { task } = await core.a2a.send(caller, askingFor("名字", { clientTaskId: "job-1" }), {});
    assert.equal(task?.id, "job-1");
    await refused(core.a2a.get(caller, { id: "job-1" }), "permission_denied");
    const pages = await core.a2a.stream(callerOf(sender), askingFor("跟着看"), {});
    for await (const { events } of pages) {
      assert.equal(events[0]?.event.task?.status.state, "TASK_STATE_SUBMITTED");
      break;
    }
  });
});

describe("a send that would wait", () => {
  it("is refused before anything is delivered when its caller may not wait any more", async () => {
    await using core = await coreOnMemory();
    const id = await askNow(core);
    const caller = callerOf(core.lulu);
    for (let count = 0; count < LIMITS.waitsOfCallerMax; count += 1) {
      await core.a2a.subscribe(caller, { id }, { afterN: 0 });
    }
    await refused(core.a2a.send(caller, askingFor("付款"), {}), "resource_exhausted");
    await refused(core.a2a.stream(caller, askingFor("再付款"), {}), "resource_exhausted");
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    await core.a2a.send(caller, askingNow("不等"), {});
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
  });

  it("is refused before anything is delivered when its connection cannot wait", async () => {
    await using core = await coreOnMemory();
    const waiting = {
      get signal(): AbortSignal {
        throw new TypeError("this connection cannot report that its client left");
      },
    };
    const caller = callerOf(core.lulu);
    await assert.rejects(core.a2a.send(caller, askingFor("付款"), waiting), TypeError);
    await assert.rejects(core.a2a.stream(caller, askingFor("付款"), waiting), TypeError);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
    await core.a2a.send(caller, askingNow("不等"), waiting);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("counts once against the quota while it waits, and no more afterwards, also when refused", async () => {
    await using core = await coreOnMemory({ a2aBlockMs: 0 });
    const id = await askNow(core);
    const caller = callerOf(core.lulu);
    for (let count = 1; count < LIMITS.waitsOfCallerMax; count += 1) {
      await core.a2a.subscribe(caller, { id }, { afterN: 0 });
    }
    await core.a2a.send(caller, askingFor("一"), {});
    await refused(
      core.a2a.send(callerOf(core.lulu, { agentId: undefined }), askingFor("二"), {}),
      "invalid_argument",
    );
    await core.a2a.send(caller, askingFor("三"), {});
    await core.a2a.stream(caller, askingFor("四"), {});
    await refused(core.a2a.send(caller, askingFor("五"), {}), "resource_exhausted");
  });

  it("refuses U+0000 wherever an A2A caller puts it", async () => {
    await using core = await coreOnMemory();
    const caller = callerOf(core.lulu);
    await refused(core.a2a.send(caller, askingNow("知\0微"), {}), "invalid_argument", /U\+0000/);
    const metadata = { note: "\0" };
    await refused(core.a2a.send(caller, askingNow("喂", { metadata }), {}), "invalid_argument", /U\+0000/);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("returns a task that ended while its message was sent", async () => {
    await using core = await coreOnMemory();
    const answer = core.a2a.send(callerOf(core.lulu), askingFor("快"), {});
    for (let inbox = await core.inboxOf(ZHIWEI); ; inbox = await core.inboxOf(ZHIWEI)) {
      const taskId = inbox[0]?.message.task_id;
      if (taskId !== undefined) {
        await core.tasks.complete(core.zhiwei, taskId, { text: "好了" });
        break;
      }
      await new Promise(setImmediate);
    }
    assert.equal((await answer).task?.status.state, "TASK_STATE_COMPLETED");
  });
});

describe("a list of tasks", () => {
  it("ends a page early where the answer would be too long, and continues on the next page", async () => {
    await using core = await coreOnMemory();
    const ids: string[] = [];
    for (let index = 0; index < 12; index += 1) {
      ids.push(await askNow(core, `第${index}件`));
      core.clock.advance(1);
      await core.tasks.reportStatus(core.zhiwei, ids.at(-1) ?? "", {
        state: "working",
        text: "长".repeat(300_000),
      });
    }
    const seen: A2aTask[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const page = await core.a2a.list(callerOf(core.lulu), { pageSize: 100, pageToken });
      assert.ok(Buffer.byteLength(JSON.stringify(page.tasks)) < LIMITS.answerBytesMax + 1_000);
      assert.deepEqual([page.pageSize, page.totalSize], [100, 12]);
      seen.push(...page.tasks);
      pageToken = page.nextPageToken;
      pages += 1;
    } while (pageToken !== "" && pages < 12);
    assert.deepEqual(
      seen.map(({ id }) => id),
      ids.toReversed(),
    );
    assert.equal(pages, 2);
  });
});
