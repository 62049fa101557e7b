import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

describe("reading a mailbox", () => {
  it("shows messages oldest first, again and again until it is acknowledged", async () => {
    await using core = await coreOnMemory();
    const first = (await core.send({ body: "一" })).receipt.message_id;
    const second = (await core.send({ body: "二" })).receipt.message_id;
    for (const status of ["PENDING", "DELIVERED"]) {
      const { messages } = await core.mailboxes.read(core.operator, ZHIWEI, {});
      assert.deepEqual(
        messages.map((item) => [item.message_id, item.status]),
        [
          [first, status],
          [second, status],
        ],
      );
    }
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [first] });
    const { messages } = await core.mailboxes.read(core.operator, ZHIWEI, {});
    assert.deepEqual(
      messages.map((item) => item.message_id),
      [second],
    );
  });

  it("shows each message in both spellings, with the parameters of an A2A send", async () => {
    await using core = await coreOnMemory();
    const parts = [{ kind: "text", text: "带附言" }];
    const { receipt } = await core.send({ type: "request", parts, body: "带附言" });
    const [item] = (await core.mailboxes.read(core.operator, ZHIWEI, {})).messages;
    assert.ok(item);
    assert.equal(item.id, item.message_id);
    assert.equal(item.sender_agent_id, LULU);
    assert.equal(item.task_id, receipt.task_id);
    assert.equal(item.lease, undefined);
    assert.deepEqual(item.a2a_payload, {
      message: {
        kind: "message",
        role: "user",
        messageId: receipt.message_id,
        contextId: receipt.thread_id,
        taskId: receipt.task_id,
        parts,
      },
      metadata: { sender_agent_id: LULU, relay_target_agent_id: ZHIWEI, type: "request" },
    });
    await core.send({ body: "只有字" });
    const plain = (await core.inboxOf(ZHIWEI))[1]?.a2a_payload as { message: { parts: unknown } };
    assert.deepEqual(plain.message.parts, [{ kind: "text", text: "只有字" }]);
  });

  it("leaves a mark once, with a receipt; peeking leaves none", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    await core.mailboxes.read(core.operator, ZHIWEI, { peek: true });
    assert.equal((await core.delivery(receipt.message_id)).delivered_at, undefined);
    core.clock.advance(1_000);
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    core.clock.advance(1_000);
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    assert.equal((await core.delivery(receipt.message_id)).delivered_at, "2026-05-08T12:00:01.000Z");
    const { receipts } = await core.messages.get(core.operator, receipt.message_id);
    assert.deepEqual(
      receipts.map(({ stage, by }) => [stage, by]),
      [
        ["accepted", LULU],
        ["delivered", ZHIWEI],
      ],
    );
  });

  it("an operator that lists the queue or reads a message leaves no mark", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    await core.repairs.queue(core.operator, {});
    await core.messages.get(core.operator, receipt.message_id);
    await core.journal.thread(core.operator, receipt.thread_id);
    assert.equal((await core.delivery(receipt.message_id)).delivered_at, undefined);
  });

  it("goes on behind its cursor, also when there is nothing new", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 5; index += 1) await core.send({ body: `${index}` });
    const bodies: string[] = [];
    let since: string | undefined;
    for (let page = 0; page < 4; page += 1) {
      const query = { limit: 2, ...(since === undefined ? {} : { since }) };
      const { messages, cursor } = await core.mailboxes.read(core.operator, ZHIWEI, query);
      bodies.push(...messages.map(({ message }) => message.body));
      since = cursor;
    }
    assert.deepEqual(bodies, ["0", "1", "2", "3", "4"]);
    const { cursor } = await core.mailboxes.read(core.operator, ZHIWEI, { since: since ?? "" });
    assert.equal(cursor, since);
  });

  it("shows messages that went back to a reader whose cursor is past its first position", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    await core.send();
    const { cursor } = await core.mailboxes.read(core.operator, ZHIWEI, {});
    const { message_id, lease_id } = await core.lease();
    assert.equal(message_id, receipt.message_id);
    await core.mailboxes.release(core.operator, ZHIWEI, { leases: [{ message_id, lease_id }] });
    const { messages } = await core.mailboxes.read(core.operator, ZHIWEI, { since: cursor });
    assert.deepEqual(
      messages.map((item) => [item.message_id, item.status]),
      [[message_id, "PENDING"]],
    );
  });

  it("shows neither leased nor expired messages", async () => {
    await using core = await coreOnMemory();
    await core.send();
    await core.lease();
    await core.send({ expires_at: new Date(core.clock.nowMs() + 1_000).toISOString() });
    core.clock.advance(999);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    core.clock.advance(1);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("gives at most what was asked for, fifty unless told", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < LIMITS.readLimitDefault + 1; index += 1) await core.send();
    const { messages } = await core.mailboxes.read(core.operator, ZHIWEI, {});
    assert.equal(messages.length, LIMITS.readLimitDefault);
    assert.equal((await core.mailboxes.read(core.operator, ZHIWEI, { limit: 500 })).messages.length, 51);
  });

  it("gives messages that are too long for one answer in several, none of them lost", async () => {
    await using core = await coreOnMemory();
    const sent: string[] = [];
    for (let index = 0; index < 10; index += 1) {
      sent.push((await core.send({ body: "x".repeat(1_000_000) })).receipt.message_id);
    }
    const first = await core.mailboxes.read(core.operator, ZHIWEI, {});
    const second = await core.mailboxes.read(core.operator, ZHIWEI, { since: first.cursor });
    assert.deepEqual([first.messages.length, second.messages.length], [8, 2]);
    const read = [...first.messages, ...second.messages].map((item) => item.message_id);
    assert.deepEqual(read, sent);
    const third = await core.mailboxes.read(core.operator, ZHIWEI, { since: second.cursor });
    assert.deepEqual(third, { messages: [], cursor: second.cursor });
    const leased = await core.mailboxes.lease(core.operator, ZHIWEI, { max: 100 });
    assert.equal(leased.messages.length, 8);
  });

  it("renews the agent's presence; peeking does not", async () => {
    await using core = await coreOnMemory();
    core.clock.advance(60_000);
    await core.mailboxes.read(core.operator, ZHIWEI, { peek: true });
    const before = await core.agents.get(core.operator, ZHIWEI);
    assert.equal(before.last_seen_at, "2026-05-08T12:00:00.000Z");
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    const after = await core.agents.get(core.operator, ZHIWEI);
    assert.equal(after.last_seen_at, "2026-05-08T12:01:00.000Z");
  });

  const wrong: readonly [query: Readonly<Record<string, unknown>>, words: RegExp][] = [
    [{ limit: 0 }, /^limit: /],
    [{ limit: -1 }, /^limit: /],
    [{ limit: 501 }, /^limit: /],
    [{ limit: "many" }, /^limit: .*"many"/],
    [{ limit: 1.5 }, /^limit: /],
    [{ wait_ms: -1 }, /^wait_ms: /],
    [{ wait_ms: LIMITS.waitMsMax + 1 }, /^wait_ms: /],
    [{ peek: "yes" }, /^peek: /],
    [{ since: "yesterday" }, /^since: .*not a cursor/],
    [{ since: "-1" }, /^since: /],
    [{ since: "9999999999999999" }, /^since: /],
    [{ since: 7 }, /^since: /],
  ];
  for (const [query, words] of wrong) {
    it(`is refused with ${JSON.stringify(query)}`, async () => {
      await using core = await coreOnMemory();
      await refused(core.mailboxes.read(core.operator, ZHIWEI, query), "invalid_argument", words);
    });
  }

  it("is refused for an unknown agent", async () => {
    await using core = await coreOnMemory();
    await refused(core.mailboxes.read(core.operator, "stranger", {}), "unknown_agent");
    await refused(core.mailboxes.read(core.operator, "../etc", {}), "invalid_argument");
  });
});

describe("waiting for messages", () => {
  it("ends as soon as a message comes", async () => {
    await using core = await coreOnMemory();
    const waiting = core.mailboxes.read(core.operator, ZHIWEI, { wait_ms: 60_000 });
    await nextTurn();
    const { receipt } = await core.send();
    const { messages } = await waiting;
    assert.deepEqual(
      messages.map(({ message_id }) => message_id),
      [receipt.message_id],
    );
  });

  it("does not end for messages of others, and ends for messages behind the cursor only", async () => {
    await using core = await coreOnMemory();
    await core.send({ body: "旧" });
    const { cursor } = await core.mailboxes.read(core.operator, ZHIWEI, {});
    const waiting = core.mailboxes.read(core.operator, ZHIWEI, { wait_ms: 60_000, since: cursor });
    await core.send({ from: ZHIWEI, to: LULU });
    await nextTurn();
    await core.send({ body: "新" });
    assert.deepEqual(
      (await waiting).messages.map(({ message }) => message.body),
      ["新"],
    );
  });

  it("ends for every waiting caller, and hands a lease to only one of them", async () => {
    await using core = await coreOnMemory();
    const lease = { wait_ms: 60_000 };
    const stop = new AbortController();
    const { signal } = stop;
    const readers = [1, 2].map(() =>
      core.mailboxes.read(core.operator, ZHIWEI, { wait_ms: 60_000, peek: true }),
    );
    const workers = [1, 2].map(() => core.mailboxes.lease(core.operator, ZHIWEI, lease, { signal }));
    await nextTurn();
    const { receipt } = await core.send();
    const winner = await Promise.race(workers);
    stop.abort();
    const leased = (await Promise.all(workers)).flatMap(({ messages }) => messages);
    assert.deepEqual(
      leased.map(({ message_id }) => message_id),
      [receipt.message_id],
    );
    assert.equal(winner.messages.length, 1);
    await core.mailboxes.release(core.operator, ZHIWEI, {
      leases: leased.map(({ message_id, lease: { id } }) => ({ message_id, lease_id: id })),
    });
    for (const { messages } of await Promise.all(readers)) assert.equal(messages.length, 1);
  });

  it("ends empty when its time is over", async () => {
    await using core = await coreOnMemory();
    const { messages, cursor } = await core.mailboxes.read(core.operator, ZHIWEI, { wait_ms: 20 });
    assert.deepEqual([messages, cursor], [[], "0"]);
  });

  it("ends empty when its caller disconnects", async () => {
    await using core = await coreOnMemory();
    const stop = new AbortController();
    const waiting = core.mailboxes.read(core.operator, ZHIWEI, { wait_ms: 60_000 }, { signal: stop.signal });
    await nextTurn();
    stop.abort();
    assert.deepEqual((await waiting).messages, []);
  });

  it("for a lease ends when a message is released", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease();
    const waiting = core.mailboxes.lease(core.operator, ZHIWEI, { wait_ms: 60_000 });
    await nextTurn();
    await core.mailboxes.release(core.operator, ZHIWEI, { leases: [{ message_id, lease_id }] });
    assert.equal((await waiting).messages[0]?.lease.attempt, 2);
  });
});
