import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

async function types(core: CoreOnMemory, query: object): Promise<readonly string[]> {
  return (await core.journal.events(core.operator, query)).events.map(({ type }) => type);
}

describe("the journal", () => {
  it("lists events in order, each with its actor and agent", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    await core.tasks.complete(core.operator, receipt.task_id ?? "", {});
    const { events, cursor, has_more } = await core.journal.events(core.operator, {});
    assert.deepEqual(
      events.map(({ type, actor, agent }) => [type, actor, agent]),
      [
        ["agent.registered", "operator", LULU],
        ["key.created", "operator", LULU],
        ["agent.registered", "operator", ZHIWEI],
        ["key.created", "operator", ZHIWEI],
        ["message.accepted", LULU, ZHIWEI],
        ["message.delivered", ZHIWEI, ZHIWEI],
        ["message.acknowledged", ZHIWEI, ZHIWEI],
        ["task.completed", ZHIWEI, ZHIWEI],
        ["message.accepted", ZHIWEI, LULU],
      ],
    );
    assert.deepEqual(
      events.map(({ seq }) => seq),
      [1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert.deepEqual([cursor, has_more], ["9", false]);
  });

  it("carries digests, never bodies", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", body: "机密正文", subject: "机密标题" });
    await core.tasks.complete(core.operator, receipt.task_id ?? "", { text: "机密结果" });
    const { events } = await core.journal.events(core.operator, {});
    assert.doesNotMatch(JSON.stringify(events), /机密/);
    const accepted = events.find(({ type }) => type === "message.accepted");
    assert.match(String(accepted?.data["digest"]), /^[0-9a-f]{64}$/);
  });

  it("is filtered by type, agent and thread, and continues after a cursor", async () => {
    await using core = await coreOnMemory();
    await core.send({ thread_id: "t1" });
    await core.send({ thread_id: "t2" });
    await core.mailboxes.read(core.operator, ZHIWEI, {});
    assert.deepEqual(await types(core, { type: "message.delivered" }), [
      "message.delivered",
      "message.delivered",
    ]);
    assert.deepEqual(await types(core, { thread: "t1" }), ["message.accepted", "message.delivered"]);
    assert.deepEqual(await types(core, { agent: LULU }), [
      "agent.registered",
      "key.created",
      "message.accepted",
      "message.accepted",
    ]);
    const first = await core.journal.events(core.operator, { limit: 3 });
    assert.deepEqual([first.events.length, first.has_more], [3, true]);
    const rest = await core.journal.events(core.operator, { since: first.cursor });
    assert.deepEqual([rest.events[0]?.seq, rest.has_more], [4, false]);
  });

  it("wakes a reader that waits for new events", async () => {
    await using core = await coreOnMemory();
    const { cursor } = await core.journal.events(core.operator, {});
    const query = { since: cursor, wait_ms: 60_000, type: "message.acknowledged" };
    const waiting = core.journal.events(core.operator, query);
    await nextTurn();
    const { receipt } = await core.send();
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    assert.deepEqual(
      (await waiting).events.map(({ type }) => type),
      ["message.acknowledged"],
    );
  });

  it("refuses an invalid query", async () => {
    await using core = await coreOnMemory();
    const wrong = [
      { type: "message.sent" },
      { since: "x" },
      { limit: 0 },
      { limit: 501 },
      { wait_ms: -1 },
      { agent: "" },
    ];
    for (const query of wrong) await refused(core.journal.events(core.operator, query), "invalid_argument");
  });
});

describe("threads", () => {
  it("are listed by their newest message, with their participants", async () => {
    await using core = await coreOnMemory();
    await core.send({ thread_id: "t1", subject: "第一" });
    core.clock.advance(1_000);
    await core.send({ thread_id: "t2", subject: "第二" });
    core.clock.advance(1_000);
    const last = await core.send({ from: ZHIWEI, to: LULU, thread_id: "t1", subject: "回复" });
    await core.mailboxes.ack(core.operator, LULU, { message_ids: [last.receipt.message_id] });
    const { threads } = await core.journal.threads(core.operator, {});
    assert.deepEqual(
      threads.map(({ thread_id, subject, message_count, open_count }) => [
        thread_id,
        subject,
        message_count,
        open_count,
      ]),
      [
        ["t1", "第一", 2, 1],
        ["t2", "第二", 1, 1],
      ],
    );
    assert.deepEqual(new Set(threads[0]?.participants), new Set([LULU, ZHIWEI]));
    assert.deepEqual(
      [threads[0]?.first_at, threads[0]?.last_at],
      ["2026-05-08T12:00:00.000Z", "2026-05-08T12:00:02.000Z"],
    );
  });

  it("come in pages, and by agent", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac" });
    for (const thread_id of ["t1", "t2", "t3"]) await core.send({ thread_id });
    await core.send({ to: "kames@kamac", thread_id: "t4" });
    const first = await core.journal.threads(core.operator, { limit: 2 });
    const rest = await core.journal.threads(core.operator, { limit: 2, before: first.cursor });
    assert.deepEqual(
      [...first.threads, ...rest.threads].map(({ thread_id }) => thread_id),
      ["t4", "t3", "t2", "t1"],
    );
    const { threads } = await core.journal.threads(core.operator, { agent: "kames@kamac" });
    assert.deepEqual(
      threads.map(({ thread_id }) => thread_id),
      ["t4"],
    );
    await refused(core.journal.threads(core.operator, { agent: "unknown" }), "unknown_agent");
    await refused(core.journal.threads(core.operator, { before: "x" }), "invalid_argument");
  });

  it("show their messages in the order they were accepted, each with its state", async () => {
    await using core = await coreOnMemory();
    const one = await core.send({ thread_id: "t1", body: "一" });
    await core.send({ thread_id: "t1", body: "二" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [one.receipt.message_id] });
    const thread = await core.journal.thread(core.operator, "t1");
    assert.deepEqual(
      thread.messages.map(({ body, delivery_state }) => [body, delivery_state]),
      [
        ["一", "acknowledged"],
        ["二", "available"],
      ],
    );
    assert.deepEqual([thread.thread_id, thread.truncated], ["t1", false]);
    await refused(core.journal.thread(core.operator, "nothing"), "not_found");
    await refused(core.journal.thread(core.operator, "a/b"), "invalid_argument");
  });

  it("are truncated, and say so, when their messages are too large for one answer", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 10; index += 1) {
      await core.send({ thread_id: "t1", body: "x".repeat(1_000_000) });
    }
    const { messages, truncated } = await core.journal.thread(core.operator, "t1");
    assert.deepEqual([messages.length, truncated], [8, true]);
  });
});
