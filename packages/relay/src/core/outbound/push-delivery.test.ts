import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MailboxItem, PushPayload, ReceiptStep } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { type PushingCore, pushingCore } from "../../../testing/pushing-core.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { OutboundFailure, type OutboundRequest } from "../../transports/egress/http-client.ts";

const KEY = { tenant: DEFAULT_TENANT, agentId: ZHIWEI };

function stagesOf(receipts: readonly ReceiptStep[]): readonly string[] {
  return receipts.map(({ stage }) => stage);
}

function payloadOf({ body }: OutboundRequest): PushPayload & { readonly data: MailboxItem } {
  return JSON.parse(body ?? "") as PushPayload & { readonly data: MailboxItem };
}

async function sendMany(core: PushingCore, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push((await core.send()).receipt.message_id);
  return ids;
}

describe("a push that is answered with 2xx", () => {
  it("carries the mailbox item and marks it as delivered", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send({ subject: "测试", body: "知微你好" });
    const [item] = await core.inboxOf(ZHIWEI);
    assert.deepEqual(await core.push(), ["delivered"]);
    assert.deepEqual(payloadOf(core.outside.last), {
      type: "message.available",
      timestamp: new Date(core.clock.nowMs()).toISOString(),
      data: item,
    });
    const { delivery, receipts, push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([delivery?.state, stagesOf(receipts)], ["available", ["accepted", "delivered"]]);
    assert.ok(delivery?.delivered_at);
    assert.equal(push.state, "delivered");
    assert.deepEqual(push.attempts, [
      { attempt: 1, at: receipts[0]?.at, duration_ms: 0, status: 200, answer: "" },
    ]);
    const { events } = await core.journal.events(core.operator, { type: "message.delivered" });
    assert.deepEqual(events[0]?.data, { via: "webhook", attempt: 1 });
    assert.deepEqual(await core.push(), [], "it is not pushed again");
  });

  it("acknowledges where the agent chose that, and only then", async () => {
    await using core = await pushingCore({ push_ack: true });
    const { receipt } = await core.send();
    await core.push();
    const { delivery, receipts } = await core.pushedMessage(receipt.message_id);
    assert.equal(delivery?.state, "acknowledged");
    assert.deepEqual(stagesOf(receipts), ["accepted", "delivered", "acknowledged"]);
    assert.equal(receipts[2]?.by, ZHIWEI);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("frees the follow-ups of work that it acknowledges", async () => {
    await using core = await pushingCore({ push_ack: true });
    const asked = await core.send({ type: "request" });
    const { lease_id } = await core.lease({ worker: "w1" });
    const more = await core.send({ task_id: asked.receipt.task_id ?? "", reply_to: asked.message.id });
    const message_id = asked.receipt.message_id;
    await core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
    assert.deepEqual(await core.push(), ["delivered", "delivered"]);
    assert.equal((await core.delivery(more.receipt.message_id)).state, "acknowledged");
  });

  it("of a notice carries no message but the URL to read it, and leaves it unread", async () => {
    await using core = await pushingCore({ notice: true });
    const { receipt } = await core.send({ subject: "测试", body: "只给知微的秘密", urgency: "high" });
    await core.push();
    assert.doesNotMatch(core.outside.last.body ?? "", /秘密/);
    assert.deepEqual(payloadOf(core.outside.last), {
      type: "message.notice",
      timestamp: new Date(core.clock.nowMs()).toISOString(),
      data: {
        message_id: receipt.message_id,
        sender_agent_id: LULU,
        type: "note",
        subject: "测试",
        urgency: "high",
        mailbox_url: "http://relay.test/mailbox/zhiwei%40known-blocks1",
      },
    });
    const { delivery, receipts } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual(stagesOf(receipts), ["accepted", "noticed"]);
    assert.equal(delivery?.delivered_at, undefined);
  });

  it("counts as a heartbeat of the agent", async () => {
    await using core = await pushingCore({ ttl_ms: 60_000 });
    core.clock.advance(120_000);
    assert.equal((await core.agents.get(core.operator, ZHIWEI)).presence, "offline");
    await core.send();
    await core.push();
    assert.equal((await core.agents.get(core.operator, ZHIWEI)).presence, "online");
  });
});

describe("a message to be pushed", () => {
  it("is every open and every new message, in the order of acceptance", async () => {
    await using core = await pushingCore();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: null });
    const messages = Array.from({ length: 250 }, (_, index) => ({
      id: `信-${250 - index}`,
      from: LULU,
      to: ZHIWEI,
      body: "你好",
    }));
    await core.messages.sendBatch(core.operator, { messages: messages.slice(0, 200) });
    assert.deepEqual(await core.push(), []);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, push: "webhook" });
    await core.messages.sendBatch(core.operator, { messages: messages.slice(200) });
    assert.equal((await core.push()).length, 250);
    const sent = core.outside.ids.map((id) => decodeURIComponent(id));
    assert.deepEqual(
      sent,
      messages.map(({ id }) => id),
    );
  });

  it("is dropped without a request while another reader has it, and pushed again when it returns", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    while (await core.pushDelivery.enqueue(KEY)) continue;
    const { message_id, lease_id } = await core.lease();
    assert.deepEqual(await core.push(), ["dropped"]);
    assert.equal(core.outside.requests.length, 0);
    const { push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([push.state, push.reason, push.attempts], ["dropped", "the message is leased", []]);
    await core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  for (const [reason, settle] of [
    [
      "the message is acknowledged",
      (core: PushingCore, id: string) => core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids: [id] }),
    ],
    [
      "the message is dead",
      (core: PushingCore, message_id: string) =>
        core.mailboxes.fail(core.zhiwei, ZHIWEI, { message_id, reason: "看不懂" }),
    ],
    ["the message is expired", async (core: PushingCore) => core.clock.advance(8 * 24 * 60 * 60 * 1_000)],
  ] as const) {
    it(`is dropped when ${reason}`, async () => {
      await using core = await pushingCore();
      const { receipt } = await core.send();
      while (await core.pushDelivery.enqueue(KEY)) continue;
      await settle(core, receipt.message_id);
      assert.deepEqual(await core.push(), ["dropped"]);
      assert.equal((await core.pushedMessage(receipt.message_id)).push.reason, reason);
      assert.equal(core.outside.requests.length, 0);
    });
  }

  it("is pushed again after a requeue, and its attempts are counted on", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    await core.push();
    const { message_id, lease_id } = await core.lease();
    await core.mailboxes.release(core.zhiwei, ZHIWEI, { message_id, lease_id });
    assert.deepEqual(await core.push(), ["delivered"]);
    const { push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual(
      push.attempts.map(({ attempt }) => attempt),
      [1, 2],
    );
  });

  it("stays leased when a worker took it during the request", async () => {
    await using core = await pushingCore({ push_ack: true });
    const { receipt } = await core.send();
    core.outside.receiver = async () => {
      await core.lease();
      return anAnswer(200);
    };
    assert.deepEqual(await core.push(), ["delivered"]);
    const { delivery, receipts, push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([delivery?.state, push.state], ["leased", "delivered"]);
    assert.deepEqual(stagesOf(receipts), ["accepted", "leased", "delivered"]);
  });

  it("has no attempt when the relay stops during the request", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    while (await core.pushDelivery.enqueue(KEY)) continue;
    const stopping = new AbortController();
    core.outside.receiver = () => {
      stopping.abort();
      throw new OutboundFailure("aborted", "stopped");
    };
    const result = await core.pushDelivery.attempt(KEY, receipt.message_id, stopping.signal);
    assert.equal(result, "idle");
    const { push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([push.state, push.attempts], ["pending", []]);
  });
});

describe("a push that fails", () => {
  it("is retried on schedule with the same id, then given up, and the receipts say so", async () => {
    await using core = await pushingCore();
    const startMs = core.clock.nowMs();
    const { receipt } = await core.send();
    core.outside.receiver = () => anAnswer(500, { text: "服务器坏了" });
    for (const [waitMs, offsetMs] of [
      [5_000, 0],
      [25_000, 5_000],
      [90_000, 30_000],
      [Infinity, 120_000],
    ] as const) {
      assert.equal(core.clock.nowMs() - startMs, offsetMs);
      assert.deepEqual(await core.push(), ["failed"]);
      assert.equal(await core.waitMs(), waitMs);
      if (waitMs === Infinity) break;
      core.clock.advance(waitMs - 1);
      assert.deepEqual(await core.push(), []);
      core.clock.advance(1);
    }
    assert.deepEqual(new Set(core.outside.ids), new Set([receipt.message_id]));
    const { delivery, receipts, push } = await core.pushedMessage(receipt.message_id);
    assert.equal(delivery?.state, "available");
    assert.deepEqual([push.state, push.reason], ["failed", "the endpoint answered 500"]);
    assert.deepEqual(
      push.attempts.map(({ attempt, status, answer }) => [attempt, status, answer]),
      [1, 2, 3, 4].map((attempt) => [attempt, 500, "服务器坏了"]),
    );
    assert.deepEqual(receipts.at(-1), {
      stage: "push_failed",
      at: new Date(startMs + 120_000).toISOString(),
      by: "postmaster@relay",
      reason: "the endpoint answered 500",
      attempt: 4,
    });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("hides the answer of the receiver from the sender", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    core.outside.receiver = () => anAnswer(500, { text: "at /srv/app.js:7" });
    await core.push();
    const asSender = await core.messages.get(core.lulu, receipt.message_id);
    assert.deepEqual([asSender.push?.state, asSender.push?.attempts[0]?.status], ["pending", 500]);
    assert.doesNotMatch(JSON.stringify(asSender), /app\.js/);
    assert.match(JSON.stringify(await core.messages.get(core.zhiwei, receipt.message_id)), /app\.js/);
  });

  it("keeps the answer of the receiver, without U+0000, and lists at most the attempts of one round", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    core.outside.receiver = () => anAnswer(500, { text: "坏\0了\u0007\uFFFD" });
    for (let replay = 0; replay < 22; replay += 1) {
      await core.pushes.replay(core.operator, ZHIWEI, { since: "2026-01-01T00:00:00Z" });
      await core.push();
    }
    const { attempts } = (await core.pushedMessage(receipt.message_id)).push;
    assert.deepEqual([attempts.length, attempts[0]?.attempt, attempts.at(-1)?.attempt], [20, 3, 22]);
    assert.equal(attempts[0]?.answer, "坏\uFFFD了\u0007\uFFFD");
  });

  it("waits as long as the receiver asks for", async () => {
    await using core = await pushingCore();
    await core.send();
    core.outside.receiver = () => anAnswer(429, { headers: { "retry-after": "60" } });
    await core.push();
    assert.equal(await core.waitMs(), 60_000);
  });

  it("says why there was no answer, and how long that took", async () => {
    await using core = await pushingCore();
    const { receipt } = await core.send();
    core.outside.receiver = () => {
      core.clock.advance(7);
      throw new OutboundFailure("unreachable", "zhiwei.example has no address");
    };
    assert.deepEqual(await core.push(), ["failed"]);
    const [attempt] = (await core.pushedMessage(receipt.message_id)).push.attempts;
    assert.deepEqual([attempt?.status, attempt?.error], [undefined, "zhiwei.example has no address"]);
    assert.equal(attempt?.duration_ms, 7);
  });

  it("with 410 disables the endpoint with an event, and enabling it again pushes what was missed", async () => {
    await using core = await pushingCore();
    const [first = "", second = ""] = await sendMany(core, 2);
    core.outside.receiver = () => anAnswer(410);
    assert.deepEqual(await core.push(), ["gone"]);
    const endpoint = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.deepEqual([endpoint.state, endpoint.pending], ["disabled", 1]);
    assert.equal((await core.agents.get(core.operator, ZHIWEI)).push, undefined);
    const { receipts, push } = await core.pushedMessage(first);
    assert.deepEqual([push.state, stagesOf(receipts)], ["failed", ["accepted", "push_failed"]]);
    const { events } = await core.journal.events(core.operator, { type: "push.disabled" });
    assert.deepEqual(
      events.map(({ agent, data }) => [agent, data]),
      [[ZHIWEI, { reason: "the endpoint answered 410: it is gone" }]],
    );
    core.outside.receiver = () => anAnswer(200);
    assert.deepEqual(await core.push(), [], "a disabled endpoint is called no more");
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    assert.deepEqual(await core.push(), ["delivered", "delivered"]);
    assert.deepEqual(new Set(core.outside.ids), new Set([first, second]));
  });

  it("never puts a message, a secret or an address into the journal", async () => {
    await using core = await pushingCore();
    await core.send({ body: "只给知微的秘密" });
    core.outside.receiver = () => anAnswer(410, { text: "answer of the receiver" });
    await core.push();
    await core.pushes.rotate(core.zhiwei, ZHIWEI, {});
    const { events } = await core.journal.events(core.operator, { limit: 500 });
    assert.doesNotMatch(JSON.stringify(events), /秘密|whsec_|zhiwei\.example|answer of the receiver/);
  });
});

describe("an endpoint that fails again and again", () => {
  it("is not called while its circuit is open, then probed by one attempt at a time", async () => {
    await using core = await pushingCore();
    const ids = await sendMany(core, 7);
    core.outside.receiver = () => anAnswer(503);
    assert.equal((await core.push()).length, 5);
    assert.equal(await core.waitMs(), 30_000);
    core.clock.advance(29_999);
    assert.deepEqual(await core.push(), []);
    core.clock.advance(1);
    assert.deepEqual(await core.push(), ["failed"], "one probe");
    assert.equal(await core.waitMs(), 60_000);
    const view = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.deepEqual([view.circuit, view.failures, view.pending], ["open", 6, 7]);
    assert.equal((await core.pushedMessage(ids[6] ?? "")).push.attempts.length, 0);
    core.outside.receiver = () => anAnswer(200);
    core.clock.advance(60_000);
    const results = await core.push();
    assert.deepEqual([results.length, new Set(results)], [7, new Set(["delivered"])]);
    const after = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.deepEqual([after.circuit, after.failures, after.pending], ["closed", 0, 0]);
  });

  it("has its circuit closed by registering with push again", async () => {
    await using core = await pushingCore();
    await sendMany(core, 6);
    core.outside.receiver = () => anAnswer(503);
    await core.push();
    core.outside.receiver = () => anAnswer(200);
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    assert.deepEqual(await core.push(), ["delivered"], "the one that was not tried yet");
    core.clock.advance(5_000);
    assert.equal((await core.push()).length, 5);
  });
});

describe("the due pushes of an endpoint", () => {
  it("are as many as there is room for, beside those under way", async () => {
    await using core = await pushingCore();
    const ids = await sendMany(core, 12);
    while (await core.pushDelivery.enqueue(KEY)) continue;
    const chooseDue = (underWay: readonly string[], max: number) =>
      core.pushDelivery.chooseDue(KEY, new Set(underWay), max);
    assert.deepEqual(await chooseDue([], 2), { due: ids.slice(0, 2), waitMs: Infinity });
    assert.deepEqual(await chooseDue(ids.slice(0, 3), 8), { due: ids.slice(3, 8), waitMs: Infinity });
    assert.deepEqual(await chooseDue(ids.slice(0, 8), 8), { due: [], waitMs: Infinity });
  });

  it("are found in time, though others hang", async () => {
    await using core = await pushingCore();
    const [first = "", second = ""] = await sendMany(core, 2);
    core.outside.receiver = () => anAnswer(500);
    while (await core.pushDelivery.enqueue(KEY)) continue;
    const ended = await core.pushDelivery.attempt(KEY, first, new AbortController().signal);
    assert.ok(typeof ended !== "string");
    await core.pushDelivery.record(ended);
    const { due, waitMs } = await core.pushDelivery.chooseDue(KEY, new Set([second]), 8);
    assert.deepEqual([due, waitMs], [[], 5_000]);
  });

  it("are none for an agent that was removed", async () => {
    await using core = await pushingCore();
    await sendMany(core, 1);
    await core.agents.remove(core.zhiwei, ZHIWEI);
    assert.deepEqual(await core.push(), []);
    assert.equal(core.outside.requests.length, 0);
    for await (const _ of core.pushDelivery.activeEndpoints()) assert.fail("it is active no more");
  });
});
