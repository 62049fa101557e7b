import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { type PushingCore, pushingCore } from "../../../testing/pushing-core.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import type { EndedAttempt } from "./push-delivery.ts";
import type { PushEndpoint } from "../ports/pushes.ts";

const NEW_HOOK = "https://new.example/收信";
const OFFSETS_MS = [0, 5_000, 25_000, 90_000];

async function endpointOf(core: PushingCore): Promise<PushEndpoint> {
  const endpoint = await core.store.endpoints.get(DEFAULT_TENANT, ZHIWEI);
  assert.ok(endpoint);
  return endpoint;
}

/** An attempt that was answered with this status and is not recorded yet. */
async function answered(core: PushingCore, messageId: string, status: number): Promise<EndedAttempt> {
  await core.enqueue();
  core.outside.receiver = () => anAnswer(status, { headers: { "retry-after": "600" } });
  const ended = await core.attempt(messageId);
  assert.ok(typeof ended !== "string", "nothing was sent");
  core.outside.receiver = () => anAnswer(200);
  return ended;
}

/** All attempts but the last have failed, and the last is due. */
async function triedButOnce(core: PushingCore): Promise<string> {
  const { receipt } = await core.send();
  core.outside.receiver = () => anAnswer(500);
  for (const offsetMs of OFFSETS_MS.slice(0, -1)) {
    core.clock.advance(offsetMs);
    assert.deepEqual(await core.push(), ["failed"]);
  }
  core.clock.advance(OFFSETS_MS.at(-1) ?? 0);
  return receipt.message_id;
}

describe("the answer of an endpoint that has changed meanwhile", () => {
  for (const status of [410, 500, 429, 400]) {
    it(`(${status}) does not count for the new one, which is called on schedule`, async () => {
      await using core = await pushingCore();
      const { receipt } = await core.send();
      const ended = await answered(core, receipt.message_id, status);
      await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: NEW_HOOK });
      const before = await endpointOf(core);
      await core.pushDelivery.record(ended);
      assert.deepEqual(await endpointOf(core), before);
      const { push } = await core.pushedMessage(receipt.message_id);
      assert.deepEqual([push.state, push.attempts.length], ["pending", 1]);
      assert.equal(await core.waitMs(), 5_000, "a Retry-After of the old one is not for the new one");
      core.clock.advance(5_000);
      assert.deepEqual(await core.push(), ["delivered"]);
      assert.equal(core.outside.last.url, NEW_HOOK);
    });
  }

  it("(200) does not close the circuit of the new one, and is no heartbeat of a new owner", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    const ended = await answered(core, receipt.message_id, 200);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: NEW_HOOK });
    const troubled = { ...(await endpointOf(core)), failures: 3 };
    await core.store.commit({ tenant: DEFAULT_TENANT, pushProgress: [troubled], events: [] });
    const before = await core.store.agents.get(DEFAULT_TENANT, ZHIWEI);
    core.clock.advance(60_000);
    assert.equal(await core.pushDelivery.record(ended), "delivered");
    assert.equal((await endpointOf(core)).failures, 3);
    assert.deepEqual(await core.store.agents.get(DEFAULT_TENANT, ZHIWEI), before);
    assert.equal((await core.pushedMessage(receipt.message_id)).push.state, "delivered");
  });

  it("does not disable the endpoint of the next owner of the id, at the same address too", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    const ended = await answered(core, receipt.message_id, 410);
    const { url } = await endpointOf(core);
    await core.agents.remove(core.operator, ZHIWEI);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: url, push: "webhook" });
    await core.pushDelivery.record(ended);
    assert.equal((await endpointOf(core)).state, "active");
    const message = await core.send();
    const results = await core.push();
    assert.ok(results.includes("delivered"));
    assert.equal((await core.pushedMessage(message.receipt.message_id)).push.state, "delivered");
  });

  it("does not end the push, even after the last attempt", async () => {
    await using core = await pushingCore();
    const messageId = await triedButOnce(core);
    const ended = await answered(core, messageId, 500);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: NEW_HOOK });
    await core.pushDelivery.record(ended);
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  it("still counts for the same address while its secret is rotated", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    const ended = await answered(core, receipt.message_id, 410);
    await core.pushes.rotate(core.zhiwei, ZHIWEI, {});
    await core.pushDelivery.record(ended);
    assert.equal((await endpointOf(core)).state, "disabled");
  });
});

describe("a pending push of an endpoint", () => {
  it("that answers 410 is dropped with that reason, and enqueued when the endpoint is enabled again", async () => {
    await using core = await pushingCore();
    const [first, second] = [await core.send(), await core.send()];
    core.outside.receiver = () => anAnswer(410);
    assert.deepEqual(await core.push(), ["gone"]);
    assert.deepEqual(await core.push(), []);
    const { push } = await core.pushedMessage(second.receipt.message_id);
    assert.deepEqual([push.state, push.reason], ["dropped", "the endpoint answered 410: it is gone"]);
    assert.equal(push.next_attempt_at, undefined);
    assert.equal((await core.pushes.endpoint(core.operator, ZHIWEI, {})).pending, 0);
    core.outside.receiver = () => anAnswer(200);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: "webhook" });
    assert.deepEqual(await core.push(), ["delivered", "delivered"]);
    assert.equal((await core.pushedMessage(first.receipt.message_id)).push.state, "delivered");
  });

  for (const [title, reason, leave] of [
    [
      "is switched off",
      "the agent switched push off",
      (core: PushingCore) => core.agents.register(core.operator, { agent_id: ZHIWEI, push: null }),
    ],
    [
      "goes with its agent",
      "the agent was removed",
      (core: PushingCore) => core.agents.remove(core.operator, ZHIWEI),
    ],
  ] as const) {
    it(`that ${title} is dropped, also when it fails after that`, async () => {
      await using core = await pushingCore();
      const [waiting, underWay] = [await core.send(), await core.send()];
      const ended = await answered(core, underWay.receipt.message_id, 500);
      await leave(core);
      await core.pushDelivery.record(ended);
      const { push } = await core.pushedMessage(underWay.receipt.message_id);
      assert.deepEqual([push.state, push.reason, push.next_attempt_at], ["dropped", reason, undefined]);
      assert.equal(push.attempts.length, 1);
      assert.deepEqual(await core.push(), []);
      const left = (await core.pushedMessage(waiting.receipt.message_id)).push;
      assert.deepEqual([left.state, left.reason, left.next_attempt_at], ["dropped", reason, undefined]);
    });
  }
});

describe("a receiver that sends Retry-After", () => {
  for (const status of [429, 503]) {
    it(`with ${status} gets no message until then`, async () => {
      await using core = await pushingCore();
      for (let index = 0; index < 4; index += 1) await core.send();
      core.outside.receiver = () => anAnswer(status, { headers: { "retry-after": "600" } });
      assert.deepEqual(await core.push(), ["failed"]);
      assert.equal(await core.waitMs(), 600_000);
      const view = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
      const until = new Date(core.clock.nowMs() + 600_000).toISOString();
      assert.deepEqual([view.circuit, view.open_until, view.failures], ["open", until, 1]);
      core.outside.receiver = () => anAnswer(200);
      core.clock.advance(599_999);
      assert.deepEqual(await core.push(), []);
      core.clock.advance(1);
      assert.equal((await core.push()).length, 4);
      assert.equal((await core.pushes.endpoint(core.zhiwei, ZHIWEI, {})).circuit, "closed");
    });
  }
});

describe("a message that the receiver refuses", () => {
  it("is retried on schedule, and delays no other", async () => {
    await using core = await pushingCore();
    core.outside.receiver = ({ body }) => anAnswer(body?.includes("坏信") === true ? 400 : 200);
    const bad = Array.from({ length: 6 }, () => core.send({ body: "坏信" }));
    const [{ receipt } = assert.fail()] = await Promise.all(bad);
    await core.send({ body: "好信" });
    const results = await core.push();
    assert.deepEqual(results, [...Array.from({ length: 6 }, () => "refused"), "delivered"]);
    const view = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.deepEqual([view.circuit, view.failures], ["closed", 0]);
    assert.equal(await core.waitMs(), 5_000);
    for (const waitMs of OFFSETS_MS.slice(1)) {
      core.clock.advance(waitMs);
      await core.push();
    }
    const { push, receipts } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([push.state, push.attempts.length], ["failed", 4]);
    assert.equal(receipts.at(-1)?.stage, "push_failed");
  });
});

describe("a message that returns to the mailbox", () => {
  it("during its last attempt gets a new round", async () => {
    await using core = await pushingCore();
    const messageId = await triedButOnce(core);
    const ended = await answered(core, messageId, 500);
    const { message_id, lease_id } = await core.lease();
    await core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
    await core.enqueue();
    await core.pushDelivery.record(ended);
    assert.equal((await core.pushedMessage(messageId)).push.state, "pending");
    core.clock.advance(600_000);
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  it("between the check and the drop is not dropped", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.enqueue();
    const { message_id, lease_id } = await core.lease();
    const reading = core.store.messages.get.bind(core.store.messages);
    let isBack = false;
    core.store.messages.get = async (...asked) => {
      if (!isBack) {
        isBack = true;
        await core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
        await core.enqueue();
      }
      return reading(...asked);
    };
    const { signal } = new AbortController();
    assert.equal(await core.attempt(receipt.message_id, signal), "idle");
    assert.equal((await core.pushedMessage(receipt.message_id)).push.state, "pending");
    assert.deepEqual(await core.push(), ["delivered"]);
  });
});

describe("a webhook without a known outcome", () => {
  it("is made again by the process after a killed one", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.enqueue();
    // It is sent and answered, and never recorded.
    await core.attempt(receipt.message_id);
    assert.deepEqual(await core.push(), ["delivered"]);
    assert.deepEqual(core.outside.ids, [receipt.message_id, receipt.message_id]);
    assert.equal((await core.pushedMessage(receipt.message_id)).push.attempts.length, 1);
  });

  it("is made again though its endpoint was disabled meanwhile", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.enqueue();
    await core.attempt(receipt.message_id);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: null });
    assert.deepEqual(await core.push(), []);
    assert.equal((await core.pushedMessage(receipt.message_id)).push.state, "dropped");
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: "webhook" });
    assert.deepEqual(await core.push(), ["delivered"]);
  });
});

describe("the record of an attempt", () => {
  it("is written once, however often it is called", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    const ended = await answered(core, receipt.message_id, 500);
    await core.pushDelivery.record(ended);
    await core.pushDelivery.record(ended);
    assert.equal((await core.pushedMessage(receipt.message_id)).push.attempts.length, 1);
    assert.equal((await endpointOf(core)).failures, 1);
  });
});

describe("an old secret", () => {
  it("is removed when it expires, without any message", async () => {
    await using core = await pushingCore();
    await core.pushes.rotate(core.zhiwei, ZHIWEI, { overlap_ms: 60_000 });
    assert.equal(await core.waitMs(), 60_000);
    core.clock.advance(59_999);
    await core.push();
    assert.equal((await endpointOf(core)).oldSecret, core.secret);
    core.clock.advance(1);
    await core.push();
    const { oldSecret, oldSecretUntilMs } = await endpointOf(core);
    assert.deepEqual([oldSecret, oldSecretUntilMs], [null, null]);
    assert.equal(await core.waitMs(), Infinity);
  });
});
