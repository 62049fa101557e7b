import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type BatchItem, LIMITS, type RelayError } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { inObjects } from "../../../testing/batch-wire.ts";
import { refused } from "../../../testing/refusal.ts";

type NewMessage = Readonly<Record<string, unknown>>;

const statusOf = (error: RelayError): number => (error.code === "conflict" ? 409 : 400);

function letter(more: NewMessage = {}): NewMessage {
  return { from: LULU, to: ZHIWEI, body: "知微你好", ...more };
}

function batch(
  core: CoreOnMemory,
  messages: readonly unknown[],
  atomic?: boolean,
): Promise<readonly BatchItem[]> {
  const more = atomic === undefined ? {} : { atomic };
  return core.messages.sendBatch(core.operator, { ...inObjects({ messages, ...more }), statusOf });
}

function idOf(item: BatchItem | undefined): string {
  return item !== undefined && "receipt" in item ? item.receipt.message_id : "";
}

describe("a batch", () => {
  it("is accepted in its own order", async () => {
    await using core = await coreOnMemory();
    const results = await batch(
      core,
      Array.from({ length: LIMITS.batchMessagesMax }, (_, index) => letter({ body: `第 ${index} 封` })),
    );
    assert.deepEqual(new Set(results.map(({ status }) => status)), new Set([201]));
    assert.deepEqual(
      (await core.mailOf(ZHIWEI)).map(({ message_id }) => message_id),
      results.map(idOf),
    );
  });

  it("counts letters that share an id once, however many there are", async () => {
    await using core = await coreOnMemory();
    const letters = Array.from({ length: 20 }, (_, n) => letter({ id: "同一个", idempotency_key: `k${n}` }));
    const statuses = (await batch(core, letters)).map(({ status }) => status);
    assert.deepEqual(statuses, [201, ...Array.from({ length: 19 }, () => statuses[1])]);
    assert.notEqual(statuses[1], 201);
    assert.equal(await core.store.countOpen("default", ZHIWEI), 1);
  });

  it("answers each letter for itself", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      letter({ body: "一" }),
      letter({ to: "nobody" }),
      letter({ body: "二" }),
      letter({ attachments: ["a"] }),
      letter({ body: "三" }),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 400, 201, 400, 201],
    );
    assert.equal(results[1] !== undefined && "error" in results[1] && results[1].error.code, "unknown_agent");
    assert.deepEqual(
      (await core.mailOf(ZHIWEI)).map(({ message }) => message.body),
      ["一", "二", "三"],
    );
  });

  it("answers a letter that is none for itself too", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      letter(),
      letter({ body: 7 }),
      letter({ body: "\ud800" }),
      "text",
      letter(),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 400, 400, 400, 201],
    );
  });

  it("finds in it a letter that was sent before, and one that is in it twice", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ idempotency_key: "k1" });
    const results = await batch(core, [
      letter({ idempotency_key: "k1" }),
      letter({ idempotency_key: "k2" }),
      letter({ idempotency_key: "k2" }),
      letter({ idempotency_key: "k2", body: "别的" }),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [200, 201, 200, 409],
    );
    assert.equal(idOf(results[0]), receipt.message_id);
    assert.equal(idOf(results[1]), idOf(results[2]));
    assert.equal((await core.mailOf(ZHIWEI)).length, 2);
  });

  it("may hold an answer to a letter before it", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [
      letter({ id: "ask", type: "request" }),
      letter({ from: ZHIWEI, to: LULU, type: "reply", reply_to: "ask", body: "好" }),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201],
    );
    const [task] = (await core.tasks.list(core.operator, {})).tasks;
    assert.equal(task?.state, "completed");
  });

  it("may hold heartbeats", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [letter({ type: "heartbeat" }), letter()]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201],
    );
    assert.equal((await core.mailOf(ZHIWEI)).length, 1);
  });

  it("is refused letter by letter while the mailbox is full", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 1 });
    await core.send();
    const results = await batch(core, [letter(), letter({ from: ZHIWEI, to: LULU }), letter()]);
    assert.deepEqual(
      results.map((item) => ("error" in item ? item.error.code : item.status)),
      ["mailbox_full", 201, "mailbox_full"],
    );
  });

  it("has at least one letter and at most as many as the limit says", async () => {
    await using core = await coreOnMemory();
    await refused(batch(core, []), "invalid_argument");
    const many = Array.from({ length: LIMITS.batchMessagesMax + 1 }, () => letter());
    await refused(batch(core, many), "too_large", /500/);
    await refused(core.messages.sendBatch(core.operator, { ...inObjects({}), statusOf }), "invalid_argument");
    await refused(
      core.messages.sendBatch(core.operator, { ...inObjects([letter()]), statusOf }),
      "invalid_argument",
    );
    assert.equal((await core.mailOf(ZHIWEI)).length, 0);
  });
});

describe("an atomic batch", () => {
  it("is accepted whole, in its own order", async () => {
    await using core = await coreOnMemory();
    const results = await batch(core, [letter({ body: "一" }), letter({ type: "request" })], true);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201],
    );
    assert.deepEqual(
      (await core.mailOf(ZHIWEI)).map(({ message_id }) => message_id),
      results.map(idOf),
    );
  });

  const wrong: readonly [what: string, letter: unknown][] = [
    ["an unknown recipient", letter({ to: "nobody" })],
    ["an attachment", letter({ attachments: ["a"] })],
    ["a wrong type", letter({ body: 7 })],
    ["a heartbeat", letter({ type: "heartbeat" })],
    ["an unknown task", letter({ task_id: "nothing" })],
  ];
  for (const [what, bad] of wrong) {
    it(`is refused whole for ${what}, and nothing is sent`, async () => {
      await using core = await coreOnMemory();
      const before = await core.store.chainHead("default");
      await assert.rejects(batch(core, [letter(), bad, letter()], true), /messages[[.]1/);
      assert.deepEqual(await core.store.chainHead("default"), before);
      assert.equal((await core.mailOf(ZHIWEI)).length, 0);
    });
  }

  it("is refused whole for a conflict with what was sent before", async () => {
    await using core = await coreOnMemory();
    await core.send({ idempotency_key: "k1", body: "甲" });
    const letters = [letter({ idempotency_key: "k2" }), letter({ idempotency_key: "k1", body: "乙" })];
    const error = await refused(batch(core, letters, true), "conflict", /nothing was sent/);
    assert.equal(error.details?.["index"], 1);
    assert.equal((await core.mailOf(ZHIWEI)).length, 1);
  });

  it("can be repeated as a whole", async () => {
    await using core = await coreOnMemory();
    const letters = [letter({ idempotency_key: "k1" }), letter({ idempotency_key: "k2" })];
    const first = await batch(core, letters, true);
    const again = await batch(core, letters, true);
    assert.deepEqual(
      again.map(({ status }) => status),
      [200, 200],
    );
    assert.deepEqual(again.map(idOf), first.map(idOf));
  });

  it("holds no letter twice", async () => {
    await using core = await coreOnMemory();
    const twice = [letter({ idempotency_key: "k1" }), letter({ idempotency_key: "k1" })];
    await refused(batch(core, twice, true), "conflict", /^messages\[1\]: .*messages\[0\].*"k1"/);
    await refused(
      batch(core, [letter({ id: "m1" }), letter({ id: "m1", body: "别的" })], true),
      "conflict",
      /m1/,
    );
    assert.equal((await core.mailOf(ZHIWEI)).length, 0);
  });

  it("changes a task only once, and says so at once", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const taskId = receipt.task_id ?? "";
    const two = [letter({ task_id: taskId, body: "一" }), letter({ task_id: taskId, body: "二" })];
    const error = await refused(batch(core, two, true), "conflict", new RegExp(`task ${taskId}`));
    assert.deepEqual(error.details, { index: 1, other: 0 });
    assert.equal((await core.mailOf(ZHIWEI)).length, 1);
  });

  it("lets no more letters in than the mailbox has room for", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 2 });
    const messages = Array.from({ length: 5 }, (_, index) => ({
      from: "lulu",
      to: "zhiwei",
      body: `${index}`,
    }));
    const items = await core.messages.sendBatch(core.operator, inObjects({ messages }, 429));
    assert.deepEqual(
      items.map(({ status }) => status),
      [201, 201, 429, 429, 429],
    );
    assert.equal((await core.mailOf("zhiwei")).length, 2);
  });
});
