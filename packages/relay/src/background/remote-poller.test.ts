import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { AGENT, type RemoteCore, remoteCore, saying } from "../../testing/fake-agent.ts";
import { aNewTask } from "../../testing/store-builders.ts";
import { DEFAULT_TENANT } from "../core/access/principal.ts";
import { taskTopic } from "../core/ports/change-feed.ts";
import { RemotePoller } from "./remote-poller.ts";

const LONG_MS = 20_000;

function fail(reason: unknown): never {
  throw reason;
}

/** Resolves when the task is completed after `act`. */
async function completed(core: RemoteCore, taskId: string, act: () => Promise<unknown>): Promise<void> {
  using watch = core.store.feed.watch(taskTopic(DEFAULT_TENANT, taskId), { isOwn: true });
  await act();
  while ((await core.task(taskId)).state !== "completed") {
    assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true, "it was never completed");
  }
}

describe("the remote poller", () => {
  it("records an answer at once", async () => {
    await using core = await remoteCore();
    await using _poller = new RemotePoller(core.remoteWork, fail);
    core.agent.send = () => ({ task: saying("COMPLETED", "好了") });
    const { taskId } = await core.ask();
    await completed(core, taskId, async () => assert.deepEqual(await core.push(), ["delivered"]));
  });

  it("continues where another one was stopped during a poll", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.clock.advance(250);
    const { calls, outside } = core.agent;
    const { receiver } = outside;
    outside.receiver = outside.hanging;
    const before = outside.requests.length;
    {
      await using _poller = new RemotePoller(core.remoteWork, fail);
      await outside.arrived(before + 1);
    }
    assert.deepEqual((await core.store.remoteTasks.get(DEFAULT_TENANT, taskId))?.failures, 0);
    outside.receiver = receiver;
    core.agent.get = () => saying("COMPLETED", "好了");
    await using _poller = new RemotePoller(core.remoteWork, fail);
    await completed(core, taskId, async () => undefined);
    assert.equal(calls.filter(({ method }) => method === "SendMessage").length, 1);
  });

  it("reports a failure of the relay itself, and polls again", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.clock.advance(250);
    let polls = 0;
    core.agent.get = () => {
      polls += 1;
      if (polls === 1) throw new Error("今天不行");
      return saying("COMPLETED", "好了");
    };
    const reported: unknown[] = [];
    const report = (reason: unknown): void => {
      reported.push(reason);
      core.clock.advance(1_000);
    };
    await using _poller = new RemotePoller(core.remoteWork, report, async () => undefined);
    await completed(core, taskId, async () => undefined);
    assert.equal(reported.length, 1);
  });

  it("polls one agent while another one hangs with more tasks than there are permits", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const row = await core.store.remoteTasks.get(DEFAULT_TENANT, taskId);
    assert.ok(row);
    for (let n = 0; n < LIMITS.remotePollsMax + 1; n += 1) {
      const task = aNewTask({ tenant: DEFAULT_TENANT, id: `挂${n}`, assignee: AGENT, state: "working" });
      const hung = { ...row, taskId: task.id, url: "https://hanging.example/", nextAtMs: 0, version: 0 };
      await core.store.commit({ tenant: DEFAULT_TENANT, tasks: [task], remoteTasks: [hung], events: [] });
    }
    const { outside } = core.agent;
    const { receiver } = outside;
    outside.receiver = (request) =>
      request.url.startsWith("https://hanging.example/") ? outside.hanging(request) : receiver(request);
    core.agent.get = () => saying("COMPLETED", "好了");
    core.clock.advance(250);
    await using _poller = new RemotePoller(core.remoteWork, fail);
    await completed(core, taskId, async () => undefined);
  });

  it("ends when its store closes", async () => {
    const core = await remoteCore();
    const reported: unknown[] = [];
    const poller = new RemotePoller(core.remoteWork, (reason) => reported.push(reason));
    await core.clock.nextTurn();
    await core[Symbol.asyncDispose]();
    await poller[Symbol.asyncDispose]();
    assert.deepEqual(reported, []);
  });
});
