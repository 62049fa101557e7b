import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { outcomesOf } from "../../../testing/outcomes.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, DEFAULT_TENANT, type Principal } from "./principal.ts";

const KAMES = "kames@kamac" as AgentId;

/** A request from lulu to zhiwei, and kames, an agent that takes no part in it. */
async function setup(settings: Parameters<typeof coreOnMemory>[0] = {}) {
  const core = await coreOnMemory(settings);
  await core.agents.register(core.operator, { agent_id: KAMES });
  const { receipt } = await core.send({ type: "request", body: "只给知微" });
  const kames = agentOf(DEFAULT_TENANT, KAMES);
  return { core, kames, messageId: receipt.message_id, taskId: receipt.task_id ?? "" };
}

describe("an agent that sends", () => {
  it("is the principal, whatever the message says", async () => {
    const { core } = await setup();
    await using _ = core;
    const draft = { to: ZHIWEI, body: "是我" };
    const { message } = await core.messages.send(core.lulu, draft);
    assert.equal(message.from, LULU);
    assert.equal((await core.messages.send(core.lulu, { ...draft, from: "lulu" })).message.from, LULU);
    await refused(core.messages.send(core.lulu, { ...draft, from: KAMES }), "permission_denied");
    const batch = { messages: [draft, { ...draft, from: KAMES }] };
    const results = await core.messages.sendBatch(core.lulu, batch);
    assert.deepEqual(outcomesOf(results), ["created", "permission_denied"]);
    await refused(
      core.messages.sendBatch(core.lulu, { ...batch, atomic: true }),
      "permission_denied",
      /^messages\[1\]: /,
    );
  });
});

describe("another agent's mailbox", () => {
  it("is closed: no reading, leasing or settling", async () => {
    const { core, kames, messageId } = await setup();
    await using _ = core;
    const { mailboxes } = core;
    const ref = { message_id: messageId, lease_id: "l" };
    for (const stranger of [kames, core.lulu]) {
      await refused(mailboxes.read(stranger, ZHIWEI, {}), "permission_denied");
      await refused(mailboxes.read(stranger, "zhiwei", { peek: true }), "permission_denied");
      await refused(mailboxes.lease(stranger, ZHIWEI, {}), "permission_denied");
      await refused(mailboxes.ack(stranger, ZHIWEI, { message_ids: [messageId] }), "permission_denied");
      await refused(
        mailboxes.renew(stranger, ZHIWEI, { leases: [ref], lease_ms: 1_000 }),
        "permission_denied",
      );
      await refused(mailboxes.release(stranger, ZHIWEI, { leases: [ref] }), "permission_denied");
      await refused(mailboxes.fail(stranger, ZHIWEI, { ...ref, reason: "x" }), "permission_denied");
    }
    const delivery = await core.delivery(messageId);
    assert.deepEqual([delivery.state, delivery.delivered_at], ["available", undefined]);
  });

  it("cannot be reached through the caller's own", async () => {
    const { core, kames, messageId } = await setup();
    await using _ = core;
    const { results } = await core.mailboxes.ack(kames, KAMES, { message_ids: [messageId] });
    assert.equal(results[0]?.ok === false && results[0].error.code, "not_found");
    await refused(core.mailboxes.fail(kames, KAMES, { message_id: messageId, reason: "x" }), "not_found");
    const { lease_id } = await core.lease();
    const leases = [{ message_id: messageId, lease_id }];
    const renewed = await core.mailboxes.renew(kames, KAMES, { leases, lease_ms: 1_000 });
    assert.equal(renewed.results[0]?.ok === false && renewed.results[0].error.code, "not_found");
    assert.equal((await core.delivery(messageId)).lease?.expires_at, undefined);
  });

  it("is open to its owner and to operators", async () => {
    const { core, messageId } = await setup();
    await using _ = core;
    for (const owner of [core.zhiwei, core.operator]) {
      const { messages } = await core.mailboxes.read(owner, ZHIWEI, {});
      assert.deepEqual(
        messages.map(({ message_id }) => message_id),
        [messageId],
      );
    }
  });
});

describe("a message between two agents", () => {
  it("does not exist for a third", async () => {
    const { core, kames, messageId, taskId } = await setup();
    await using _ = core;
    const unknown = await refused(core.messages.get(kames, "nothing"), "not_found");
    const hidden = await refused(core.messages.get(kames, messageId), "not_found");
    assert.doesNotMatch(hidden.message, /lulu|zhiwei/);
    assert.equal(hidden.details, unknown.details);
    assert.equal(hidden.message.replace(messageId, "nothing"), unknown.message);
    const noTask = await refused(core.tasks.get(kames, "nothing"), "not_found");
    const hiddenTask = await refused(core.tasks.get(kames, taskId), "not_found");
    assert.equal(hiddenTask.message.replace(taskId, "nothing"), noTask.message);
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.equal(events.length, 4, "a read of a missing message is recorded like the others");
    await refused(core.tasks.get(kames, taskId), "not_found");
    await refused(core.tasks.tree(kames, taskId), "not_found");
    await refused(
      core.messages.send(kames, { to: LULU, type: "reply", reply_to: messageId, body: "x" }),
      "not_found",
    );
  });

  for (const [member, capabilities] of [
    ["task_id", true],
    ["task_id", false],
    ["parent", true],
    ["parent", false],
  ] as const) {
    const where = capabilities ? "with capabilities on" : "with capabilities off";
    it(`does not exist for a third that names it as ${member}, ${where}`, async () => {
      const { core, kames, taskId } = await setup({ capabilities });
      await using _ = core;
      const send = (id: string) =>
        core.messages.send(kames, { to: ZHIWEI, type: "request", body: "x", [member]: id });
      const unknown = await refused(send("nothing"), "not_found");
      const hidden = await refused(send(taskId), "not_found");
      assert.equal(hidden.message.replace(taskId, "nothing"), unknown.message);
    });
  }

  it("is visible to both of them", async () => {
    const { core, messageId, taskId } = await setup();
    await using _ = core;
    for (const party of [core.lulu, core.zhiwei, core.operator]) {
      assert.equal((await core.messages.get(party, messageId)).message.body, "只给知微");
      assert.equal((await core.tasks.get(party, taskId)).id, taskId);
    }
  });
});

describe("a task", () => {
  type TaskAct = (core: CoreOnMemory, caller: Principal, taskId: string) => Promise<unknown>;
  const work: Readonly<Record<string, TaskAct>> = {
    status: (core, caller, id) => core.tasks.reportStatus(caller, id, { state: "working" }),
    artifacts: (core, caller, id) =>
      core.tasks.addArtifact(caller, id, { artifact: { parts: [{ text: "x" }] } }),
    complete: (core, caller, id) => core.tasks.complete(caller, id, {}),
    fail: (core, caller, id) => core.tasks.fail(caller, id, { reason: "x" }),
    reject: (core, caller, id) => core.tasks.reject(caller, id, { reason: "x" }),
  };
  for (const [name, act] of Object.entries(work)) {
    it(`is worked on (${name}) only by its worker`, async () => {
      const { core, kames, taskId } = await setup();
      await using _ = core;
      await refused(act(core, kames, taskId), "not_found");
      await refused(act(core, core.lulu, taskId), "permission_denied");
      assert.equal((await core.tasks.get(core.operator, taskId)).state, "submitted");
      await act(core, core.zhiwei, taskId);
    });
  }

  it("is canceled only by its requester", async () => {
    const { core, kames, taskId } = await setup();
    await using _ = core;
    await refused(core.tasks.cancel(kames, taskId, {}), "not_found");
    await refused(core.tasks.cancel(core.zhiwei, taskId, {}), "permission_denied");
    assert.equal((await core.tasks.cancel(core.lulu, taskId, {})).state, "canceled");
  });

  it("is listed only to agents that take part in it", async () => {
    const { core, kames, taskId } = await setup();
    await using _ = core;
    for (const party of [core.lulu, core.zhiwei, core.operator]) {
      const { tasks } = await core.tasks.list(party, {});
      assert.deepEqual(
        tasks.map(({ id }) => id),
        [taskId],
      );
    }
    assert.deepEqual((await core.tasks.list(kames, {})).tasks, []);
    await refused(core.tasks.list(kames, { agent: LULU }), "permission_denied");
    assert.equal((await core.tasks.list(core.operator, { agent: KAMES })).tasks.length, 0);
  });

  it("shows in its tree only tasks that the caller takes part in", async () => {
    const { core, taskId } = await setup();
    await using _ = core;
    const child = await core.send({ from: ZHIWEI, to: KAMES, type: "request", parent: taskId });
    const treeFor = async (caller: Principal): Promise<readonly string[]> =>
      (await core.tasks.tree(caller, taskId)).children.map(({ task }) => task.id);
    assert.deepEqual(await treeFor(core.zhiwei), [child.receipt.task_id]);
    assert.deepEqual(await treeFor(core.operator), [child.receipt.task_id]);
    assert.deepEqual(await treeFor(core.lulu), []);
  });
});

describe("an agent", () => {
  it("changes its own registration and no other", async () => {
    const { core, kames } = await setup();
    await using _ = core;
    await core.agents.register(kames, { agent_id: KAMES, display_name: "Kames" });
    await refused(
      core.agents.register(kames, { agent_id: LULU, display_name: "Kames" }),
      "permission_denied",
    );
    await refused(core.agents.register(kames, {}), "permission_denied");
    await refused(core.agents.heartbeat(kames, LULU), "permission_denied");
    await refused(core.agents.remove(kames, "lulu"), "permission_denied");
    assert.equal((await core.agents.get(kames, LULU)).display_name, LULU);
    assert.equal((await core.agents.list(kames, {})).total, 3);
  });
});

describe("what only operators may do", () => {
  const acts: Readonly<Record<string, (core: CoreOnMemory, caller: Principal) => Promise<unknown>>> = {
    "read events": (core, caller) => core.journal.events(caller, {}),
    "list threads": (core, caller) => core.journal.threads(caller, {}),
    "read a thread": (core, caller) => core.journal.thread(caller, "t1"),
    "verify the journal": (core, caller) => core.journal.verify(caller),
    "read the queue": (core, caller) => core.repairs.queue(caller, {}),
    repair: (core, caller) =>
      core.repairs.repair(caller, {
        message_id: "m1",
        reason: "卡住了",
        command: { action: "requeue", duplicate_risk: "operator_accepted" },
      }),
    "retry stale work": (core, caller) => core.repairs.retryStale(caller, {}),
  };
  for (const [name, act] of Object.entries(acts)) {
    it(`is denied to agents: ${name}`, async () => {
      const { core, kames } = await setup();
      await using _ = core;
      for (const agent of [kames, core.lulu, core.zhiwei])
        await refused(act(core, agent), "permission_denied");
    });
  }
});
