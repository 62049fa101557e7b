import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ZHIWEI } from "../../testing/core-on-memory.ts";
import { anAnswer } from "../../testing/fake-outside.ts";
import { FakePause } from "../../testing/fake-pause.ts";
import { type PushingCore, pushingCore } from "../../testing/pushing-core.ts";
import { DEFAULT_TENANT } from "../core/access/principal.ts";
import { Pusher } from "./pusher.ts";

const TICKS_MAX = 20_000;

function report(reason: unknown): void {
  assert.fail(String(reason));
}

async function until(core: PushingCore, isSo: () => Promise<boolean>): Promise<void> {
  for (let tick = 0; tick < TICKS_MAX; tick += 1) {
    if (await isSo()) return;
    await core.clock.nextTurn();
  }
  assert.fail("it never happened");
}

/** A disk that refuses attempts while it is full. */
function fullDisk(core: PushingCore): { isFull: boolean } {
  const disk = { isFull: true };
  const commit = core.store.commit.bind(core.store);
  core.store.commit = async (changes) => {
    if (disk.isFull && changes.pushAttempts !== undefined) throw new Error("the disk is full");
    return commit(changes);
  };
  return disk;
}

describe("a push that cannot be recorded", () => {
  it("is not sent again, and nothing else is, until it is recorded", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const disk = fullDisk(core);
    disk.isFull = false;
    const refused = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reports = 0;
    const backoff = new FakePause();
    await using _ = new Pusher(core, () => refused[reports++]?.resolve(), backoff.pause);
    // After one answer the pusher makes two requests at once.
    const ids = [(await core.send()).receipt.message_id];
    await core.outside.arrived(1);
    await until(core, async () => (await core.pushedMessage(ids[0] ?? "")).push.state === "delivered");
    disk.isFull = true;
    ids.push((await core.send()).receipt.message_id);
    await refused[0]?.promise;
    const { receipt } = await core.send();
    ids.push(receipt.message_id);
    await until(
      core,
      async () => (await core.store.pushes.get(DEFAULT_TENANT, [receipt.message_id]))[0] !== undefined,
    );
    for (let tick = 0; tick < 100; tick += 1) await core.clock.nextTurn();
    assert.deepEqual(core.outside.ids, ids.slice(0, 2));
    backoff.end();
    await refused[1]?.promise;
    assert.deepEqual(core.outside.ids, ids.slice(0, 2));
    disk.isFull = false;
    backoff.end();
    await core.outside.arrived(3);
    assert.deepEqual(core.outside.ids, ids);
    const { push } = await core.pushedMessage(ids[1] ?? "");
    assert.deepEqual([push.state, push.attempts.length], ["delivered", 1]);
  });

  it("is recorded when the relay stops, if possible", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const disk = fullDisk(core);
    const { receipt } = await core.send();
    {
      const refused = Promise.withResolvers<void>();
      await using _ = new Pusher(core, () => refused.resolve());
      await refused.promise;
      disk.isFull = false;
    }
    assert.equal((await core.pushedMessage(receipt.message_id)).push.state, "delivered");
    assert.equal(core.outside.requests.length, 1);
  });
});

describe("a pending push of a disabled endpoint", () => {
  it("is dropped by its pusher, in pages", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const messages = Array.from({ length: 150 }, (_, index) => ({
      id: `信-${index}`,
      from: "lulu",
      to: ZHIWEI,
      body: "你好",
    }));
    await core.messages.sendBatch(core.operator, { messages });
    await core.enqueue();
    core.outside.receiver = () => anAnswer(410);
    await using _ = new Pusher(core, report);
    await until(core, async () => {
      const { state, pending } = await core.pushes.endpoint(core.operator, ZHIWEI, {});
      return state === "disabled" && pending === 0;
    });
    assert.equal(core.outside.requests.length, 1);
    const { push } = await core.pushedMessage("信-149");
    assert.deepEqual([push.state, push.reason], ["dropped", "the endpoint answered 410: it is gone"]);
  });

  it("is dropped by the next process if the previous one stopped before", { timeout: 30_000 }, async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.enqueue();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: null });
    assert.equal((await core.pushedMessage(receipt.message_id)).push.state, "pending");
    await using _ = new Pusher(core, report);
    await until(core, async () => (await core.pushedMessage(receipt.message_id)).push.state === "dropped");
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: "webhook" });
    await core.outside.arrived(1);
  });
});
