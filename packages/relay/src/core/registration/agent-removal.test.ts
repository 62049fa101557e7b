import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { countOpen } from "../../../testing/store-builders.ts";

describe("deregistering", () => {
  it("withdraws open messages, leased or not, and notifies their senders", async () => {
    await using core = await coreOnMemory();
    const leased = (await core.send({ body: "租出" })).receipt.message_id;
    await core.lease();
    const waiting = (await core.send({ body: "等着" })).receipt.message_id;
    const settled = (await core.send({ body: "看过" })).receipt.message_id;
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [settled] });
    assert.deepEqual(await core.agents.remove(core.operator, "zhiwei"), { removed: ZHIWEI });
    for (const messageId of [leased, waiting]) {
      const delivery = await core.delivery(messageId);
      assert.deepEqual([delivery.state, delivery.reason], ["withdrawn", `${ZHIWEI} is no longer registered`]);
    }
    assert.equal((await core.delivery(settled)).state, "acknowledged");
    assert.deepEqual(
      new Set((await core.inboxOf(LULU)).map(({ message }) => message.reply_to)),
      new Set([leased, waiting]),
    );
  });

  it("ends the tasks that were asked for", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    await core.agents.remove(core.operator, ZHIWEI);
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.equal(task.state, "failed");
    const results = await core.inboxOf(LULU);
    assert.deepEqual(
      results.map(({ message }) => [message.from, message["task_state"]]),
      [["postmaster@relay", "failed"]],
    );
  });

  it("fails the tasks whose messages were acknowledged, and notifies their requesters", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", body: "请翻译" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    await core.agents.remove(core.operator, ZHIWEI);
    const task = await core.tasks.get(core.operator, receipt.task_id ?? "");
    assert.equal(task.state, "failed");
    const [result, ...others] = await core.inboxOf(LULU);
    assert.equal(others.length, 0);
    assert.match(result?.message.body ?? "", /no longer registered/);
  });

  it("still answers a retry of what was sent before", async () => {
    await using core = await coreOnMemory();
    const sent = await core.send({ idempotency_key: "k", body: "你好" });
    await core.agents.remove(core.operator, ZHIWEI);
    const again = await core.send({ to: ZHIWEI, idempotency_key: "k", body: "你好" });
    assert.equal(again.created, false);
    assert.deepEqual(again.receipt, sent.receipt);
    await refused(core.send({ to: ZHIWEI, idempotency_key: "k2", body: "你好" }), "unknown_agent");
  });

  it("closes the mailbox: the name is unknown to senders, readers and lists", async () => {
    await using core = await coreOnMemory();
    await core.agents.remove(core.operator, ZHIWEI);
    for (const name of [ZHIWEI, "zhiwei"]) {
      await refused(core.send({ to: name }), "unknown_agent");
      await refused(core.mailboxes.read(core.operator, name, {}), "unknown_agent");
      await refused(core.agents.get(core.operator, name), "unknown_agent");
      await refused(core.agents.remove(core.operator, name), "unknown_agent");
      await refused(core.agents.heartbeat(core.operator, name), "unknown_agent");
    }
    const { items, total } = await core.agents.list(core.operator, {});
    assert.deepEqual([items.map(({ agent_id }) => agent_id), total], [[LULU], 1]);
  });

  it("keeps the id: another agent cannot take it as an alias", async () => {
    await using core = await coreOnMemory();
    await core.agents.remove(core.operator, ZHIWEI);
    const taken = core.agents.register(core.operator, { agent_id: LULU, aliases: [ZHIWEI] });
    await refused(taken, "conflict");
  });

  it("frees the aliases", async () => {
    await using core = await coreOnMemory();
    await core.agents.remove(core.operator, ZHIWEI);
    await core.agents.register(core.operator, { agent_id: LULU, aliases: ["zhiwei"] });
    assert.equal((await core.agents.get(core.operator, "zhiwei")).agent_id, LULU);
  });

  it("withdraws more messages than one step takes", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 250; index += 1) await core.send({ type: "status" });
    await core.agents.remove(core.operator, ZHIWEI);
    assert.equal(await countOpen(core.store, "default", ZHIWEI), 0);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });
});

describe("registering again", () => {
  it("begins with an empty mailbox and a clean record", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, display_name: "旧", ttl_ms: 1_000 });
    const old = (await core.send()).receipt.message_id;
    await core.agents.remove(core.operator, ZHIWEI);
    core.clock.advance(DAY_MS);
    const { created, agent } = await core.agents.register(core.operator, { agent_id: ZHIWEI });
    assert.equal(created, true);
    assert.deepEqual(
      [agent.display_name, agent.aliases, agent.ttl_ms, agent.registered_at],
      [ZHIWEI, [], undefined, "2026-05-09T12:00:00.000Z"],
    );
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
    assert.equal((await core.delivery(old)).state, "withdrawn");
    const fresh = (await core.send()).receipt.message_id;
    assert.deepEqual(
      (await core.inboxOf(ZHIWEI)).map(({ message_id }) => message_id),
      [fresh],
    );
  });

  it("is finished at the next start when a crash interrupted it", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    await core.lease();
    const known = await core.store.agents.get("default", ZHIWEI);
    assert.ok(known);
    const agents = [{ ...known.agent, removedAtMs: core.clock.nowMs() }];
    await core.store.commit({ tenant: "default", agents, events: [] });
    await core.agents.finishRemovals(core.operator);
    assert.equal((await core.delivery(receipt.message_id)).state, "withdrawn");
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "failed");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("accepts no message that was under way during the removal", async () => {
    await using core = await coreOnMemory();
    const sends = Array.from({ length: 300 }, () =>
      core.send().then(
        () => "sent",
        () => "refused",
      ),
    );
    const removal = core.agents.remove(core.operator, ZHIWEI);
    const outcomes = await Promise.all(sends);
    await removal;
    assert.ok(outcomes.includes("refused") || outcomes.includes("sent"));
    assert.equal(await countOpen(core.store, "default", ZHIWEI), 0);
  });

  it("does not see messages that a crash left open after the removal", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    const known = await core.store.agents.get("default", ZHIWEI);
    assert.ok(known);
    const agents = [{ ...known.agent, removedAtMs: core.clock.nowMs() }];
    await core.store.commit({ tenant: "default", agents, events: [] });
    await core.agents.register(core.operator, { agent_id: ZHIWEI });
    assert.equal((await core.delivery(receipt.message_id)).state, "withdrawn");
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });
});

describe("an id that another owner had before", () => {
  /** lulu sends zhiwei a request and is removed; the id gets a new owner. */
  async function takenOver() {
    const core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request", body: "前任的秘密" });
    core.clock.advance(1_000);
    await core.agents.remove(core.operator, LULU);
    core.clock.advance(1_000);
    await core.agents.register(core.operator, { agent_id: LULU });
    return { core, messageId: receipt.message_id, taskId: receipt.task_id ?? "" };
  }

  it("does not open what was written or asked then", async () => {
    const { core, messageId, taskId } = await takenOver();
    await using _ = core;
    await refused(core.messages.get(core.lulu, messageId), "not_found");
    await refused(core.tasks.get(core.lulu, taskId), "not_found");
    await refused(core.tasks.tree(core.lulu, taskId), "not_found");
    await refused(core.tasks.cancel(core.lulu, taskId, {}), "not_found");
    for (const more of [{ task_id: taskId }, { type: "request", parent: taskId }] as const) {
      await refused(core.messages.send(core.lulu, { to: ZHIWEI, body: "是我", ...more }), "not_found");
    }
    assert.deepEqual((await core.tasks.list(core.lulu, {})).tasks, []);
    assert.equal((await core.tasks.list(core.operator, {})).tasks.length, 1);
    assert.equal((await core.messages.get(core.operator, messageId)).message.body, "前任的秘密");
  });

  it("gets neither the result nor the notice that the other would have got", async () => {
    const { core, taskId } = await takenOver();
    await using _ = core;
    await core.tasks.complete(core.zhiwei, taskId, { text: "只给前任" });
    assert.deepEqual(await core.inboxOf(LULU), []);
    assert.equal((await core.tasks.get(core.zhiwei, taskId)).state, "completed");
  });

  it("opens what came since, and everything to agents that were never removed", async () => {
    const { core } = await takenOver();
    await using _ = core;
    const { receipt } = await core.messages.send(core.lulu, { to: ZHIWEI, type: "request", body: "新的" });
    assert.equal((await core.tasks.get(core.lulu, receipt.task_id ?? "")).state, "submitted");
    assert.equal((await core.tasks.list(core.lulu, {})).tasks.length, 1);
    assert.equal((await core.tasks.list(core.zhiwei, {})).tasks.length, 2);
    // An update is no new registration.
    core.clock.advance(1_000);
    await core.agents.register(core.lulu, { agent_id: LULU, display_name: "露露" });
    assert.equal((await core.messages.get(core.lulu, receipt.message_id)).message.body, "新的");
  });
});
