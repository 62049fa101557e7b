import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS, MESSAGE_KINDS, URGENCIES } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const FROM_ZHIWEI = { from: ZHIWEI, to: LULU } as const;

async function stagesOf(core: CoreOnMemory, messageId: string): Promise<readonly string[]> {
  const { receipts } = await core.messages.get(core.operator, messageId);
  return receipts.map(({ stage }) => stage);
}

describe("a note", () => {
  it("is only a message: it makes no task", async () => {
    await using core = await coreOnMemory();
    const { receipt, message } = await core.send();
    assert.equal(receipt.task_id, undefined);
    assert.deepEqual([message.type, message.urgency, message.needs_reply], ["note", "normal", false]);
    assert.match(message.id, /^msg_/);
    assert.match(message.thread_id, /^thread_/);
    assert.equal(message.created_at, "2026-05-08T12:00:00.000Z");
  });
});

describe("a request", () => {
  it("makes a task between its sender and its recipient", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", subject: "看看" });
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual(
      [task.state, task.requester, task.assignee, task.message_id, task.subject, task.thread_id],
      ["submitted", LULU, ZHIWEI, receipt.message_id, "看看", receipt.thread_id],
    );
    const [inbox] = await core.inboxOf(ZHIWEI);
    assert.deepEqual([inbox?.task_id, inbox?.message.task_id], [task.id, task.id]);
  });

  it("hangs its task under a parent that its sender takes part in", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac" });
    const { receipt: parent } = await core.send({ type: "request" });
    const parentId = parent.task_id ?? "";
    const { receipt: child } = await core.send({
      from: ZHIWEI,
      to: "kames@kamac",
      type: "request",
      parent: parentId,
    });
    const tree = await core.tasks.tree(core.operator, parentId);
    assert.deepEqual(
      tree.children.map(({ task }) => [task.id, task.parent]),
      [[child.task_id, parentId]],
    );
    await refused(core.send({ type: "request", parent: "nothing" }), "not_found", /^parent: /);
    const unknown = { type: "request", to: ZHIWEI, body: "x", parent: child.task_id } as const;
    await refused(core.messages.send(core.lulu, unknown), "not_found");
  });

  it("is refused with a deadline that has passed", async () => {
    await using core = await coreOnMemory();
    const deadline_ms = core.clock.nowMs();
    await refused(core.send({ type: "request", deadline_ms }), "invalid_argument", /already passed/);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });
});

describe("a reply", () => {
  it("from the recipient completes the task, settles its delivery and is itself the result", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const { receipt: reply } = await core.send({
      ...FROM_ZHIWEI,
      type: "reply",
      reply_to: receipt.message_id,
      body: "收到",
    });
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual(
      [task.state, task.result_status, task.result_message_id, task.status_text],
      ["completed", "ok", reply.message_id, "收到"],
    );
    assert.equal((await core.delivery(receipt.message_id)).state, "acknowledged");
    assert.deepEqual(
      (await core.inboxOf(LULU)).map(({ message_id }) => message_id),
      [reply.message_id],
    );
    assert.deepEqual([reply.task_id, reply.thread_id], [task.id, receipt.thread_id]);
    assert.deepEqual(await stagesOf(core, receipt.message_id), ["accepted", "acknowledged", "replied"]);
  });

  it("that needs a reply asks, and the answer to it sets the task to work again", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const taskId = receipt.task_id ?? "";
    const question = await core.send({
      ...FROM_ZHIWEI,
      type: "reply",
      reply_to: receipt.message_id,
      needs_reply: true,
      body: "哪一个？",
    });
    assert.equal((await core.tasks.get(core.operator, taskId)).state, "input-required");
    assert.equal((await core.delivery(receipt.message_id)).state, "available");
    await core.send({ type: "reply", reply_to: question.receipt.message_id, body: "左边那个" });
    assert.equal((await core.tasks.get(core.operator, taskId)).state, "working");
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
    assert.deepEqual(await stagesOf(core, receipt.message_id), ["accepted", "input-required", "working"]);
    assert.deepEqual(await stagesOf(core, question.receipt.message_id), ["accepted", "replied"]);
  });

  it("to a note is a message, and the note's receipts say so", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    const reply = { ...FROM_ZHIWEI, type: "reply", reply_to: receipt.message_id } as const;
    const { receipt: answer } = await core.send(reply);
    assert.deepEqual([answer.task_id, answer.thread_id], [undefined, receipt.thread_id]);
    assert.deepEqual(await stagesOf(core, receipt.message_id), ["accepted", "replied"]);
  });

  it("again, word for word, is answered as before; another one is refused", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const reply = { ...FROM_ZHIWEI, type: "reply", reply_to: receipt.message_id, body: "好" } as const;
    const first = await core.send(reply);
    const second = await core.send(reply);
    assert.deepEqual(second, { ...first, created: false });
    await refused(core.send({ ...reply, body: "不好" }), "task_finished");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("goes to the requester, and only about its own messages", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac" });
    const { receipt } = await core.send({ type: "request" });
    const reply = { type: "reply", reply_to: receipt.message_id } as const;
    await refused(
      core.send({ ...reply, from: ZHIWEI, to: "kames@kamac" }),
      "invalid_argument",
      /goes to lulu/,
    );
    await refused(core.send({ ...reply, from: "kames@kamac", to: LULU }), "not_found", /^reply_to: /);
    await refused(core.send({ ...reply, ...FROM_ZHIWEI, reply_to: "nothing" }), "not_found");
  });

  it("to leased work must come with its lease", async () => {
    await using core = await coreOnMemory();
    await core.send({ type: "request" });
    const held = await core.lease();
    const reply = { ...FROM_ZHIWEI, type: "reply", reply_to: held.message_id } as const;
    await refused(core.send(reply), "lease_required");
    await refused(core.send({ ...reply, lease_id: "another" }), "lease_lost");
    const { message } = await core.send({ ...reply, lease_id: held.lease_id });
    assert.ok(!("lease_id" in message), "the lease is for the relay, not for the recipient");
    assert.equal((await core.delivery(held.message_id)).state, "acknowledged");
  });
});

describe("a status", () => {
  it("is only a receipt when it names no state", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    await core.send({ ...FROM_ZHIWEI, type: "status", reply_to: receipt.message_id, body: "看到了" });
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "submitted");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("moves the task to the state it names", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const status = { ...FROM_ZHIWEI, type: "status", task_id: receipt.task_id ?? "" } as const;
    for (const task_state of ["working", "auth-required", "input-required"] as const) {
      await core.send({ ...status, task_state, body: `现在 ${task_state}` });
      const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
      assert.deepEqual([task.state, task.status_text], [task_state, `现在 ${task_state}`]);
    }
    await core.send({ ...status, task_state: "failed", body: "没有权限" });
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.deepEqual([task.state, task.result_status], ["failed", "error"]);
  });

  it("cannot cancel or begin the sender's own work", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    for (const task_state of ["submitted", "canceled"] as const) {
      const status = { ...FROM_ZHIWEI, type: "status", task_id: receipt.task_id ?? "", task_state } as const;
      await refused(core.send(status), "invalid_argument", new RegExp(`cannot set ${task_state}`));
    }
  });
});

describe("a memory", () => {
  for (const decision of ["accepted", "declined"] as const) {
    it(`is a proposal that its recipient may have ${decision}`, async () => {
      await using core = await coreOnMemory();
      const { receipt } = await core.send({ type: "memory", body: "露露喜欢茶" });
      assert.equal(receipt.task_id, undefined);
      await core.send({ ...FROM_ZHIWEI, type: "reply", reply_to: receipt.message_id, decision });
      assert.deepEqual(await stagesOf(core, receipt.message_id), [
        "accepted",
        "acknowledged",
        `proposal_${decision}`,
      ]);
      assert.equal((await core.delivery(receipt.message_id)).state, "acknowledged");
      assert.equal((await core.inboxOf(LULU))[0]?.message["decision"], decision);
    });
  }

  it("can be decided on only by whom it was proposed to", async () => {
    await using core = await coreOnMemory();
    const { receipt: memory } = await core.send({ type: "memory" });
    const { receipt: note } = await core.send();
    const decide = { decision: "accepted", type: "reply" } as const;
    await refused(core.send({ ...decide, reply_to: memory.message_id }), "invalid_argument", /^decision: /);
    await refused(core.send({ ...decide, ...FROM_ZHIWEI, reply_to: note.message_id }), "invalid_argument");
    await refused(core.send({ ...decide, ...FROM_ZHIWEI }), "invalid_argument");
    assert.equal((await core.delivery(memory.message_id)).state, "available");
  });
});

describe("a heartbeat", () => {
  it("renews presence and is not kept", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: LULU, ttl_ms: 1_000 });
    core.clock.advance(2_000);
    assert.equal((await core.agents.get(core.operator, LULU)).presence, "offline");
    const { created, receipt, message } = await core.send({ type: "heartbeat", to: LULU, body: "" });
    assert.deepEqual([created, receipt.stage, message.type], [true, "accepted", "heartbeat"]);
    assert.equal((await core.agents.get(core.operator, LULU)).presence, "online");
    await refused(core.messages.get(core.operator, receipt.message_id), "not_found");
    assert.equal((await core.inboxOf(LULU)).length, 0);
    assert.equal((await core.journal.events(core.operator, { type: "message.accepted" })).events.length, 0);
  });

  it("still needs a recipient that exists", async () => {
    await using core = await coreOnMemory();
    await refused(core.send({ type: "heartbeat", to: "stranger" }), "unknown_agent");
  });
});

describe("urgency and kind", () => {
  it("never change the order of messages", async () => {
    await using core = await coreOnMemory();
    const sent: string[] = [];
    for (const urgency of URGENCIES) {
      for (const type of MESSAGE_KINDS.filter((kind) => kind !== "heartbeat" && kind !== "handoff")) {
        sent.push((await core.send({ type, urgency })).receipt.message_id);
      }
    }
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message_id }) => message_id),
      sent,
    );
    const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, { max: 100 });
    assert.deepEqual(
      messages.map(({ message_id }) => message_id),
      sent,
    );
  });
});

describe("any message", () => {
  it("may be sent to an alias, and is kept with the full address", async () => {
    await using core = await coreOnMemory();
    const { message, receipt } = await core.send({ from: "lulu", to: "zhiwei" });
    assert.deepEqual([message.from, message.to, receipt.recipient], [LULU, ZHIWEI, ZHIWEI]);
  });

  it("goes to another agent", async () => {
    await using core = await coreOnMemory();
    await refused(core.send({ to: LULU }), "invalid_argument", /cannot write to itself/);
  });

  it("needs a sender and a recipient that are known", async () => {
    await using core = await coreOnMemory();
    await refused(core.send({ to: "stranger" }), "unknown_agent", /^to: .*"stranger"/);
    await refused(core.send({ from: "stranger" }), "unknown_agent", /^from: /);
    await refused(core.send({ to: "postmaster@relay" }), "unknown_agent", /reads no messages/);
    await refused(core.send({ from: "postmaster@relay" }), "unknown_agent");
    await refused(core.send({ to: "skill:translate" }), "invalid_argument", /skill addresses/);
    await refused(core.send({ to: "http://10.0.0.1/agent" }), "invalid_argument", /^to: .* does not call/);
    const anonymous = { to: ZHIWEI, body: "x" };
    await refused(core.messages.send(core.operator, anonymous), "invalid_argument", /^from: is missing/);
  });

  it("waits for its reader at least a millisecond and at most a year", async () => {
    await using core = await coreOnMemory();
    const within = (ms: number): string => new Date(core.clock.nowMs() + ms).toISOString();
    await refused(core.send({ expires_at: within(0) }), "invalid_argument", /already passed/);
    await refused(
      core.send({ expires_at: within(LIMITS.messageTtlMsMax + 1) }),
      "invalid_argument",
      /365 days/,
    );
    await core.send({ expires_at: within(1) });
    await core.send({ expires_at: within(LIMITS.messageTtlMsMax) });
  });
});
