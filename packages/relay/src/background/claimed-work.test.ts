import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, type CoreOnMemory, LULU } from "../../testing/core-on-memory.ts";
import { aRemoteTask, remoteCore, saying } from "../../testing/fake-agent.ts";
import { anAnswer, type FakeOutside } from "../../testing/fake-outside.ts";
import { pushingCore } from "../../testing/pushing-core.ts";
import { taskPushingCore } from "../../testing/task-pushing-core.ts";
import { DEFAULT_TENANT } from "../core/access/principal.ts";
import { CLAIM_MS, CLAIM_RETRY_MS, ClaimLost, workUnit } from "../core/mechanisms/own-claims.ts";
import type { RelayCore } from "../core/relay-core.ts";
import { startBackgroundWork } from "./background-work.ts";
import type { Pause } from "./loops.ts";
import { Pusher } from "./pusher.ts";
import { RemotePoller } from "./remote-poller.ts";
import { TaskPusher } from "./task-pusher.ts";

const TICKS_MAX = 20_000;

function report(reason: unknown): void {
  assert.fail(String(reason));
}

async function until(core: CoreOnMemory, isSo: () => Promise<boolean>): Promise<void> {
  for (let tick = 0; tick < TICKS_MAX; tick += 1) {
    if (await isSo()) return;
    await core.clock.nextTurn();
  }
  assert.fail("it never happened");
}

/** Holds the answers back until the test opens it. */
function gated({ outside }: { readonly outside: FakeOutside }): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  outside.receiver = async () => {
    await promise;
    return anAnswer(200);
  };
  return resolve;
}

/** Says when a poller has found that another core holds its work. The wait then lasts until the poller stops. */
function refusals(): { readonly pause: Pause; readonly refused: Promise<void> } {
  const { promise: refused, resolve } = Promise.withResolvers<void>();
  const pause: Pause = async (ms, signal) => {
    if (ms !== CLAIM_RETRY_MS || signal.aborted) return;
    resolve();
    const { promise, resolve: end } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => end(), { once: true });
    await promise;
  };
  return { pause, refused };
}

describe("with two cores on one store", () => {
  it("a push is sent once although both search for work", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const ids: string[] = [];
    await using _one = new Pusher(core, report);
    await using _two = new Pusher(core.beside(), report);
    core.outside.receiver = async () => {
      for (let turn = 0; turn < 5; turn += 1) await core.clock.nextTurn();
      return anAnswer(200);
    };
    for (let round = 0; round < 5; round += 1) {
      for (let count = 0; count < 6; count += 1) ids.push((await core.send()).receipt.message_id);
      const last = ids.at(-1) ?? "";
      const isDelivered = async (): Promise<boolean> =>
        (await core.store.pushes.get(DEFAULT_TENANT, [last]))[0]?.state === "delivered";
      await until(core, isDelivered);
    }
    await until(
      core,
      async () => (await core.store.pushes.countPending(DEFAULT_TENANT, core.zhiwei.agentId)) === 0,
    );
    assert.deepEqual(core.outside.ids.toSorted(), ids.toSorted());
  });

  it("a task push is sent once although both search for work", { timeout: 30_000 }, async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    const open = gated(core);
    await using _one = new TaskPusher(core, report);
    await core.works(taskId, "甲");
    await core.outside.arrived(1);
    const { pause, refused } = refusals();
    await using _two = new TaskPusher(core.beside(), report, pause);
    await refused;
    open();
    await until(core, async () => (await core.config(taskId)).afterN === 1);
    assert.equal(core.outside.requests.length, 1);
  });

  it("a remote task is polled once although both search for work", { timeout: 30_000 }, async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    core.agent.get = async () => {
      asked.resolve();
      await gate.promise;
      return saying("COMPLETED", "好了");
    };
    core.clock.advance(250);
    await using _one = new RemotePoller(core, report);
    await asked.promise;
    const { pause, refused } = refusals();
    await using _two = new RemotePoller(core.beside(), report, pause);
    await refused;
    gate.resolve();
    await until(core, async () => (await core.task(taskId)).state === "completed");
    assert.equal(core.agent.calledFor("GetTask").length, 1);
  });

  it("a remote task that the other has just polled waits for its time", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.clock.advance(250);
    assert.equal(await core.poll(), 1);
    const claim = await core.claim(workUnit("remote-task", DEFAULT_TENANT, taskId));
    const { signal } = new AbortController();
    await core.remoteWork.poll({ tenant: DEFAULT_TENANT, taskId }, { claim, signal });
    assert.equal(core.agent.calledFor("GetTask").length, 1);
  });

  it("a sweep is run by one at a time", { timeout: 30_000 }, async () => {
    await using core = await coreOnMemory();
    let underWay = 0;
    const most: number[] = [];
    const owners = new Set<string>();
    const sweeping = (owner: string): RelayCore => {
      const step = async (): Promise<{ readonly more: boolean }> => {
        owners.add(owner);
        underWay += 1;
        most.push(underWay);
        for (let turn = 0; turn < 20; turn += 1) await core.clock.nextTurn();
        underWay -= 1;
        return { more: false };
      };
      return { ...core.beside(), sweep: { step } as unknown as RelayCore["sweep"] };
    };
    const settings = { sweepIntervalMs: 1, anchorIntervalMs: 60_000, retryScheduler: undefined };
    await using _one = startBackgroundWork(sweeping("甲"), settings, report);
    await using _two = startBackgroundWork(sweeping("乙"), settings, report);
    await until(core, async () => most.length >= 20 && owners.size === 2);
    assert.equal(Math.max(...most), 1);
  });

  it("one that stops leaves its work to the other at once", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    core.outside.receiver = core.outside.hanging;
    const { receipt } = await core.send();
    {
      await using _ = new Pusher(core, report);
      await core.outside.arrived(1);
    }
    core.outside.receiver = () => anAnswer(200);
    await using _ = new Pusher(core.beside(), report);
    await until(core, async () => (await core.pushedMessage(receipt.message_id)).push.state === "delivered");
  });
});

describe("a core that stalls after it announced a request", () => {
  it("cannot record the webhook, which the other core repeats", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    core.outside.receiver = async () => {
      await gates[core.outside.requests.length - 1]?.promise;
      return anAnswer(200);
    };
    const { receipt } = await core.send();
    const reported: unknown[] = [];
    const noPause: Pause = async () => undefined;
    await using _one = new Pusher(core, (reason) => reported.push(reason), noPause);
    await core.outside.arrived(1);
    core.clock.advance(CLAIM_MS);
    await using _two = new Pusher(core.beside(), report);
    await core.outside.arrived(2);
    gates[0]?.resolve();
    await until(core, async () => reported.length > 0);
    for (let turn = 0; turn < 100; turn += 1) await core.clock.nextTurn();
    assert.deepEqual([reported.length, reported[0] instanceof ClaimLost], [1, true]);
    assert.deepEqual((await core.pushedMessage(receipt.message_id)).push.attempts, []);
    gates[1]?.resolve();
    await until(core, async () => (await core.pushedMessage(receipt.message_id)).push.state === "delivered");
    assert.equal((await core.pushedMessage(receipt.message_id)).push.attempts.length, 1);
    assert.deepEqual(core.outside.ids, [receipt.message_id, receipt.message_id]);
  });

  it("cannot record the A2A request, whose outcome is unknown", { timeout: 30_000 }, async () => {
    await using core = await remoteCore();
    const [sent, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    core.agent.send = async () => {
      sent.resolve();
      await gate.promise;
      return { task: aRemoteTask() };
    };
    const { messageId, taskId } = await core.ask();
    const pushOf = async () => (await core.messages.get(core.operator, messageId)).push;
    {
      await using _one = new Pusher(core, report);
      await sent.promise;
      core.clock.advance(CLAIM_MS);
      await using _two = new Pusher(core.beside(), report);
      await until(core, async () => (await pushOf())?.state === "failed");
      gate.resolve();
    }
    assert.equal(core.agent.calledFor("SendMessage").length, 1);
    const push = await pushOf();
    assert.deepEqual([push?.state, push?.attempts.length], ["failed", 1]);
    assert.match(push?.reason ?? "", /may have arrived/);
    assert.equal(await core.store.remoteTasks.get(DEFAULT_TENANT, taskId), undefined);
  });

  it("cannot record the task push, which the other core repeats", { timeout: 30_000 }, async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "甲");
    const ended = await core.attempt(await core.config(taskId));
    assert.ok(ended !== "idle");
    assert.equal((await core.config(taskId)).sentAtMs, core.clock.nowMs());
    core.clock.advance(CLAIM_MS);
    const open = gated(core);
    await using _ = new TaskPusher(core.beside(), report);
    await core.outside.arrived(2);
    await assert.rejects(core.taskPushDelivery.record(ended), ClaimLost);
    assert.equal((await core.config(taskId)).afterN, 0);
    open();
    await until(core, async () => (await core.config(taskId)).afterN === 1);
    assert.deepEqual([(await core.config(taskId)).sentAtMs, core.outside.requests.length], [null, 2]);
  });

  it("cannot repeat the question of a remote agent that the other core has recorded", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    core.agent.get = async () => {
      asked.resolve();
      await gate.promise;
      return saying("INPUT_REQUIRED", "哪一个？");
    };
    core.clock.advance(250);
    const key = { tenant: DEFAULT_TENANT, taskId };
    const unit = workUnit("remote-task", DEFAULT_TENANT, taskId);
    const { signal } = new AbortController();
    const stalled = core.remoteWork.poll(key, { claim: await core.claim(unit), signal });
    await asked.promise;
    core.clock.advance(CLAIM_MS);
    const other = core.beside();
    const [claim] = await other.claims.take([unit]);
    assert.ok(claim);
    core.agent.get = () => saying("INPUT_REQUIRED", "哪一个？");
    await other.remoteWork.poll(key, { claim, signal });
    gate.resolve();
    await assert.rejects(stalled, ClaimLost);
    assert.deepEqual(
      (await core.inboxOf(LULU)).map(({ message }) => message.body),
      ["哪一个？"],
    );
  });

  it("sends nothing more once its claim is lost", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.enqueue();
    const endpoint = workUnit("endpoint", DEFAULT_TENANT, core.zhiwei.agentId);
    const claim = await core.claim(endpoint);
    core.clock.advance(CLAIM_MS);
    await core.beside().claims.take([endpoint]);
    const key = { tenant: DEFAULT_TENANT, agentId: core.zhiwei.agentId };
    const { signal } = new AbortController();
    await assert.rejects(core.pushDelivery.attempt(key, receipt.message_id, { claim, signal }), ClaimLost);
    await core.send();
    await assert.rejects(core.pushDelivery.enqueue(key, claim), ClaimLost);
    assert.equal(core.outside.requests.length, 0);
  });
});
