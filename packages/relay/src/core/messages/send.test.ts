import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

describe("the same key", () => {
  it("with the same content gives the same receipt, and one message", async () => {
    await using core = await coreOnMemory();
    const message = { type: "request", body: "一次就好", idempotency_key: "k1" } as const;
    const first = await core.send(message);
    core.clock.advance(DAY_MS);
    const second = await core.send(message);
    assert.deepEqual([first.created, second.created], [true, false]);
    assert.deepEqual(second.receipt, first.receipt);
    assert.deepEqual(second.message, first.message);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    assert.equal((await core.tasks.list(core.operator, {})).tasks.length, 1);
  });

  it("with other content is a conflict that names the first message", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ body: "甲", idempotency_key: "k1" });
    const error = await refused(core.send({ body: "乙", idempotency_key: "k1" }), "conflict", /"k1"/);
    assert.deepEqual(error.details, { message_id: receipt.message_id });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("does not mind the order of members, nor what a retry carries anew", async () => {
    await using core = await coreOnMemory();
    const first = await core.messages.send(core.operator, {
      from: LULU,
      to: ZHIWEI,
      body: "甲",
      idempotency_key: "k1",
      x_labels: { a: 1, b: [1, 2] },
      traceparent: "00-1-1-01",
      created_at: "2026-05-08T08:30:00Z",
    });
    const again = await core.messages.send(core.operator, {
      x_labels: { b: [1, 2], a: 1 },
      created_at: "2026-05-08T09:30:00Z",
      id: "another-id",
      traceparent: "00-2-2-01",
      idempotency_key: "k1",
      body: "甲",
      to: "zhiwei",
      from: "lulu",
    });
    assert.deepEqual([again.created, again.receipt], [false, first.receipt]);
  });

  it("tells the long form from the short one, because they promise different things", async () => {
    await using core = await coreOnMemory();
    await core.send({ idempotency_key: "k1" });
    const idempotency = { duplicate_safety: "idempotent", key: "k1" } as const;
    await refused(core.send({ idempotency }), "conflict");
  });

  it("belongs to one sender and one recipient", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac" });
    const pairs = [
      [LULU, ZHIWEI],
      [ZHIWEI, LULU],
      [LULU, "kames@kamac"],
      ["kames@kamac", ZHIWEI],
    ] as const;
    const ids = new Set<string>();
    for (const [from, to] of pairs) {
      const { created, receipt } = await core.send({ from, to, idempotency_key: "k1", body: `to ${to}` });
      assert.equal(created, true);
      ids.add(receipt.message_id);
    }
    assert.equal(ids.size, pairs.length);
  });

  it("from a hundred callers at once is one message and a hundred equal receipts", async () => {
    await using core = await coreOnMemory();
    const message = { type: "request", body: "同时", idempotency_key: "k1" } as const;
    const answers = await Promise.all(Array.from({ length: 100 }, () => core.send(message)));
    assert.equal(answers.filter(({ created }) => created).length, 1);
    assert.equal(new Set(answers.map(({ receipt }) => JSON.stringify(receipt))).size, 1);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    assert.equal((await core.journal.events(core.operator, { type: "message.accepted" })).events.length, 1);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });

  it("from many callers at once with different content lets one of them win", async () => {
    await using core = await coreOnMemory();
    const sends = Array.from({ length: 20 }, (_, index) =>
      core.send({ body: `第 ${index} 个`, idempotency_key: "k1" }),
    );
    const settled = await Promise.allSettled(sends);
    assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
    for (const each of settled) {
      if (each.status === "rejected") await refused(Promise.reject(each.reason as Error), "conflict");
    }
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("is answered as before although the mailbox is full by now", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 1 });
    const first = await core.send({ idempotency_key: "k1" });
    await refused(core.send({ idempotency_key: "k2" }), "mailbox_full");
    assert.deepEqual((await core.send({ idempotency_key: "k1" })).receipt, first.receipt);
  });

  it("is answered as before although the task it asked for is over", async () => {
    await using core = await coreOnMemory();
    const request = { type: "request", idempotency_key: "k1" } as const;
    const first = await core.send(request);
    await core.tasks.complete(core.operator, first.receipt.task_id ?? "", {});
    assert.deepEqual((await core.send(request)).receipt, first.receipt);
    const { receipt } = first;
    const reply = { from: ZHIWEI, to: LULU, task_id: receipt.task_id ?? "", idempotency_key: "r1" } as const;
    await refused(core.send({ ...reply, type: "reply" }), "task_finished");
  });

  it("still answers after its message was archived, and is forgotten after its time", async () => {
    await using core = await coreOnMemory({ messageRetentionMs: DAY_MS });
    const message = { type: "request", body: "老信", idempotency_key: "k1" } as const;
    const { receipt } = await core.send(message);
    await core.tasks.complete(core.operator, receipt.task_id ?? "", {});
    core.clock.advance(DAY_MS + 1);
    await core.retention.step(DEFAULT_TENANT);
    await refused(core.messages.get(core.operator, receipt.message_id), "not_found");
    const late = await core.send(message);
    assert.deepEqual([late.created, late.receipt], [false, receipt]);
    assert.equal(late.message.id, receipt.message_id);
    await refused(core.send({ ...message, body: "别的" }), "conflict");
    core.clock.advance(LIMITS.sendKeyKeptMs);
    await core.retention.step(DEFAULT_TENANT);
    assert.equal((await core.send(message)).created, false, "kept for the whole of its time");
    core.clock.advance(1);
    await core.retention.step(DEFAULT_TENANT);
    assert.equal((await core.send(message)).created, true);
  });
});

describe("an id that the sender chose", () => {
  it("without a key is one: the same message gives the same receipt", async () => {
    await using core = await coreOnMemory();
    const first = await core.send({ id: "m1", body: "甲" });
    const again = await core.send({ id: "m1", body: "甲" });
    assert.deepEqual([again.created, again.receipt], [false, first.receipt]);
    assert.equal(first.receipt.message_id, "m1");
  });

  it("is refused for another message, another recipient, another sender", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac" });
    await core.send({ id: "m1", body: "甲" });
    await refused(core.send({ id: "m1", body: "乙" }), "conflict");
    await refused(core.send({ id: "m1", body: "甲", to: "kames@kamac" }), "conflict", /choose another id/);
    await refused(core.send({ id: "m1", body: "甲", from: ZHIWEI, to: LULU }), "conflict");
    await refused(core.send({ id: "m1", body: "甲", idempotency_key: "k" }), "conflict");
  });

  it("does not have to be repeated when there is a key", async () => {
    await using core = await coreOnMemory();
    const first = await core.send({ id: "m1", idempotency_key: "k1" });
    const again = await core.send({ id: "m2", idempotency_key: "k1" });
    assert.deepEqual([again.created, again.receipt.message_id], [false, first.receipt.message_id]);
  });

  it("from a hundred callers at once is one message", async () => {
    await using core = await coreOnMemory();
    const answers = await Promise.all(Array.from({ length: 100 }, () => core.send({ id: "m1" })));
    assert.equal(answers.filter(({ created }) => created).length, 1);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });
});

describe("no key and no id", () => {
  it("make every send a message of its own", async () => {
    await using core = await coreOnMemory();
    const [one, two] = [await core.send(), await core.send()];
    assert.notEqual(one.receipt.message_id, two.receipt.message_id);
    assert.ok(one.receipt.message_id < two.receipt.message_id, "later ids sort later");
  });
});
