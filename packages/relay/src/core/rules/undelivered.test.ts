import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MESSAGE_KINDS, type MessageKind } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";

const POSTMASTER = "postmaster@relay";

async function giveUp(core: CoreOnMemory, agent: string, messageId: string): Promise<void> {
  await core.mailboxes.fail(core.operator, agent, { message_id: messageId, reason: "看不懂" });
}

describe("a notice", () => {
  it("comes from the postmaster, in the same thread, and says which message and why", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ subject: "急事", thread_id: "t1" });
    await giveUp(core, ZHIWEI, receipt.message_id);
    const [notice] = await core.inboxOf(LULU);
    assert.ok(notice);
    const { message } = notice;
    assert.deepEqual(
      [message.from, message.type, message.subject, message.thread_id, message.reply_to],
      [POSTMASTER, "status", "Undeliverable: 急事", "t1", receipt.message_id],
    );
    assert.match(message.body, /note "急事" to zhiwei@known-blocks1 is dead: 看不懂/);
    assert.deepEqual(message["notice"], { delivery_state: "dead", reason: "看不懂" });
    const events = await core.journal.events(core.operator, { type: "message.accepted", agent: LULU });
    assert.equal(events.events.at(-1)?.actor, POSTMASTER);
  });

  const quiet: readonly MessageKind[] = ["status", "heartbeat"];
  for (const type of MESSAGE_KINDS.filter((kind) => !quiet.includes(kind))) {
    it(`or a result tells the sender of a ${type} exactly once`, async () => {
      await using core = await coreOnMemory();
      const { receipt } = await core.send({ type });
      await giveUp(core, ZHIWEI, receipt.message_id);
      assert.deepEqual(
        (await core.inboxOf(LULU)).map(({ message }) => message.reply_to),
        [receipt.message_id],
      );
    });
  }

  it("is never caused by a status", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "status" });
    await giveUp(core, ZHIWEI, receipt.message_id);
    assert.equal((await core.inboxOf(LULU)).length, 0);
  });

  it("is never caused by a notice or a result, however they end", async () => {
    await using core = await coreOnMemory();
    const note = await core.send();
    await giveUp(core, ZHIWEI, note.receipt.message_id);
    const request = await core.send({ type: "request" });
    await core.tasks.complete(core.operator, request.receipt.task_id ?? "", { text: "好" });
    const asked = await core.send({ type: "request" });
    const reply = { from: ZHIWEI, to: LULU, type: "reply", reply_to: asked.receipt.message_id } as const;
    await core.send(reply);
    const [notice, result, answer] = await core.inboxOf(LULU);
    await giveUp(core, LULU, notice?.message_id ?? "");
    await giveUp(core, LULU, result?.message_id ?? "");
    core.clock.advance(8 * DAY_MS);
    await core.sweep.step();
    assert.equal((await core.delivery(answer?.message_id ?? "")).state, "expired");
    assert.deepEqual([(await core.inboxOf(ZHIWEI)).length, (await core.inboxOf(LULU)).length], [0, 0]);
  });

  it("is caused by a question that is never read", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const question = await core.send({
      from: ZHIWEI,
      to: LULU,
      type: "reply",
      reply_to: receipt.message_id,
      needs_reply: true,
    });
    await giveUp(core, LULU, question.receipt.message_id);
    const notices = (await core.inboxOf(ZHIWEI)).filter(
      ({ sender_agent_id }) => sender_agent_id === POSTMASTER,
    );
    assert.equal(notices.length, 1);
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "input-required");
  });

  it("about a follow-up leaves its task alone", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const followUp = await core.send({ task_id: receipt.task_id ?? "" });
    await giveUp(core, ZHIWEI, followUp.receipt.message_id);
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "submitted");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("is not written to a sender that has gone", async () => {
    await using core = await coreOnMemory();
    const note = await core.send();
    const request = await core.send({ type: "request" });
    await core.agents.remove(core.operator, LULU);
    await giveUp(core, ZHIWEI, note.receipt.message_id);
    await giveUp(core, ZHIWEI, request.receipt.message_id);
    assert.equal((await core.tasks.get(core.operator, request.receipt.task_id ?? "")).state, "failed");
    await core.agents.register(core.operator, { agent_id: LULU });
    assert.equal((await core.inboxOf(LULU)).length, 0);
  });

  it("reaches a mailbox that is full", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 1 });
    await core.send({ from: ZHIWEI, to: LULU });
    const { receipt } = await core.send();
    await giveUp(core, ZHIWEI, receipt.message_id);
    assert.equal((await core.inboxOf(LULU)).length, 2);
  });

  it("shortens a long subject without breaking a character in two", async () => {
    await using core = await coreOnMemory();
    for (const offset of ["", "x"]) {
      const subject = `${offset}${"🦊".repeat(240)}`;
      const note = await core.send({ subject });
      await giveUp(core, ZHIWEI, note.receipt.message_id);
      const request = await core.send({ subject: `${offset}${"🦊".repeat(249)}`, type: "request" });
      await core.tasks.complete(core.operator, request.receipt.task_id ?? "", {});
    }
    for (const { message } of await core.inboxOf(LULU)) assert.ok(message.subject.isWellFormed());
  });
});

describe("canceling", () => {
  it("is final at once: deliveries are withdrawn, the requester gets one result", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const task = await core.tasks.cancel(core.operator, receipt.task_id ?? "", { reason: "不用了" });
    assert.deepEqual([task.state, task.status_text], ["canceled", "不用了"]);
    assert.equal((await core.delivery(receipt.message_id)).state, "withdrawn");
    assert.deepEqual(
      (await core.inboxOf(LULU)).map(({ message }) => [message.from, message["task_state"], message.body]),
      [[POSTMASTER, "canceled", "不用了"]],
    );
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0, "no worker held it, so none has to stop");
    assert.deepEqual(await core.tasks.cancel(core.operator, task.id, {}), task);
  });

  it("tells the lease holder to stop, and again when it finishes", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const { message_id, lease_id } = await core.lease();
    await core.tasks.cancel(core.operator, receipt.task_id ?? "", {});
    const [notice] = await core.inboxOf(ZHIWEI);
    assert.deepEqual([notice?.message.from, notice?.message["task_state"]], [POSTMASTER, "canceled"]);
    const { results } = await core.mailboxes.ack(core.operator, ZHIWEI, {
      leases: [{ message_id, lease_id }],
    });
    assert.equal(results[0]?.ok === false && results[0].error.code, "task_canceled");
  });
});
