import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type AgentId, GUEST } from "@a2a-relay/protocol";
import { taskTopic } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type {
  AskedTasksQuery,
  LastTaskUpdatesQuery,
  TaskRecord,
  TaskStep,
  TaskUpdate,
  TaskUpdatesPage,
  TaskUpdatesQuery,
  AskedTasksPage,
} from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import { aNewTask, commit, LULU, type OpenStore, OTHER_TENANT, TENANT, ZHIWEI } from "./store-builders.ts";

const CAROL = "carol@host" as AgentId;

const WORKING: TaskStep = {
  kind: "status",
  state: "working",
  said: { text: "进行中", parts: [{ data: null }] },
};
const PIECE: TaskStep = {
  kind: "artifact",
  artifact: { artifactId: "a", parts: [{ text: "一" }] },
  append: true,
  lastChunk: false,
};
const ADDED: TaskStep = { kind: "message", messageId: "m7" };

function anUpdate(n: number, step: TaskStep, said: Partial<TaskUpdate> = {}): TaskUpdate {
  return { tenant: TENANT, taskId: "task-1", n, atMs: NOON_MS + n, step, ...said };
}

function updatesOf(store: RelayStore, said: Partial<TaskUpdatesQuery> = {}): Promise<TaskUpdatesPage> {
  return store.tasks.updates({
    tenant: TENANT,
    taskId: "task-1",
    afterN: 0,
    withArtifacts: true,
    limit: 100,
    bytesMax: 1_000_000,
    ...said,
  });
}

function lastOf(store: RelayStore, said: Partial<LastTaskUpdatesQuery> = {}): Promise<TaskUpdatesPage> {
  const query = { tenant: TENANT, taskId: "task-1", untilN: 100, statusOnly: false };
  return store.tasks.lastUpdates({ ...query, limit: 100, bytesMax: 1_000_000, ...said });
}

function numbersOf({ updates }: TaskUpdatesPage): readonly number[] {
  return updates.map(({ n }) => n);
}

export function describeTaskUpdates(open: OpenStore): void {
  describe("steps of tasks", () => {
    it("come back whole and in the order of their numbers, each task and tenant for itself", async () => {
      await using store = await open();
      await commit(store, { taskUpdates: [anUpdate(1, WORKING), anUpdate(2, PIECE), anUpdate(3, ADDED)] });
      await commit(store, { taskUpdates: [anUpdate(1, ADDED, { taskId: "task-2" })] });
      await commit(store, { taskUpdates: [anUpdate(1, ADDED, { tenant: OTHER_TENANT })] });
      const page = await updatesOf(store);
      assert.deepEqual(page, {
        updates: [anUpdate(1, WORKING), anUpdate(2, PIECE), anUpdate(3, ADDED)],
        hasMore: false,
      });
      assert.deepEqual(numbersOf(await updatesOf(store, { taskId: "task-2" })), [1]);
      assert.deepEqual(numbersOf(await updatesOf(store, { taskId: "unknown" })), []);
    });

    it("are read from any of them on, and without the artifacts on request", async () => {
      await using store = await open();
      await commit(store, { taskUpdates: [anUpdate(1, WORKING), anUpdate(2, PIECE), anUpdate(3, ADDED)] });
      assert.deepEqual(numbersOf(await updatesOf(store, { afterN: 1 })), [2, 3]);
      assert.deepEqual(numbersOf(await updatesOf(store, { afterN: 3 })), []);
      assert.deepEqual(numbersOf(await updatesOf(store, { withArtifacts: false })), [1, 3]);
    });

    it("come in pages limited by number and bytes, each with at least one", async () => {
      await using store = await open();
      await commit(store, { taskUpdates: [1, 2, 3].map((n) => anUpdate(n, WORKING)) });
      const two = await updatesOf(store, { limit: 2 });
      assert.deepEqual([numbersOf(two), two.hasMore], [[1, 2], true]);
      const all = await updatesOf(store, { limit: 3 });
      assert.deepEqual([numbersOf(all), all.hasMore], [[1, 2, 3], false]);
      const one = await updatesOf(store, { bytesMax: 1 });
      assert.deepEqual([numbersOf(one), one.hasMore], [[1], true]);
    });

    it("are read from the newest back, without artifacts, in pages as well", async () => {
      await using store = await open();
      const steps = [WORKING, ADDED, PIECE, WORKING, ADDED, PIECE];
      await commit(store, { taskUpdates: steps.map((step, index) => anUpdate(index + 1, step)) });
      assert.deepEqual(numbersOf(await lastOf(store)), [5, 4, 2, 1]);
      assert.deepEqual((await lastOf(store, { limit: 1 })).updates, [anUpdate(5, ADDED)]);
      assert.deepEqual(numbersOf(await lastOf(store, { untilN: 4 })), [4, 2, 1]);
      assert.deepEqual(numbersOf(await lastOf(store, { statusOnly: true })), [4, 1]);
      const two = await lastOf(store, { limit: 2 });
      assert.deepEqual([numbersOf(two), two.hasMore], [[5, 4], true]);
      const one = await lastOf(store, { bytesMax: 1 });
      assert.deepEqual([numbersOf(one), one.hasMore], [[5], true]);
      assert.deepEqual(numbersOf(await lastOf(store, { taskId: "unknown" })), []);
    });

    it("agree with the artifacts that are read together with their task, whatever is written meanwhile", async () => {
      await using store = await open();
      await commit(store, { tasks: [aNewTask({ id: "task-1" })] });
      const writing = (async (): Promise<void> => {
        for (let n = 1; n <= 30; n += 1) {
          const [task] = await store.tasks.get(TENANT, ["task-1"]);
          assert.ok(task);
          const artifact = { artifactId: `a${n}`, parts: [{ text: "一" }] };
          await commit(store, {
            tasks: [{ ...task, updateCount: n }],
            artifacts: [{ tenant: TENANT, taskId: "task-1", artifact }],
          });
        }
      })();
      for (let count = 0; count < 30;) {
        const whole = await store.tasks.withArtifacts(TENANT, "task-1");
        assert.equal(whole?.artifacts.length, whole?.task.updateCount);
        count = whole?.task.updateCount ?? 0;
        await setImmediate();
      }
      await writing;
      assert.equal(await store.tasks.withArtifacts(TENANT, "unknown"), undefined);
    });

    it("wake the readers of their task, also when nothing is written into the journal", async () => {
      await using store = await open();
      using watch = store.feed.watch(taskTopic(TENANT, "task-1"));
      using other = store.feed.watch(taskTopic(TENANT, "task-2"));
      await commit(store, { taskUpdates: [anUpdate(1, PIECE)] });
      assert.equal(await watch.changed({ timeoutMs: 1_000 }), true);
      assert.equal(await other.changed({ timeoutMs: 0 }), false);
    });

    it("are counted on their task, beside its other fields", async () => {
      await using store = await open();
      const task = aNewTask({
        firstMessageId: "m0",
        askedOf: ZHIWEI,
        isPlain: true,
        updateCount: 3,
        updateBytes: 77,
      });
      await commit(store, { tasks: [task] });
      const [stored] = await store.tasks.get(TENANT, [task.id]);
      assert.deepEqual(stored, { ...task, version: 1 });
      const changed = { ...task, isPlain: false, updateCount: 4, updateBytes: 88, version: 1 };
      await commit(store, { tasks: [changed] });
      assert.deepEqual((await store.tasks.get(TENANT, [task.id]))[0], { ...changed, version: 2 });
    });
  });

  describe("tasks that were asked of an agent", () => {
    it("are those of one requester and that agent, the newest change first", async () => {
      await using store = await open();
      await put(store, { id: "1", updatedAtMs: NOON_MS + 2 });
      await put(store, { id: "2", updatedAtMs: NOON_MS + 3 });
      await put(store, { id: "3", updatedAtMs: NOON_MS + 2 });
      await put(store, { id: "4", askedOf: LULU });
      await put(store, { id: "5", askedOf: null });
      await put(store, { id: "6", requester: CAROL });
      await put(store, { id: "7", isPlain: true });
      await put(store, { id: "8", tenant: OTHER_TENANT });
      const { tasks, total, hasMore } = await asked(store);
      assert.deepEqual([tasks.map(({ id }) => id), total, hasMore], [["2", "3", "1"], 3, false]);
    });

    it("are found page by page, by state, by thread and by the time of their last change", async () => {
      await using store = await open();
      await put(store, { id: "1", updatedAtMs: NOON_MS + 1, state: "completed" });
      await put(store, { id: "2", updatedAtMs: NOON_MS + 2, threadId: "上下文" });
      const own = { threadId: "thread_0198-甲", messageId: "msg_0198-甲" };
      await put(store, { id: "3", updatedAtMs: NOON_MS + 3, ...own });
      const first = await asked(store, { limit: 2 });
      assert.deepEqual([first.tasks.map(({ id }) => id), first.hasMore, first.total], [["3", "2"], true, 3]);
      const next = await asked(store, { limit: 2, before: first.tasks[1] });
      assert.deepEqual([next.tasks.map(({ id }) => id), next.hasMore, next.total], [["1"], false, 3]);
      const idsOf = async (said: Partial<AskedTasksQuery>): Promise<readonly string[]> =>
        (await asked(store, said)).tasks.map(({ id }) => id);
      assert.deepEqual(await idsOf({ state: "completed" }), ["1"]);
      assert.deepEqual(await idsOf({ threadId: "上下文" }), ["2"]);
      assert.deepEqual(await idsOf({ threadId: own.threadId }), ["3"]);
      assert.deepEqual(await idsOf({ sinceMs: NOON_MS + 2 }), ["3", "2"]);
    });

    it("are those since a time, also in the count, because the requester's id had another owner before", async () => {
      await using store = await open();
      await put(store, { id: "1", createdAtMs: NOON_MS - 1, updatedAtMs: NOON_MS + 9 });
      await put(store, { id: "2", createdAtMs: NOON_MS });
      const { tasks, total } = await asked(store, { createdSinceMs: NOON_MS });
      assert.deepEqual([tasks.map(({ id }) => id), total], [["2"], 1]);
    });
  });
}

async function put(store: RelayStore, said: Partial<TaskRecord>): Promise<void> {
  const task = aNewTask({ requester: GUEST, askedOf: ZHIWEI, updatedAtMs: NOON_MS, ...said });
  await commit(store, { tenant: task.tenant, tasks: [task] });
}

function asked(store: RelayStore, said: Partial<AskedTasksQuery> = {}): Promise<AskedTasksPage> {
  return store.tasks.asked({
    tenant: TENANT,
    askedOf: ZHIWEI,
    requester: GUEST,
    state: undefined,
    threadId: undefined,
    sinceMs: 0,
    createdSinceMs: 0,
    before: undefined,
    limit: 10,
    ...said,
  });
}
