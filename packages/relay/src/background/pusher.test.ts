import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, LIMITS } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../testing/core-on-memory.ts";
import { anAnswer } from "../../testing/fake-outside.ts";
import { type PushingCore, pushingCore } from "../../testing/pushing-core.ts";
import { DEFAULT_TENANT, operatorOf, rootOperator } from "../core/access/principal.ts";
import { mailboxTopic } from "../core/ports/change-feed.ts";
import { Pusher } from "./pusher.ts";

const KAMES = "kames@桌面" as AgentId;
const TICKS_MAX = 10_000;

function report(reason: unknown): void {
  assert.fail(String(reason));
}

/** Resolves after an event of this type, about this message if one is named. */
async function recorded(core: PushingCore, type: string, messageId?: string): Promise<void> {
  for (let since = "0"; ;) {
    const page = await core.journal.events(core.operator, { type, since, wait_ms: 30_000 });
    assert.ok(page.events.length > 0, `${type} never came`);
    if (messageId === undefined || page.events.some((event) => event.message_id === messageId)) return;
    since = page.cursor;
  }
}

/** A second agent with an endpoint, by which a test sees that the pusher continues. */
async function withKames(core: PushingCore): Promise<() => Promise<void>> {
  const kames = { agent_id: KAMES, callback_url: "https://kames.example/", push: "webhook" };
  await core.agents.register(core.operator, kames);
  return async () => {
    const { receipt } = await core.send({ to: KAMES });
    await recorded(core, "message.delivered", receipt.message_id);
    // Its mailbox must not fill up.
    await core.mailboxes.ack(core.operator, KAMES, { message_ids: [receipt.message_id] });
  };
}

function isFor(name: string): (request: { readonly url: string }) => boolean {
  return ({ url }) => url.includes(name);
}

describe("the pusher", () => {
  it("pushes what is open when it starts, and new messages at once", async () => {
    await using core = await pushingCore();
    const before = await core.send();
    await using _ = new Pusher(core, report);
    await recorded(core, "message.delivered", before.receipt.message_id);
    const after = await core.send();
    await recorded(core, "message.delivered", after.receipt.message_id);
    assert.equal(core.outside.requests.length, 2);
  });

  it("finds an agent that asks for push later, in every tenant", async () => {
    await using core = await pushingCore();
    await using _ = new Pusher(core, report);
    const acme = operatorOf("工作室");
    await core.keys.create(rootOperator(), { tenant: acme.tenant });
    await core.agents.register(acme, { agent_id: LULU });
    const url = "https://studio.example/";
    await core.agents.register(acme, { agent_id: ZHIWEI, callback_url: url, push: "webhook", notice: true });
    const message = { from: LULU, to: ZHIWEI, body: "你好" };
    await core.messages.send(acme, message);
    await core.outside.arrived(1);
    assert.equal(core.outside.last.url, url);
    const { data } = JSON.parse(core.outside.last.body ?? "") as { data: { mailbox_url: string } };
    const path = `/t/${encodeURIComponent("工作室")}/mailbox/zhiwei%40known-blocks1`;
    assert.equal(data.mailbox_url, `http://relay.test${path}`);
  });

  it("is not delayed by an endpoint that hangs", async () => {
    await using core = await pushingCore();
    const goesOn = await withKames(core);
    core.outside.receiver = (request) =>
      isFor("zhiwei")(request) ? core.outside.hanging(request) : anAnswer(200);
    await using _ = new Pusher(core, report);
    await core.send();
    await core.outside.arrived(1);
    await goesOn();
    await goesOn();
  });

  it("leaves permits to others however many hang: to other tenants, and to proven endpoints of the same", async () => {
    await using core = await pushingCore();
    const goesOn = await withKames(core);
    const studio = operatorOf("工作室");
    await core.keys.create(rootOperator(), { tenant: studio.tenant });
    await core.agents.register(studio, { agent_id: LULU });
    const hook = { callback_url: "https://studio.example/", push: "webhook" };
    await core.agents.register(studio, { agent_id: ZHIWEI, ...hook });
    core.outside.receiver = (request) =>
      isFor("hanging")(request) ? core.outside.hanging(request) : anAnswer(200);
    await using _ = new Pusher(core, report);
    await goesOn();
    const hung: string[] = [];
    for (let number = 0; number < LIMITS.pushesUnderWayMax + 10; number += 1) {
      const to = `hanging-${number}@桌面` as AgentId;
      const hanging = { agent_id: to, callback_url: "https://hanging.example/", push: "webhook" };
      await core.agents.register(core.operator, hanging);
      hung.push((await core.send({ to })).receipt.message_id);
    }
    // A recorded push is about to be sent.
    for (const id of hung)
      while ((await core.store.pushes.get(DEFAULT_TENANT, [id]))[0] === undefined) await goesOn();
    for (let count = 0; count < 5; count += 1) await goesOn();
    const before = core.outside.requests.filter(isFor("studio")).length;
    await core.messages.send(studio, { from: LULU, to: ZHIWEI, body: "你好" });
    const { events } = await core.journal.events(studio, { type: "message.delivered", wait_ms: 30_000 });
    assert.deepEqual([before, events.length], [0, 1]);
  });

  it("works though readers use up all watches", async () => {
    await using core = await pushingCore();
    const watches: Disposable[] = [];
    for (let count = 0; count < LIMITS.waitsMax; count += 1) {
      watches.push(core.store.feed.watch(mailboxTopic(DEFAULT_TENANT, LULU)));
    }
    await core.send();
    await using _ = new Pusher(core, report);
    await core.outside.arrived(1);
    for (const watch of watches) watch[Symbol.dispose]();
  });

  it("calls an endpoint once at first and more at a time as it answers, never more than the limit", async () => {
    await using core = await pushingCore();
    const goesOn = await withKames(core);
    const zhiwei = () => core.outside.requests.filter(isFor("zhiwei"));
    let underWay = 0;
    const most: number[] = [];
    const gates: (() => void)[] = [];
    core.outside.receiver = async (request) => {
      if (!isFor("zhiwei")(request)) return anAnswer(200);
      underWay += 1;
      const { promise, resolve } = Promise.withResolvers<void>();
      gates.push(resolve);
      await promise;
      underWay -= 1;
      return anAnswer(200);
    };
    for (let index = 0; index < 40; index += 1) await core.send();
    await using _ = new Pusher(core, report);
    for (const round of [1, 2, 4, 8, 8]) {
      const others = core.outside.requests.length - zhiwei().length;
      await core.outside.arrived(others + most.reduce((sum, count) => sum + count, round));
      await goesOn();
      most.push(underWay);
      if (most.length === 5) core.outside.receiver = () => anAnswer(200);
      for (const open of gates.splice(0)) open();
    }
    assert.deepEqual(most, [1, 2, 4, 8, 8]);
    assert.equal(LIMITS.pushesOfEndpointMax, 8);
  });

  it("records no attempt for requests under way when it stops, and the next one makes them again", async () => {
    await using core = await pushingCore();
    core.outside.receiver = core.outside.hanging;
    const { receipt } = await core.send();
    {
      await using _ = new Pusher(core, report);
      await core.outside.arrived(1);
    }
    const { push } = await core.pushedMessage(receipt.message_id);
    assert.deepEqual([push.state, push.attempts], ["pending", []]);
    core.outside.receiver = () => anAnswer(200);
    await using _ = new Pusher(core, report);
    await recorded(core, "message.delivered", receipt.message_id);
    assert.deepEqual(core.outside.ids, [receipt.message_id, receipt.message_id]);
  });

  it("retries on schedule", async () => {
    await using core = await pushingCore();
    await using _ = new Pusher(core, report);
    core.outside.receiver = () => anAnswer(core.outside.requests.length === 1 ? 500 : 200);
    const first = await core.send();
    await core.outside.arrived(1);
    for (let tick = 0; tick < TICKS_MAX; tick += 1) {
      if ((await core.pushedMessage(first.receipt.message_id)).push.attempts.length > 0) break;
      await core.clock.nextTurn();
    }
    core.clock.advance(5_000);
    const second = await core.send();
    for (const { receipt } of [first, second]) {
      await recorded(core, "message.delivered", receipt.message_id);
    }
    assert.deepEqual(core.outside.ids.slice(0, 2), [first.receipt.message_id, first.receipt.message_id]);
  });

  it("calls an endpoint that is gone no more, and again once it is enabled", async () => {
    await using core = await pushingCore();
    const goesOn = await withKames(core);
    await using _ = new Pusher(core, report);
    core.outside.receiver = (request) => anAnswer(isFor("zhiwei")(request) ? 410 : 200);
    await core.send();
    await recorded(core, "push.disabled");
    const count = core.outside.requests.length;
    await core.send();
    await goesOn();
    assert.equal(core.outside.requests.length, count + 1);
    core.outside.receiver = () => anAnswer(200);
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    await core.outside.arrived(count + 3);
  });

  it("wakes up for a replay", async () => {
    await using core = await pushingCore();
    await using _ = new Pusher(core, report);
    const { receipt } = await core.send();
    await recorded(core, "message.delivered", receipt.message_id);
    await core.pushes.replay(core.zhiwei, ZHIWEI, { since: "2026-01-01T00:00:00Z" });
    await core.outside.arrived(2);
    assert.deepEqual(core.outside.ids, [receipt.message_id, receipt.message_id]);
  });

  it("reports a failure of the relay itself, backs off for that endpoint, and stops without waiting", async () => {
    await using core = await pushingCore();
    const goesOn = await withKames(core);
    core.outside.receiver = (request) => {
      if (isFor("zhiwei")(request)) throw new Error("the disk is full");
      return anAnswer(200);
    };
    const failed = Promise.withResolvers<unknown>();
    let reports = 0;
    const count = (reason: unknown): void => {
      reports += 1;
      failed.resolve(reason);
    };
    await using _ = new Pusher(core, count);
    await core.send();
    assert.match(String(await failed.promise), /disk is full/);
    await goesOn();
    await goesOn();
    assert.equal(reports, 1);
  });
});
