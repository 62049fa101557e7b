import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { bodiesOf, type FollowedPages, followInbox, itemsOf } from "../../../testing/followed.ts";
import { refused } from "../../../testing/refusal.ts";

const PULSE_MS = 20;

async function sendAll(core: CoreOnMemory, bodies: readonly string[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const body of bodies) ids.push((await core.send({ body })).receipt.message_id);
  return ids;
}

async function deliveredEvents(core: CoreOnMemory): Promise<number> {
  return (await core.journal.events(core.operator, { type: "message.delivered" })).events.length;
}

/** Takes whatever comes, as it comes. */
async function everyPage(inbox: FollowedPages<unknown>): Promise<void> {
  while ((await inbox.next()) !== undefined);
}

/** The next call fails as it does when the disk does not answer. */
function breakOnce(core: CoreOnMemory, method: "available" | "markDelivered"): void {
  const working = core.store.deliveries[method];
  Object.defineProperty(core.store.deliveries, method, {
    configurable: true,
    value: async () => {
      Object.defineProperty(core.store.deliveries, method, { value: working });
      throw new RelayError("unavailable", "the disk does not answer");
    },
  });
}

describe("following a mailbox", () => {
  it("starts with all open messages, oldest first, and goes on with what comes", async () => {
    await using core = await coreOnMemory();
    await sendAll(core, ["一", "二"]);
    await using inbox = await followInbox(core);
    assert.deepEqual(bodiesOf(await inbox.next()), ["一", "二"]);
    const coming = inbox.next();
    await core.send({ body: "三" });
    assert.deepEqual(bodiesOf(await coming), ["三"]);
  });

  it("shows at once that there is nothing", async () => {
    await using core = await coreOnMemory();
    await using inbox = await followInbox(core, { since: "7" });
    assert.deepEqual(await inbox.next(), { items: [], cursor: "7" });
  });

  it("shows each message as reading shows it", async () => {
    await using core = await coreOnMemory();
    await core.send({
      type: "request",
      subject: "“引号”\n",
      body: "带\u2028行",
      parts: [{ kind: "text", text: "部分" }],
    });
    await core.send({ urgency: "high", needs_reply: true });
    const { messages } = await core.mailboxes.read(core.operator, ZHIWEI, { peek: true });
    await using inbox = await followInbox(core);
    assert.deepEqual(itemsOf(await inbox.next()), messages);
  });

  it("goes on from each cursor without a gap and without a repeat", async () => {
    await using core = await coreOnMemory();
    const ids = await sendAll(core, ["一", "二", "三", "四", "五"]);
    await using all = await followInbox(core, { peek: true });
    const cursors = ((await all.next())?.items ?? []).map(({ cursor }) => cursor);
    for (const [index, since] of cursors.entries()) {
      await using rest = await followInbox(core, { since, peek: true });
      assert.deepEqual(
        itemsOf(await rest.next()).map(({ message_id }) => message_id),
        ids.slice(index + 1),
      );
    }
  });

  it("shows messages again that was given back, to a reader that is far past its first position", async () => {
    await using core = await coreOnMemory();
    await sendAll(core, ["一", "二"]);
    await using inbox = await followInbox(core);
    const first = await inbox.next();
    const { message_id, lease_id } = await core.lease();
    await core.mailboxes.release(core.operator, ZHIWEI, { message_id, lease_id });
    const again = await inbox.next();
    assert.deepEqual(bodiesOf(again), ["一"]);
    assert.ok(Number(again?.cursor) > Number(first?.cursor));
  });

  it("skips messages that are leased, acknowledged or expired", async () => {
    await using core = await coreOnMemory();
    const [, second = ""] = await sendAll(core, ["租", "认", "期"]);
    await core.lease();
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [second] });
    core.clock.advance(8 * DAY_MS);
    await core.send({ body: "新" });
    await using inbox = await followInbox(core);
    assert.deepEqual(bodiesOf(await inbox.next()), ["新"]);
  });

  it("comes in pages of a bounded number and size, and never less than a message", async () => {
    await using core = await coreOnMemory();
    const count = LIMITS.streamPageMessagesMax + 3;
    for (let sent = 0; sent < count; sent += 1) await core.send({ body: String(sent) });
    const long = "长".repeat(LIMITS.streamPageBytesMax / 3);
    await sendAll(core, [long, long, "短"]);
    await using inbox = await followInbox(core);
    const lengths: number[] = [];
    for (let seen = 0; seen < count + 3;) {
      const bodies = bodiesOf(await inbox.next());
      lengths.push(bodies.length);
      seen += bodies.length;
    }
    assert.deepEqual(lengths, [LIMITS.streamPageMessagesMax, 3, 1, 1, 1]);
  });

  it("reads nothing ahead of a reader that does not ask", async () => {
    await using core = await coreOnMemory();
    await sendAll(core, ["一"]);
    await using inbox = await followInbox(core);
    await inbox.next();
    const [second = "", third = ""] = await sendAll(core, ["二", "三"]);
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [second] });
    assert.deepEqual(
      itemsOf(await inbox.next()).map(({ message_id }) => message_id),
      [third],
    );
  });

  it("shows notices instead of messages where that is asked for", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", subject: "看看", body: "秘密", urgency: "high" });
    await using inbox = await followInbox(core, { notice: true });
    const [notice] = (await inbox.next())?.items ?? [];
    assert.deepEqual(notice?.item, {
      message_id: receipt.message_id,
      task_id: receipt.task_id,
      sender_agent_id: LULU,
      type: "request",
      subject: "看看",
      urgency: "high",
    });
  });
});

describe("a reader that follows a mailbox", () => {
  it("leaves a mark on what it took, a moment later, and none on what it did not take", async () => {
    await using core = await coreOnMemory({ heartbeatMs: PULSE_MS });
    const [first = ""] = await sendAll(core, ["一"]);
    await using inbox = await followInbox(core);
    await inbox.next();
    assert.equal((await core.delivery(first)).delivered_at, undefined);
    // Asking for the next page says that this one was taken; a heartbeat comes once there was time to mark it.
    await inbox.next();
    assert.notEqual((await core.delivery(first)).delivered_at, undefined);
    assert.equal(await deliveredEvents(core), 1);
  });

  it("marks what it took when it leaves", async () => {
    await using core = await coreOnMemory();
    const [first = ""] = await sendAll(core, ["一"]);
    const inbox = await followInbox(core);
    await inbox.next();
    const ended = inbox.next();
    await nextTurn();
    inbox.hangUp();
    assert.equal(await ended, undefined);
    assert.notEqual((await core.delivery(first)).delivered_at, undefined);
  });

  it("marks messages in time also when more keep coming", async () => {
    await using core = await coreOnMemory();
    const [first = ""] = await sendAll(core, ["一"]);
    await using inbox = await followInbox(core);
    for (const body of ["二", "三"]) {
      await inbox.next();
      core.clock.advance(1_000);
      await core.send({ body });
    }
    await inbox.next();
    await core.store.probe(0);
    assert.notEqual((await core.delivery(first)).delivered_at, undefined);
  });

  it("leaves its marks at the same moments as all others, so that they share a commit", async () => {
    await using core = await coreOnMemory();
    core.clock.advance(1_000 - (core.clock.nowMs() % 1_000));
    await using zhiwei = await followInbox(core);
    await using lulu = await followInbox(core, {}, core.lulu, LULU);
    const marksAfterMs = async (ms: number, ...messages: readonly object[]): Promise<number> => {
      core.clock.advance(ms);
      for (const message of messages) await core.send(message);
      await nextTurn();
      await core.store.probe(0);
      return deliveredEvents(core);
    };
    const toLulu = { from: ZHIWEI, to: LULU };
    void everyPage(zhiwei);
    void everyPage(lulu);
    assert.equal(await marksAfterMs(30, {}), 0);
    assert.equal(await marksAfterMs(40, toLulu), 0);
    assert.equal(await marksAfterMs(120, {}, toLulu), 0);
    assert.equal(await marksAfterMs(10, {}, toLulu), 4);
  });

  it("saves the mark of a message that it acknowledges at once", async () => {
    await using core = await coreOnMemory({ heartbeatMs: PULSE_MS });
    const message_ids = await sendAll(core, ["一", "二"]);
    await using inbox = await followInbox(core);
    await inbox.next();
    const next = inbox.next();
    await nextTurn();
    assert.equal((await core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids })).acknowledged, 2);
    await next;
    assert.equal(await deliveredEvents(core), 0);
  });

  for (const query of [{ peek: true }, { notice: true }]) {
    it(`leaves no mark, and is not seen itself, with ${JSON.stringify(query)}`, async () => {
      await using core = await coreOnMemory({ heartbeatMs: PULSE_MS });
      await sendAll(core, ["一"]);
      const before = await core.store.agents.get("default", ZHIWEI);
      core.clock.advance(1_000);
      await using inbox = await followInbox(core, query);
      for (let step = 0; step < 3; step += 1) await inbox.next();
      assert.equal(await deliveredEvents(core), 0);
      assert.equal((await core.store.agents.get("default", ZHIWEI))?.lastSeenAtMs, before?.lastSeenAtMs);
    });
  }

  it("gets a heartbeat when nothing comes, and counts as there", async () => {
    await using core = await coreOnMemory({ heartbeatMs: PULSE_MS });
    await using inbox = await followInbox(core);
    await inbox.next();
    core.clock.advance(60_000);
    assert.deepEqual(await inbox.next(), { items: [], cursor: "0" });
    assert.equal((await core.store.agents.get("default", ZHIWEI))?.lastSeenAtMs, core.clock.nowMs());
  });

  it("is refused before there is a page", async () => {
    await using core = await coreOnMemory();
    await refused(followInbox(core, { since: "昨天" }), "invalid_argument", /^since: "昨天" is not a cursor/);
    await refused(followInbox(core, { limit: 3 }), "invalid_argument", /unknown field limit/);
    await refused(followInbox(core, {}, core.lulu), "permission_denied");
    await refused(core.mailboxes.follow(core.operator, "stranger", {}), "unknown_agent");
  });

  it("is told no more once its key has ended", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await core.keys.create(core.operator, { agent_id: ZHIWEI });
    await using inbox = await followInbox(core, {}, { ...core.zhiwei, keyId: key_id });
    await inbox.next();
    const next = inbox.next();
    await core.keys.revoke(core.operator, key_id);
    await core.send({ body: "不是给他的了" });
    await refused(next, "unauthenticated");
  });

  it("is told so at the next heartbeat, where nothing comes", async () => {
    await using core = await coreOnMemory({ heartbeatMs: PULSE_MS });
    const { key_id } = await core.keys.create(core.operator, { agent_id: ZHIWEI });
    await using inbox = await followInbox(core, {}, { ...core.zhiwei, keyId: key_id });
    await inbox.next();
    await core.keys.revoke(core.operator, key_id);
    await refused(inbox.next(), "unauthenticated");
  });

  it("comes to an end when it has gone, and is told so when the store has closed", async () => {
    const core = await coreOnMemory();
    const gone = await followInbox(core);
    const staying = await followInbox(core);
    await gone.next();
    await staying.next();
    const [one, other] = [gone.next(), staying.next()];
    gone.hangUp();
    assert.equal(await one, undefined);
    await core[Symbol.asyncDispose]();
    await refused(other, "unavailable");
  });

  it("is told that the store could not be read, and not that there is no more", async () => {
    await using core = await coreOnMemory();
    await using inbox = await followInbox(core);
    await inbox.next();
    const next = inbox.next();
    breakOnce(core, "available");
    await core.send({ body: "一" });
    await refused(next, "unavailable");
  });

  it("goes on when its mark could not be written, and marks later", async () => {
    await using core = await coreOnMemory();
    const [first = ""] = await sendAll(core, ["一"]);
    await using inbox = await followInbox(core);
    await inbox.next();
    const next = inbox.next();
    await nextTurn();
    breakOnce(core, "markDelivered");
    core.clock.advance(1_000);
    await core.send({ body: "二" });
    assert.deepEqual(bodiesOf(await next), ["二"]);
    assert.equal((await core.delivery(first)).delivered_at, undefined);
    core.clock.advance(1_000);
    const coming = inbox.next();
    await core.send({ body: "三" });
    assert.deepEqual(bodiesOf(await coming), ["三"]);
    await core.store.probe(0);
    assert.notEqual((await core.delivery(first)).delivered_at, undefined);
  });

  it("leaves nothing behind that waits, also if it never asked for a page", async () => {
    await using core = await coreOnMemory();
    for (let count = 0; count <= LIMITS.waitsMax; count += 1) {
      const left = new AbortController();
      await core.mailboxes.follow(core.zhiwei, ZHIWEI, {}, left);
      left.abort();
    }
    await core.mailboxes.follow(core.zhiwei, ZHIWEI, {}, { signal: AbortSignal.abort() });
    await using inbox = await followInbox(core);
    assert.deepEqual(bodiesOf(await inbox.next()), []);
  });
});
