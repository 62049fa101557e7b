import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { REMOTE_TASKS_TOPIC } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { RemoteTask } from "../src/core/ports/remote-tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewAgent,
  aNewTask,
  clashOf,
  commit,
  LULU,
  newId,
  type OpenStore,
  OTHER_TENANT,
  send,
  settle,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const LONG_MS = 30_000;
const FAR = "https://agent.example/%E8%BF%9C" as AgentId;

export function aRemoteTask(said: Partial<RemoteTask> = {}): RemoteTask {
  return {
    tenant: TENANT,
    taskId: newId("task"),
    agentId: ZHIWEI,
    requester: LULU,
    threadId: "话题",
    url: "https://agent.example/rpc",
    binding: "JSONRPC",
    dialect: "1.0",
    a2aTenant: null,
    remoteTaskId: "他们的任务",
    remoteContextId: null,
    answer: null,
    statusDigest: null,
    changedAtMs: NOON_MS,
    nextAtMs: NOON_MS,
    failures: 0,
    misses: 0,
    version: 0,
    ...said,
  };
}

/** With the task that it is about. */
async function stored(store: RelayStore, said: Partial<RemoteTask> = {}): Promise<RemoteTask> {
  const remote = aRemoteTask(said);
  const { tenant, taskId: id } = remote;
  await commit(store, { tenant, tasks: [aNewTask({ tenant, id })], remoteTasks: [remote] });
  const found = await store.remoteTasks.get(tenant, id);
  assert.ok(found);
  return found;
}

export function describeRemoteTasks(open: OpenStore): void {
  describe("tasks that remote agents work on", () => {
    it("are given back with every field, in any script", async () => {
      await using store = await open();
      const full = await stored(store, {
        agentId: FAR,
        requester: ZHIWEI,
        binding: "HTTP+JSON",
        dialect: "0.3",
        a2aTenant: "租户",
        remoteContextId: "他们的话题",
        answer: { refused: "不做" },
        statusDigest: "摘要",
        failures: 3,
        misses: 1,
        nextAtMs: null,
      });
      const { version, ...fields } = full;
      assert.equal(version, 1);
      assert.deepEqual(await store.remoteTasks.get(TENANT, full.taskId), full);
      assert.deepEqual(fields.answer, { refused: "不做" });
      assert.deepEqual([fields.agentId, fields.requester], [FAR, ZHIWEI]);
      assert.deepEqual([fields.dialect, fields.a2aTenant], ["0.3", "租户"]);
      assert.equal(await store.remoteTasks.get(OTHER_TENANT, full.taskId), undefined);
      assert.equal(await store.remoteTasks.get(TENANT, "unknown"), undefined);
    });

    it("are changed by version, and a stale change is refused", async () => {
      await using store = await open();
      const before = await stored(store);
      await commit(store, { remoteTasks: [{ ...before, nextAtMs: null, remoteTaskId: "另一个" }] });
      const changed = { ...before, nextAtMs: null, remoteTaskId: "另一个", version: 2 };
      assert.deepEqual(await store.remoteTasks.get(TENANT, before.taskId), changed);
      assert.equal(await clashOf(store, { remoteTasks: [before] }), "remote_task");
      assert.equal(await clashOf(store, { remoteTasks: [{ ...before, version: 0 }] }), "remote_task");
    });

    it("belong to a stored task, and are removed with it", async () => {
      await using store = await open();
      assert.equal(await clashOf(store, { remoteTasks: [aRemoteTask()] }), "remote_task");
      const id = newId("task");
      const message = await send(store, { taskId: id });
      const task = aNewTask({ id, messageId: message.id, state: "completed" });
      await commit(store, { tasks: [task], remoteTasks: [aRemoteTask({ taskId: id })] });
      await settle(store, message.id);
      await store.retention.retireMessages(TENANT, [message.id], NOON_MS);
      assert.equal((await store.tasks.get(TENANT, [id]))[0], undefined);
      assert.equal(await store.remoteTasks.get(TENANT, id), undefined);
    });

    it("are listed by their time, the first ones of every tenant, however many another one has", async () => {
      await using store = await open();
      const late = await stored(store, { nextAtMs: NOON_MS + 2 });
      const first = await stored(store, { nextAtMs: NOON_MS - 1, failures: 2 });
      const second = await stored(store, { nextAtMs: NOON_MS });
      const others = await stored(store, { nextAtMs: NOON_MS + 9, tenant: OTHER_TENANT });
      await stored(store, { nextAtMs: null });
      const timed = async (limit: number): Promise<readonly string[]> =>
        (await store.remoteTasks.timed({ limit, fullOrigins: new Map() }))
          .toSorted((one, other) => one.nextAtMs - other.nextAtMs)
          .map(({ taskId }) => taskId);
      const ids = [first, second, late, others].map(({ taskId }) => taskId);
      assert.deepEqual(await timed(10), ids);
      assert.deepEqual(await timed(1), [first.taskId, others.taskId]);
      const listed = await store.remoteTasks.timed({ limit: 1, fullOrigins: new Map() });
      const shown = listed.find(({ tenant }) => tenant === TENANT);
      assert.deepEqual(shown, {
        tenant: TENANT,
        taskId: first.taskId,
        origin: "https://agent.example",
        nextAtMs: NOON_MS - 1,
        failures: 2,
      });
    });

    it("are listed without those of a full origin of that tenant", async () => {
      await using store = await open();
      const busy = { url: "https://busy.example:8443/一", nextAtMs: NOON_MS - 5 };
      for (let count = 0; count < 5; count += 1) await stored(store, busy);
      const other = await stored(store);
      const others = await stored(store, { ...busy, tenant: OTHER_TENANT });
      const moved = await stored(store, busy);
      await commit(store, { remoteTasks: [{ ...moved, url: "https://new.example/" }] });
      const fullOrigins = new Map([[TENANT, ["https://busy.example:8443", "https://other.example"]]]);
      const timed = await store.remoteTasks.timed({ limit: 2, fullOrigins });
      assert.deepEqual(
        timed.map(({ taskId }) => taskId).toSorted(),
        [other.taskId, others.taskId, moved.taskId].toSorted(),
      );
    });

    it("have the context id of a thread, from the newest task that has one", async () => {
      await using store = await open();
      const url = "https://agent.example/rpc";
      const whose = { tenant: TENANT, agentId: ZHIWEI, requester: LULU, sinceMs: 0 };
      const query = { ...whose, threadId: "话题", url };
      assert.equal(await store.remoteTasks.contextId(query), undefined);
      await stored(store, { remoteContextId: "旧" });
      await stored(store, { remoteContextId: "新" });
      await stored(store, { remoteContextId: null });
      assert.equal(await store.remoteTasks.contextId(query), "新");
      const others = [
        { tenant: OTHER_TENANT },
        { agentId: LULU },
        { requester: ZHIWEI },
        { sinceMs: NOON_MS + 1 },
        { threadId: "别的" },
        { url: "https://b.example/" },
      ];
      for (const other of others)
        assert.equal(await store.remoteTasks.contextId({ ...query, ...other }), undefined);
    });

    it("wake the readers of their topic for answers, and for nothing else", async () => {
      await using store = await open();
      const before = await stored(store);
      using watch = store.feed.watch(REMOTE_TASKS_TOPIC, { isOwn: true });
      await commit(store, { remoteTasks: [{ ...before, nextAtMs: NOON_MS + 1 }] });
      assert.equal(await watch.changed({ timeoutMs: 0 }), false);
      await commit(store, { remoteTasks: [{ ...before, version: 2, answer: { refused: "不" } }] });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
    });
  });

  describe("agents whose id is a URL", () => {
    it("are counted for each tenant while they are registered", async () => {
      await using store = await open();
      const ids = ["http://a.example/", "https://b.example/", "https", "http:c", "httpz@host", "a@https"];
      const agents = ids.map((id) => aNewAgent({ id: id as AgentId }));
      await commit(store, { agents });
      assert.equal((await store.agents.count(TENANT)).remote, 2);
      assert.equal((await store.agents.count(OTHER_TENANT)).remote, 0);
      const gone = (await store.agents.get(TENANT, "https://b.example/" as AgentId))?.agent;
      assert.ok(gone);
      await commit(store, { agents: [{ ...gone, removedAtMs: NOON_MS }] });
      assert.equal((await store.agents.count(TENANT)).remote, 1);
    });
  });
}
