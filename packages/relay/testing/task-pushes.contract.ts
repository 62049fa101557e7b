import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2A_VERSIONS, GUEST, LIMITS } from "@a2a-relay/protocol";
import { TASK_PUSHES_TOPIC } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  clashOf,
  commit,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  send,
  settle,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";
import { aNewTaskPush, storedTask, storedTaskPush } from "./task-push-records.ts";

const LONG_MS = 20_000;
const FAR_MS = NOON_MS + 1_000_000;

const MANY = { ofOwner: 100, ofReceiver: 100 };

async function dueIds(store: RelayStore, nowMs = NOON_MS, share = MANY): Promise<readonly string[]> {
  return (await store.taskPushes.due(nowMs, share)).due.map(({ id }) => id);
}

export function describeTaskPushes(open: OpenStore): void {
  describe("push configurations of tasks", () => {
    it("are given back with every field, in any script, by their ids", async () => {
      await using store = await open();
      const { id: taskId } = await storedTask(store);
      const said = {
        owner: ZHIWEI,
        url: "https://例子.example/回执?密=1",
        token: "token",
        scheme: "Bearer",
        credentials: "秘密",
        state: "failed",
        reason: "没有回答",
        afterN: 7,
        attempts: 3,
        givenUp: 2,
        nextAtMs: NOON_MS + 5,
        sentAtMs: NOON_MS + 4,
        createdAtMs: NOON_MS - 5,
      } as const;
      const all = A2A_VERSIONS.map((dialect, index) =>
        aNewTaskPush({ ...(index === 0 ? {} : said), taskId, id: `配置-${9 - index}`, dialect }),
      );
      await commit(store, { taskPushes: all });
      const stored = all.toReversed().map((config) => ({ ...config, version: 1 }));
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, taskId), stored);
      assert.deepEqual(await store.taskPushes.get(TENANT, taskId, "配置-9"), stored.at(-1));
      assert.equal(await store.taskPushes.get(TENANT, taskId, "没有"), undefined);
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, "unknown"), []);
    });

    it("are changed by version, so that only one of two writers wins", async () => {
      await using store = await open();
      const { id: taskId } = await storedTask(store);
      const before = await storedTaskPush(store, { taskId });
      const [one, two] = [
        { ...before, afterN: 1, url: "https://one.example/" },
        { ...before, afterN: 2 },
      ];
      const outcomes = await Promise.all([
        clashOf(store, { taskPushes: [one] }),
        clashOf(store, { taskPushes: [two] }),
      ]);
      assert.deepEqual(outcomes.toSorted(), ["none, it was committed", "task_push"]);
      const after = await store.taskPushes.get(TENANT, taskId, before.id);
      assert.deepEqual(after, { ...(outcomes[0] === "task_push" ? two : one), version: 2 });
      assert.equal(await clashOf(store, { taskPushes: [{ ...before, version: 0 }] }), "task_push");
      const unknown = aNewTaskPush({ taskId, version: 1 });
      assert.equal(await clashOf(store, { taskPushes: [unknown] }), "task_push");
    });

    it("are refused for an unknown task, and beyond the limit of their owner, however many come", async () => {
      await using store = await open();
      assert.equal(await clashOf(store, { taskPushes: [aNewTaskPush()] }), "task_push");
      const foreignTask = await storedTask(store, { tenant: OTHER_TENANT });
      const foreign = aNewTaskPush({ taskId: foreignTask.id });
      assert.equal(await clashOf(store, { taskPushes: [foreign] }), "task_push");
      const { id: taskId } = await storedTask(store);
      const other = await storedTask(store);
      await storedTaskPush(store, { taskId: other.id });
      const outcomes = await Promise.all(
        Array.from({ length: LIMITS.pushConfigsOfTaskMax + 3 }, () =>
          clashOf(store, { taskPushes: [aNewTaskPush({ taskId })] }),
        ),
      );
      assert.equal(outcomes.filter((outcome) => outcome === "task_push").length, 3);
      assert.equal((await store.taskPushes.ofTask(TENANT, taskId)).length, LIMITS.pushConfigsOfTaskMax);
      await storedTaskPush(store, { taskId, owner: ZHIWEI });
    });

    it("are removed on request; removing an unknown one is no clash", async () => {
      await using store = await open();
      const { id: taskId } = await storedTask(store);
      const [gone, kept] = [await storedTaskPush(store, { taskId }), await storedTaskPush(store, { taskId })];
      await commit(store, { forgottenTaskPushes: [gone, { ...gone, id: "没有" }] });
      await commit(store, { forgottenTaskPushes: [gone] });
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, taskId), [kept]);
      // The progress of a sender does not bring it back.
      assert.equal(await clashOf(store, { taskPushes: [{ ...gone, afterN: 1 }] }), "task_push");
      await commit(store, { taskPushes: [{ ...gone, version: 0 }] });
      assert.equal((await store.taskPushes.ofTask(TENANT, taskId)).length, 2);
    });

    it("write nothing at all when another caller was faster", async () => {
      await using store = await open();
      const task = await storedTask(store);
      const before = await storedTaskPush(store, { taskId: task.id });
      const changes = {
        tasks: [{ ...task, updateCount: 1 }],
        duePushes: [{ taskId: task.id, atMs: NOON_MS }],
        forgottenTaskPushes: [before],
        taskPushes: [aNewTaskPush({ taskId: task.id, version: 4 })],
      };
      assert.equal(await clashOf(store, changes), "task_push");
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, task.id), [before]);
      assert.deepEqual(await dueIds(store, FAR_MS), []);
      assert.equal((await store.tasks.get(TENANT, [task.id]))[0]?.updateCount, 0);
    });

    it("are removed with their task when it is retired, and with no other", async () => {
      await using store = await open();
      const [gone, kept] = [
        await storedTask(store, { state: "completed" }),
        await storedTask(store, { state: "completed" }),
      ];
      for (const { id: taskId } of [gone, kept]) await storedTaskPush(store, { taskId, nextAtMs: NOON_MS });
      const later = await send(store, { taskId: gone.id });
      for (const id of [gone.messageId, kept.messageId, later.id]) await settle(store, id);
      await store.retention.retireMessages(TENANT, [later.id], NOON_MS);
      assert.equal((await store.taskPushes.ofTask(TENANT, gone.id)).length, 1);
      await store.retention.retireMessages(TENANT, [gone.messageId], NOON_MS);
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, gone.id), []);
      assert.deepEqual(
        (await store.taskPushes.due(NOON_MS, MANY)).due.map(({ taskId }) => taskId),
        [kept.id],
      );
    });
  });
  describeDue(open);
}

function describeDue(open: OpenStore): void {
  describe("due push configurations of tasks", () => {
    it("are active ones whose time has come to the very millisecond, the longest due first", async () => {
      await using store = await open();
      const { id: taskId } = await storedTask(store);
      const late = await storedTaskPush(store, { taskId, nextAtMs: NOON_MS });
      const early = await storedTaskPush(store, { taskId, nextAtMs: NOON_MS - 10 });
      const future = await storedTaskPush(store, { taskId, nextAtMs: NOON_MS + 1 });
      await storedTaskPush(store, { taskId });
      await storedTaskPush(store, { taskId, nextAtMs: NOON_MS, state: "ended" });
      await storedTaskPush(store, { taskId, nextAtMs: NOON_MS, state: "failed" });
      assert.deepEqual(await dueIds(store), [early.id, late.id]);
      assert.deepEqual(await dueIds(store, NOON_MS + 1), [early.id, late.id, future.id]);
      const share = { ofOwner: 1, ofReceiver: 1 };
      assert.deepEqual(await store.taskPushes.due(NOON_MS, share), { due: [early], nextAtMs: NOON_MS + 1 });
      assert.equal((await store.taskPushes.due(NOON_MS - 11, share)).nextAtMs, NOON_MS - 10);
      assert.equal((await store.taskPushes.due(FAR_MS, share)).nextAtMs, Infinity);
      await commit(store, { taskPushes: [{ ...early, nextAtMs: null }] });
      assert.deepEqual(await dueIds(store), [late.id]);
    });

    it("are limited for each owner in each tenant, so that no owner waits behind another", async () => {
      await using store = await open();
      const expected: string[] = [];
      for (const tenant of [TENANT, OTHER_TENANT, "工作室"]) {
        const { id: taskId } = await storedTask(store, { tenant });
        for (const owner of [LULU, ZHIWEI, GUEST]) {
          const made: string[] = [];
          for (const nextAtMs of [3, 1, 2]) {
            made.push((await storedTaskPush(store, { tenant, taskId, owner, nextAtMs })).id);
          }
          expected.push(...made.slice(1));
        }
      }
      const ids = await dueIds(store, NOON_MS, { ofOwner: 2, ofReceiver: 2 });
      assert.deepEqual(ids.toSorted(), expected.toSorted());
    });

    it("are limited for each receiver, so that a slow one does not hide the others", async () => {
      await using store = await open();
      const expected: string[] = [];
      for (let at = 0; at < 30; at += 1) {
        const { id: taskId } = await storedTask(store);
        const url = `https://hanging.example:8443/${at}`;
        const { id } = await storedTaskPush(store, { taskId, url, nextAtMs: at });
        if (at < 2) expected.push(id);
      }
      const { id: taskId } = await storedTask(store);
      for (const url of [
        "https://hanging.example/",
        "http://hanging.example:8443/",
        "https://lulu.example/",
      ]) {
        expected.push((await storedTaskPush(store, { taskId, url, nextAtMs: 100 + expected.length })).id);
      }
      assert.deepEqual(await dueIds(store, NOON_MS, { ofOwner: 5, ofReceiver: 2 }), expected);
      // The new URL counts.
      const moved = await store.taskPushes.get(TENANT, taskId, expected.at(-1) ?? "");
      assert.ok(moved);
      await commit(store, { taskPushes: [{ ...moved, url: "https://hanging.example:8443/" }] });
      assert.deepEqual(await dueIds(store, NOON_MS, { ofOwner: 5, ofReceiver: 2 }), expected.slice(0, -1));
    });

    it("become due when a commit says so, and get a new version", async () => {
      await using store = await open();
      const [task, other] = [await storedTask(store), await storedTask(store)];
      const resting = await storedTaskPush(store, { taskId: task.id });
      const waiting = await storedTaskPush(store, { taskId: task.id, nextAtMs: NOON_MS + 500 });
      const ended = await storedTaskPush(store, { taskId: task.id, state: "ended" });
      const untouched = await storedTaskPush(store, { taskId: other.id });
      await commit(store, { duePushes: [{ taskId: task.id, atMs: NOON_MS + 7 }] });
      const after = await store.taskPushes.ofTask(TENANT, task.id);
      assert.deepEqual(after, [
        { ...resting, nextAtMs: NOON_MS + 7, version: resting.version + 1 },
        // A due time that is set already stays.
        { ...waiting, version: waiting.version + 1 },
        ended,
      ]);
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, other.id), [untouched]);
      assert.deepEqual(await dueIds(store, NOON_MS + 7), [resting.id]);
      assert.equal(await clashOf(store, { taskPushes: [resting] }), "task_push");
    });

    it("wake the readers of their topic when one gets a due time, and not otherwise", async () => {
      await using store = await open();
      const [task, other] = [await storedTask(store), await storedTask(store)];
      using watch = store.feed.watch(TASK_PUSHES_TOPIC);
      const woken = (): Promise<boolean> => watch.changed({ timeoutMs: LONG_MS });
      const isQuiet = async (): Promise<boolean> => !(await watch.changed({ timeoutMs: 0 }));
      const config = await storedTaskPush(store, { taskId: task.id, nextAtMs: NOON_MS });
      assert.ok(await woken());
      await commit(store, { taskPushes: [{ ...config, nextAtMs: null }] });
      await commit(store, { duePushes: [{ taskId: other.id, atMs: NOON_MS }] });
      assert.equal(
        await clashOf(store, { taskPushes: [{ ...config, nextAtMs: 1, version: 9 }] }),
        "task_push",
      );
      assert.ok(await isQuiet());
      await commit(store, { duePushes: [{ taskId: task.id, atMs: NOON_MS }] });
      assert.ok(await woken());
      const due = await store.taskPushes.get(TENANT, task.id, config.id);
      assert.ok(due);
      // An announced attempt is under way.
      await commit(store, { taskPushes: [{ ...due, sentAtMs: NOON_MS }] });
      await commit(store, { taskPushes: [{ ...due, version: due.version + 1, state: "ended" }] });
      await commit(store, { duePushes: [{ taskId: task.id, atMs: NOON_MS }] });
      assert.ok(await isQuiet());
    });

    it("are kept to their tenant", async () => {
      await using store = await open();
      const said = { id: "同一个" };
      for (const tenant of [TENANT, OTHER_TENANT]) {
        await storedTask(store, { tenant, ...said });
        await storedTaskPush(store, { tenant, taskId: said.id, id: "配置", reason: tenant });
      }
      const [task] = await store.tasks.get(OTHER_TENANT, [said.id]);
      assert.ok(task);
      const before = await store.taskPushes.ofTask(TENANT, said.id);
      await commit(store, { tenant: OTHER_TENANT, duePushes: [{ taskId: task.id, atMs: NOON_MS }] });
      const gone = { tenant: OTHER_TENANT, taskId: said.id, id: "配置" };
      assert.equal((await store.taskPushes.due(FAR_MS, MANY)).due[0]?.reason, OTHER_TENANT);
      await commit(store, { tenant: OTHER_TENANT, forgottenTaskPushes: [gone] });
      assert.deepEqual(await store.taskPushes.ofTask(TENANT, said.id), before);
      assert.equal(before[0]?.reason, TENANT);
      assert.deepEqual(await store.taskPushes.ofTask(OTHER_TENANT, said.id), []);
    });
  });
}
