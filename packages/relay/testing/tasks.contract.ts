import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, type Artifact, TASK_STATES } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { ArtifactRecord, TaskFilter, TaskRecord } from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewTask,
  clashOf,
  commit,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  send,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const CAROL = "carol@host" as AgentId;

async function put(store: RelayStore, said: Partial<TaskRecord> = {}): Promise<string> {
  const task = aNewTask(said);
  await commit(store, { tasks: [task] });
  return task.id;
}

async function stored(store: RelayStore, id: string): Promise<TaskRecord> {
  const [task] = await store.tasks.get(TENANT, [id]);
  assert.ok(task, `there is no task ${id}`);
  return task;
}

async function find(store: RelayStore, said: Partial<TaskFilter> = {}): Promise<readonly string[]> {
  const tasks = await store.tasks.list({
    tenant: TENANT,
    state: undefined,
    agentId: undefined,
    threadId: undefined,
    parentId: undefined,
    afterId: "",
    limit: 100,
    ...said,
  });
  return tasks.map(({ id }) => id);
}

export function describeTasks(open: OpenStore): void {
  describe("tasks", () => {
    it("gives back every field, in any script", async () => {
      await using store = await open();
      const task = aNewTask({
        subject: "翻译",
        clientId: "客户端-1",
        resultKey: "结果",
        parentId: "parent",
        deadlineMs: NOON_MS,
        statusText: "进行中",
        resultStatus: "partial",
        resultMessageId: "m9",
        resultDigest: "d",
        handoffs: [{ from: LULU, to: ZHIWEI, message_id: "m8", at: "2026-05-08T12:00:00.000Z" }],
      });
      await commit(store, { tasks: [task] });
      assert.deepEqual((await store.tasks.get(TENANT, [task.id]))[0], { ...task, version: 1 });
      assert.equal((await store.tasks.get(TENANT, ["unknown"]))[0], undefined);
    });

    it("updates by version, and accepts only one of many completions", async () => {
      await using store = await open();
      const before = await stored(store, await put(store));
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          clashOf(store, { tasks: [{ ...before, state: "completed", resultDigest: `d${index}` }] }),
        ),
      );
      assert.equal(outcomes.filter((outcome) => outcome === "task").length, 19);
      const after = await stored(store, before.id);
      assert.equal(after.resultDigest, `d${outcomes.indexOf("none, it was committed")}`);
      assert.equal(after.version, before.version + 1);
    });

    it("refuses a second new task of the same id, and a change of one that does not exist", async () => {
      await using store = await open();
      const id = await put(store);
      assert.equal(await clashOf(store, { tasks: [aNewTask({ id })] }), "task");
      assert.equal(await clashOf(store, { tasks: [aNewTask({ version: 1 })] }), "task");
    });

    it("are found by state, agent, thread and parent, alone and together, by id", async () => {
      await using store = await open();
      const one = await put(store, { state: "working", threadId: "话题", parentId: "root" });
      const two = await put(store, { state: "completed", threadId: "话题", assignee: CAROL });
      const three = await put(store, { state: "working", requester: CAROL, parentId: "root" });
      const four = await put(store, { state: "submitted", requester: CAROL, assignee: CAROL });
      assert.deepEqual(await find(store), [one, two, three, four]);
      assert.deepEqual(await find(store, { state: "working" }), [one, three]);
      assert.deepEqual(await find(store, { state: "completed" }), [two]);
      assert.deepEqual(await find(store, { state: "failed" }), []);
      assert.deepEqual(await find(store, { agentId: CAROL }), [two, three, four]);
      assert.deepEqual(await find(store, { agentId: LULU }), [one, two]);
      assert.deepEqual(await find(store, { threadId: "话题" }), [one, two]);
      assert.deepEqual(await find(store, { parentId: "root" }), [one, three]);
      assert.deepEqual(await find(store, { parentId: "root", agentId: CAROL }), [three]);
      assert.deepEqual(await find(store, { threadId: "话题", state: "completed" }), [two]);
      assert.deepEqual(await find(store, { agentId: CAROL, state: "working" }), [three]);
    });

    it("are found by the thread that their own message began, also when others have joined it", async () => {
      await using store = await open();
      const threadId = "thread_0198-甲";
      const begin = async (id: string, taskId: string, said: Partial<TaskRecord> = {}): Promise<string> => {
        const message = await send(store, { id, taskId, threadId });
        return put(store, { id: taskId, threadId, messageId: message.id, ...said });
      };
      const first = await begin("msg_0198-甲", "task-1");
      const joined = await begin("msg_0198-乙", "task-2", { state: "working", parentId: "root" });
      await put(store, { id: "task-3", threadId: "thread_0198-丙", messageId: "msg_0198-丙" });
      assert.equal((await stored(store, first)).threadId, threadId);
      assert.deepEqual(await find(store, { threadId }), [first, joined]);
      assert.deepEqual(await find(store, { threadId, limit: 1 }), [first]);
      assert.deepEqual(await find(store, { threadId, limit: 1, afterId: first }), [joined]);
      assert.deepEqual(await find(store, { threadId, parentId: "root" }), [joined]);
      assert.deepEqual(await find(store, { threadId, state: "submitted" }), [first]);
      // Handed on, it is asked for by another message, and stays in its thread.
      await commit(store, { tasks: [{ ...(await stored(store, first)), messageId: "msg_0198-丁" }] });
      assert.equal((await stored(store, first)).threadId, threadId);
      assert.deepEqual(await find(store, { threadId }), [first, joined]);
    });

    it("are found in each state they can have", async () => {
      await using store = await open();
      for (const state of TASK_STATES) {
        const id = await put(store, { state });
        assert.deepEqual(await find(store, { state }), [id]);
      }
    });

    it("come page by page", async () => {
      await using store = await open();
      const ids: string[] = [];
      for (let count = 0; count < 5; count += 1) ids.push(await put(store));
      assert.deepEqual(await find(store, { limit: 2 }), ids.slice(0, 2));
      assert.deepEqual(await find(store, { limit: 2, afterId: ids[1] ?? "" }), ids.slice(2, 4));
      assert.deepEqual(await find(store, { limit: 2, afterId: ids[3] ?? "" }), ids.slice(4));
      assert.deepEqual(await find(store, { limit: 2, afterId: ids[3] ?? "", agentId: ZHIWEI }), ids.slice(4));
    });

    it("are found among thousands of others", async () => {
      await using store = await open();
      const others = Array.from({ length: 4_100 }, () => aNewTask({ state: "completed" }));
      await commit(store, { tasks: others });
      const failed = await put(store, { state: "failed" });
      assert.deepEqual(await find(store, { state: "failed", limit: 1 }), [failed]);
      assert.deepEqual(await find(store, { state: "failed", agentId: ZHIWEI, limit: 5 }), [failed]);
      assert.deepEqual(await find(store, { agentId: CAROL, limit: 5 }), []);
      const hers = await put(store, { assignee: CAROL });
      assert.deepEqual(await find(store, { agentId: CAROL, limit: 5 }), [hers]);
      assert.equal((await find(store, { limit: 4_102 })).length, 4_102);
    });

    it("are found by client id, by those who asked for them or work on them, the newest first", async () => {
      await using store = await open();
      const byClientId = async (agentId: AgentId | undefined, clientId: string): Promise<readonly string[]> =>
        (await store.tasks.withClientId(TENANT, agentId, clientId)).map(({ id }) => id);
      const asked = await put(store, { clientId: "编号" });
      const worked = await put(store, { clientId: "编号", requester: CAROL, assignee: LULU });
      await put(store, { clientId: "other" });
      await put(store);
      assert.deepEqual(await byClientId(LULU, "编号"), [worked, asked]);
      assert.deepEqual(await byClientId(ZHIWEI, "编号"), [asked]);
      assert.deepEqual(await byClientId(CAROL, "编号"), [worked]);
      assert.deepEqual(await byClientId(CAROL, "other"), []);
      assert.deepEqual(await byClientId(undefined, "编号"), [worked, asked]);
      assert.deepEqual(await byClientId(undefined, "nothing"), []);
      const own = await put(store, { clientId: "own", requester: CAROL, assignee: CAROL });
      assert.deepEqual(await byClientId(CAROL, "own"), [own]);
      await commit(store, { tasks: [{ ...(await stored(store, asked)), assignee: CAROL }] });
      assert.deepEqual(await byClientId(CAROL, "编号"), [worked, asked]);
      assert.deepEqual(await byClientId(ZHIWEI, "编号"), []);
    });

    it("have a client id that is unique for their requester, finished or not", async () => {
      await using store = await open();
      const first = await put(store, { clientId: "编号" });
      await commit(store, { tasks: [{ ...(await stored(store, first)), state: "completed" }] });
      const again = aNewTask({ clientId: "编号", assignee: CAROL });
      assert.equal(await clashOf(store, { tasks: [again] }), "task_client_id");
      assert.equal((await store.tasks.get(TENANT, [again.id]))[0], undefined);
      assert.equal(await clashOf(store, { tasks: [aNewTask({ id: first, clientId: "编号" })] }), "task");
      await put(store, { clientId: "编号", requester: CAROL });
      const outcomes = await Promise.all(
        Array.from({ length: 5 }, () => clashOf(store, { tasks: [aNewTask({ clientId: "同时" })] })),
      );
      assert.deepEqual(outcomes.toSorted(), [
        "none, it was committed",
        ...Array.from({ length: 4 }, () => "task_client_id"),
      ]);
    });

    it("are found by result key while they are unfinished: the one that does the work, else the oldest", async () => {
      await using store = await open();
      const found = async (): Promise<string | undefined> =>
        (await store.tasks.unfinishedWithResultKey(TENANT, "结果"))?.id;
      await put(store, { resultKey: "another" });
      assert.equal(await found(), undefined);
      const one = await put(store, { resultKey: "结果", id: "task-2" });
      const waiting = { resultKey: "结果", isWaiting: true };
      // Its id is the first: another relay's clock may be behind.
      const two = await put(store, { ...waiting, id: "task-1" });
      const three = await put(store, { ...waiting, id: "task-3" });
      assert.equal(await found(), one);
      await commit(store, { tasks: [{ ...(await stored(store, one)), state: "input-required" }] });
      assert.equal(await found(), one);
      await commit(store, { tasks: [{ ...(await stored(store, one)), state: "failed" }] });
      assert.equal(await found(), two);
      await commit(store, { tasks: [{ ...(await stored(store, three)), isWaiting: false }] });
      assert.equal(await found(), three);
      for (const id of [two, three]) {
        await commit(store, { tasks: [{ ...(await stored(store, id)), state: "completed" }] });
      }
      assert.equal(await found(), undefined);
    });

    it("with one result key are done one at a time: a second that does not wait is a clash", async () => {
      await using store = await open();
      const shared = (said: Partial<TaskRecord> = {}): TaskRecord => aNewTask({ resultKey: "结果", ...said });
      const attempts = await Promise.all(
        Array.from({ length: 5 }, () => clashOf(store, { tasks: [shared()] })),
      );
      assert.deepEqual(attempts.toSorted(), [
        "none, it was committed",
        ...Array.from({ length: 4 }, () => "result_key"),
      ]);
      await commit(store, { tenant: OTHER_TENANT, tasks: [shared({ tenant: OTHER_TENANT })] });
      await commit(store, { tasks: [shared({ state: "completed" })] });
      const first = await store.tasks.unfinishedWithResultKey(TENANT, "结果");
      const second = await put(store, { resultKey: "结果", isWaiting: true });
      const released = { ...(await stored(store, second)), isWaiting: false };
      assert.equal(await clashOf(store, { tasks: [released] }), "result_key");
      await commit(store, { tasks: [{ ...(first as TaskRecord), state: "failed" }] });
      await commit(store, { tasks: [released] });
    });

    it("wait for an unfinished one with the same result key: without one, a new one is a clash", async () => {
      await using store = await open();
      const waiting = aNewTask({ resultKey: "结果", isWaiting: true });
      await put(store, { resultKey: "结果", state: "completed" });
      assert.equal(await clashOf(store, { tasks: [waiting] }), "result_key");
      const first = await put(store, { resultKey: "结果" });
      await commit(store, { tasks: [waiting] });
      await commit(store, { tasks: [{ ...(await stored(store, first)), state: "failed" }] });
      // One that waits already may change, and end.
      await commit(store, { tasks: [{ ...(await stored(store, waiting.id)), statusText: "等" }] });
    });

    it("are overdue from the very millisecond of their deadline until they are finished", async () => {
      await using store = await open();
      const late = await put(store, { deadlineMs: NOON_MS + 10, state: "input-required" });
      const later = await put(store, { deadlineMs: NOON_MS + 20 });
      await put(store, { deadlineMs: NOON_MS + 5, state: "canceled" });
      await put(store);
      const overdue = async (nowMs: number, limit = 10): Promise<readonly string[]> =>
        (await store.sweeps.lapsed(nowMs, limit)).overdueTasks.map(({ id }) => id);
      assert.deepEqual(await overdue(NOON_MS + 9), []);
      assert.deepEqual(await overdue(NOON_MS + 10), [late]);
      assert.deepEqual(await overdue(NOON_MS + 20), [late, later]);
      assert.deepEqual(await overdue(NOON_MS + 20, 1), [late]);
      await commit(store, { tasks: [{ ...(await stored(store, late)), state: "failed" }] });
      assert.deepEqual(await overdue(NOON_MS + 20), [later]);
    });
  });

  describe("artifacts", () => {
    it("come in the order in which they were first put; a replaced one keeps its rank", async () => {
      await using store = await open();
      const artifact = (artifactId: string, text: string): Artifact => ({ artifactId, parts: [{ text }] });
      const taskId = await put(store);
      const record = (each: Artifact): { tenant: string; taskId: string; artifact: Artifact } => ({
        tenant: TENANT,
        taskId,
        artifact: each,
      });
      await commit(store, { artifacts: [record(artifact("z", "一")), record(artifact("a", "二"))] });
      await commit(store, { artifacts: [record(artifact("m", "三")), record(artifact("z", "新"))] });
      assert.deepEqual(await store.tasks.artifacts(TENANT, taskId), [
        artifact("z", "新"),
        artifact("a", "二"),
        artifact("m", "三"),
      ]);
      assert.deepEqual(await store.tasks.artifacts(TENANT, "other"), []);
    });

    it("are counted for many tasks at once; a task without any is left out", async () => {
      await using store = await open();
      const artifacts = (taskId: string, ...ids: readonly string[]): readonly ArtifactRecord[] =>
        ids.map((artifactId) => ({ tenant: TENANT, taskId, artifact: { artifactId, parts: [] } }));
      const [one, two, none] = [await put(store), await put(store), await put(store)];
      await commit(store, { artifacts: [...artifacts(one, "a", "乙", "c"), ...artifacts(two, "a")] });
      await commit(store, { artifacts: artifacts(one, "a") });
      const counts = await store.tasks.countArtifacts(TENANT, [none, two, one, "unknown", 'q"uote']);
      assert.deepEqual(
        counts,
        new Map([
          [one, 3],
          [two, 1],
        ]),
      );
      assert.equal((await store.tasks.countArtifacts(TENANT, [])).size, 0);
    });
  });
}
