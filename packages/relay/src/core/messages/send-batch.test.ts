import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { messageIdOf, outcomesOf } from "../../../testing/outcomes.ts";
import { refused } from "../../../testing/refusal.ts";
import type { SendOutcome } from "./send-batch.ts";
import { countOpen } from "../../../testing/store-builders.ts";

type Draft = Readonly<Record<string, unknown>>;

function aMessage(more: Draft = {}): Draft {
  return { from: LULU, to: ZHIWEI, body: "知微你好", ...more };
}

function batch(
  core: CoreOnMemory,
  messages: readonly unknown[],
  atomic?: boolean,
): Promise<readonly SendOutcome[]> {
  const more = atomic === undefined ? {} : { atomic };
  return core.messages.sendBatch(core.operator, { messages, ...more });
}

describe("a batch", () => {
  it("is accepted in its own order", async () => {
    await using core = await coreOnMemory();
    const results = await batch(
      core,
      Array.from({ length: LIMITS.batchMessagesMax }, (_, index) => aMessage({ body: `第 ${index} 封` })),
    );
    assert.deepEqual(new Set(outcomesOf(results)), new Set(["created"]));
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message_id }) => message_id),
      results.map(messageIdOf),
    );
  });

  it("counts messages that share an id once, however many there are", async () => {
    await using core = await coreOnMemory();
    const messages = Array.from({ length: 20 }, (_, n) =>
      aMessage({ id: "同一个", idempotency_key: `k${n}` }),
    );
    const outcomes = outcomesOf(await batch(core, messages));
    assert.deepEqual(outcomes, ["created", ...Array.from({ length: 19 }, () => "conflict")]);
    assert.equal(await countOpen(core.store, "default", ZHIWEI), 1);
  });

  it("answers each message for itself", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      aMessage({ body: "一" }),
      aMessage({ to: "stranger" }),
      aMessage({ body: "二" }),
      aMessage({ attachments: ["a"] }),
      aMessage({ body: "三" }),
    ]);
    assert.deepEqual(outcomesOf(results), [
      "created",
      "unknown_agent",
      "created",
      "invalid_argument",
      "created",
    ]);
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message }) => message.body),
      ["一", "二", "三"],
    );
  });

  it("answers a message that is none for itself too", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      aMessage(),
      aMessage({ body: 7 }),
      aMessage({ body: "\ud800" }),
      "text",
      aMessage(),
    ]);
    assert.deepEqual(outcomesOf(results), [
      "created",
      "invalid_argument",
      "invalid_argument",
      "invalid_argument",
      "created",
    ]);
  });

  it("finds in it a message that was sent before, and one that is in it twice", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ idempotency_key: "k1" });
    const results = await batch(core, [
      aMessage({ idempotency_key: "k1" }),
      aMessage({ idempotency_key: "k2" }),
      aMessage({ idempotency_key: "k2" }),
      aMessage({ idempotency_key: "k2", body: "别的" }),
    ]);
    assert.deepEqual(outcomesOf(results), ["seen", "created", "seen", "conflict"]);
    assert.equal(messageIdOf(results[0]), receipt.message_id);
    assert.equal(messageIdOf(results[1]), messageIdOf(results[2]));
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
  });

  it("may hold an answer to a message before it", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      aMessage({ id: "ask", type: "request" }),
      aMessage({ from: ZHIWEI, to: LULU, type: "reply", reply_to: "ask", body: "好" }),
    ]);
    assert.deepEqual(outcomesOf(results), ["created", "created"]);
    const [task] = (await core.tasks.list(core.operator, {})).tasks;
    assert.equal(task?.state, "completed");
  });

  it("may hold heartbeats", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [aMessage({ type: "heartbeat" }), aMessage()]);
    assert.deepEqual(outcomesOf(results), ["created", "created"]);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("is refused message by message while the mailbox is full", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 1 });
    await core.send();
    const results = await batch(core, [aMessage(), aMessage({ from: ZHIWEI, to: LULU }), aMessage()]);
    assert.deepEqual(outcomesOf(results), ["mailbox_full", "created", "mailbox_full"]);
  });

  it("has at least one message and at most as many as the limit says", async () => {
    await using core = await coreOnMemory();
    await refused(batch(core, []), "invalid_argument");
    const many = Array.from({ length: LIMITS.batchMessagesMax + 1 }, () => aMessage());
    await refused(batch(core, many), "too_large", /500/);
    await refused(core.messages.sendBatch(core.operator, {}), "invalid_argument");
    await refused(core.messages.sendBatch(core.operator, [aMessage()]), "invalid_argument");
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });
});

describe("an atomic batch", () => {
  it("is accepted whole, in its own order", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [aMessage({ body: "一" }), aMessage({ type: "request" })], true);
    assert.deepEqual(outcomesOf(results), ["created", "created"]);
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message_id }) => message_id),
      results.map(messageIdOf),
    );
  });

  const wrong: readonly [what: string, message: unknown][] = [
    ["an unknown recipient", aMessage({ to: "stranger" })],
    ["an attachment", aMessage({ attachments: ["a"] })],
    ["a wrong type", aMessage({ body: 7 })],
    ["a heartbeat", aMessage({ type: "heartbeat" })],
    ["an unknown task", aMessage({ task_id: "nothing" })],
  ];
  for (const [what, bad] of wrong) {
    it(`is refused whole for ${what}, and nothing is sent`, async () => {
      await using core = await coreOnMemory();
      const before = (await core.store.journal.chain("default")).head;
      await assert.rejects(batch(core, [aMessage(), bad, aMessage()], true), /messages[[.]1/);
      assert.deepEqual((await core.store.journal.chain("default")).head, before);
      assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
    });
  }

  it("is refused whole for a conflict with what was sent before", async () => {
    await using core = await coreOnMemory();
    await core.send({ idempotency_key: "k1", body: "甲" });
    const messages = [aMessage({ idempotency_key: "k2" }), aMessage({ idempotency_key: "k1", body: "乙" })];
    const error = await refused(batch(core, messages, true), "conflict", /nothing was sent/);
    assert.equal(error.details?.["index"], 1);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("can be repeated as a whole", async () => {
    await using core = await coreOnMemory();
    const messages = [aMessage({ idempotency_key: "k1" }), aMessage({ idempotency_key: "k2" })];
    const first = await batch(core, messages, true);
    const again = await batch(core, messages, true);
    assert.deepEqual(outcomesOf(again), ["seen", "seen"]);
    assert.deepEqual(again.map(messageIdOf), first.map(messageIdOf));
  });

  it("holds no message twice", async () => {
    await using core = await coreOnMemory();
    const twice = [aMessage({ idempotency_key: "k1" }), aMessage({ idempotency_key: "k1" })];
    await refused(batch(core, twice, true), "conflict", /^messages\[1\]: .*messages\[0\].*"k1"/);
    await refused(
      batch(core, [aMessage({ id: "m1" }), aMessage({ id: "m1", body: "别的" })], true),
      "conflict",
      /m1/,
    );
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("changes a task only once, and says so at once", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const taskId = receipt.task_id ?? "";
    const two = [aMessage({ task_id: taskId, body: "一" }), aMessage({ task_id: taskId, body: "二" })];
    const error = await refused(batch(core, two, true), "conflict", new RegExp(`task ${taskId}`));
    assert.deepEqual(error.details, { index: 1, other: 0 });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("lets no more messages in than the mailbox has room for", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 2 });
    const messages = Array.from({ length: 5 }, (_, index) => ({
      from: "lulu",
      to: "zhiwei",
      body: `${index}`,
    }));
    const items = await core.messages.sendBatch(core.operator, { messages });
    assert.deepEqual(outcomesOf(items), [
      "created",
      "created",
      "mailbox_full",
      "mailbox_full",
      "mailbox_full",
    ]);
    assert.equal((await core.inboxOf("zhiwei")).length, 2);
  });
});
