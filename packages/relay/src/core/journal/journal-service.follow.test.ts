import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FollowedPages } from "../../../testing/followed.ts";
import { refused } from "../../../testing/refusal.ts";
import { operatorOf } from "../access/principal.ts";
import type { EventsPage } from "./journal-service.ts";

async function follow(
  core: CoreOnMemory,
  query: object = {},
  principal = core.operator,
): Promise<FollowedPages<EventsPage>> {
  const left = new AbortController();
  return new FollowedPages(await core.journal.follow(principal, query, left), left);
}

describe("following the journal", () => {
  it("yields past events in pages, and then new ones", async () => {
    await using core = await coreOnMemory();
    for (let count = 0; count < LIMITS.streamPageMessagesMax; count += 1) await core.send();
    const all = await core.journal.events(core.operator, { limit: 500 });
    await using events = await follow(core, { limit: 500 });
    const [first, second] = [await events.next(), await events.next()];
    assert.deepEqual([...(first?.events ?? []), ...(second?.events ?? [])], all.events);
    assert.equal(first?.events.length, LIMITS.streamPageMessagesMax);
    const next = events.next();
    await core.send();
    assert.equal((await next)?.events[0]?.type, "message.accepted");
  });

  it("starts at the end on request", async () => {
    await using core = await coreOnMemory();
    await core.send();
    await using events = await follow(core, { since: "latest" });
    assert.deepEqual((await events.next())?.events, []);
    const next = events.next();
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    assert.equal((await next)?.events[0]?.type, "message.delivered");
  });

  it("yields matching events, and moves its cursor past the others", async () => {
    await using core = await coreOnMemory({ heartbeatMs: 20 });
    await core.send({ thread_id: "甲" });
    await core.send({ thread_id: "乙" });
    await using events = await follow(core, { thread: "甲", type: "message.accepted" });
    assert.equal((await events.next())?.events.length, 1);
    const head = (await core.store.journal.chain("default")).head;
    assert.deepEqual(await events.next(), { events: [], cursor: String(head.seq) });
  });

  it("sends heartbeats also while other events happen all the time", async () => {
    await using core = await coreOnMemory({ heartbeatMs: 10_000 });
    await using events = await follow(core, { since: "latest", type: "agent.removed" });
    await events.next();
    const heartbeat = events.next();
    for (let count = 0; count < 4; count += 1) {
      core.clock.advance(2_500);
      await core.send();
    }
    const { seq } = (await core.store.journal.chain("default")).head;
    assert.deepEqual(await heartbeat, { events: [], cursor: String(seq) });
  });

  it("sends a heartbeat in time after an event that does not match", { timeout: 5_000 }, async () => {
    await using core = await coreOnMemory({ heartbeatMs: 10_000 });
    await using events = await follow(core, { since: "latest", type: "agent.removed" });
    await events.next();
    const heartbeat = events.next();
    core.clock.advance(9_950);
    await core.send();
    assert.deepEqual((await heartbeat)?.events, []);
  });

  it("is for operators, in their own tenant", async () => {
    await using core = await coreOnMemory();
    await refused(core.journal.follow(core.zhiwei, {}), "permission_denied");
    await refused(follow(core, { type: "no.such" }), "invalid_argument", /there are no events of type/);
    await refused(follow(core, { since: "x" }), "invalid_argument");
    await using others = await follow(core, {}, operatorOf("acme"));
    assert.deepEqual((await others.next())?.events, []);
  });
});
