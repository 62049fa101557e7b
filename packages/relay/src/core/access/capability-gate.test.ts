import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { gatedCore, KAMES } from "../../../testing/gated-core.ts";
import { outcomesOf } from "../../../testing/outcomes.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, operatorOf, rootOperator } from "./principal.ts";

const SEND = `a2a.send.${ZHIWEI}`;
const RECV = `a2a.recv.${LULU}`;
const RESPOND = `a2a.respond.${LULU}`;

/** The data of the only check. */
function told(checks: readonly EventView[]): EventView["data"] | undefined {
  assert.equal(checks.length, 1);
  return checks[0]?.data;
}

describe("asking for work", () => {
  it("needs a capability, which the refusal and the journal name, and nothing is sent", async () => {
    await using core = await gatedCore();
    const error = await refused(
      core.ask(),
      "permission_denied",
      /^a2a send to zhiwei@known-blocks1 requires/,
    );
    assert.match(
      error.message,
      /requires capability "a2a\.send\.zhiwei@known-blocks1"\. Grant it with: a2a-relay capabilities grant/,
    );
    assert.deepEqual(error.details, { required: [SEND], missing: [SEND] });
    const [check, ...more] = await core.checks();
    assert.deepEqual([check?.actor, check?.message_id, more.length], [LULU, undefined, 0]);
    assert.deepEqual(check?.data, {
      agent_id: `a2a-send:${ZHIWEI}`,
      required_actions: [SEND],
      missing_actions: [SEND],
      passed: false,
      authorized_by: [],
    });
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("needs the recipient's consent after that, and only after that", async () => {
    await using core = await gatedCore();
    await core.grant(ZHIWEI, RECV);
    await refused(core.ask(), "permission_denied", /requires capability "a2a\.send/);
    await core.grant(LULU, SEND);
    await core.ask();
    await using other = await gatedCore();
    await other.grant(LULU, SEND);
    const error = await refused(
      other.ask(),
      "permission_denied",
      /^a2a send to zhiwei@known-blocks1 rejected: recipient has not granted capability "a2a\.recv\.lulu@kamac"/,
    );
    assert.deepEqual(error.details, { required: [SEND, RECV], missing: [RECV] });
    const check = told(await other.checks());
    assert.deepEqual([check?.["passed"], check?.["missing_actions"]], [false, [RECV]]);
  });

  it("with both is accepted, and one commit holds the message and the check", async () => {
    await using core = await gatedCore();
    const [send, recv] = [
      await core.grant("lulu", "a2a.send.zhiwei"),
      await core.grant("zhiwei", "a2a.recv.lulu"),
    ];
    await core.checks();
    const { receipt } = await core.ask();
    assert.deepEqual(told(await core.checks()), {
      agent_id: `a2a-send:${ZHIWEI}`,
      required_actions: [SEND, RECV],
      missing_actions: [],
      passed: true,
      authorized_by: [send.id, recv.id],
    });
    const { events } = await core.journal.events(core.operator, {});
    const at = events.findIndex(({ type }) => type === "capability_check");
    assert.deepEqual(
      [events[at + 1]?.type, events[at + 1]?.message_id],
      ["message.accepted", receipt.message_id],
    );
    // The receipts of a message are about the message.
    const { receipts } = await core.messages.get(core.lulu, receipt.message_id);
    assert.deepEqual(
      receipts.map(({ stage }) => stage),
      ["accepted"],
    );
  });

  it("is compared by public key, not by a name that another agent has now", async () => {
    await using core = await gatedCore();
    await core.grant(await core.keyOf(LULU), `a2a.send.${await core.keyOf(ZHIWEI)}`);
    await core.grant(ZHIWEI, `a2a.recv.${await core.keyOf(LULU)}`);
    await core.ask();
    const before = await core.keyOf(ZHIWEI);
    await core.agents.remove(core.operator, ZHIWEI);
    await core.agents.register(core.operator, { agent_id: ZHIWEI });
    assert.notEqual(await core.keyOf(ZHIWEI), before);
    await refused(core.ask(), "permission_denied", /requires capability "a2a\.send/);
  });

  it("needs a grant for this very pair of agents", async () => {
    await using core = await gatedCore();
    await core.grant(LULU, `a2a.send.${KAMES}`);
    await core.grant(KAMES, SEND);
    await core.grant(ZHIWEI, RECV);
    await refused(core.ask(), "permission_denied", /requires capability "a2a\.send/);
    await core.grant(LULU, SEND);
    await core.ask();
  });

  it("is checked for a handoff too", async () => {
    await using core = await gatedCore();
    await core.letAsk();
    const { receipt } = await core.ask();
    const handoff = { to: KAMES, type: "handoff", task_id: receipt.task_id, body: "转给你" };
    await refused(core.messages.send(core.zhiwei, handoff), "permission_denied", /a2a\.send\.kames@kamac/);
    await core.grant(ZHIWEI, `a2a.send.${KAMES}`);
    await refused(core.messages.send(core.zhiwei, handoff), "permission_denied", /has not granted/);
    await core.grant(KAMES, `a2a.recv.${ZHIWEI}`);
    await core.messages.send(core.zhiwei, handoff);
    assert.equal((await core.tasks.get(core.kames, receipt.task_id ?? "")).assignee, KAMES);
  });

  it("in an atomic batch is refused for all of it, and in another for itself only", async () => {
    await using core = await gatedCore();
    await core.letAsk();
    const ask = { to: ZHIWEI, type: "request", body: "一" };
    const messages = [ask, { ...ask, to: KAMES }, { to: KAMES, body: "便条" }];
    await refused(
      core.messages.sendBatch(core.lulu, { messages, atomic: true }),
      "permission_denied",
      /^messages\[1\]: a2a send to kames@kamac requires/,
    );
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
    const results = await core.messages.sendBatch(core.lulu, { messages });
    assert.deepEqual(outcomesOf(results), ["created", "permission_denied", "created"]);
  });
});

describe("what needs no capability", () => {
  it("is every message that neither creates, changes nor answers a task", async () => {
    await using core = await gatedCore();
    for (const type of ["note", "alert", "memory", "status", "heartbeat"]) {
      await core.messages.send(core.lulu, { to: ZHIWEI, type, body: "你好" });
    }
    const [note] = await core.inboxOf(ZHIWEI);
    await core.messages.send(core.zhiwei, {
      to: LULU,
      type: "reply",
      reply_to: note?.message_id,
      body: "好",
    });
    await core.letAsk();
    const { receipt } = await core.ask();
    const about = { task_id: receipt.task_id, body: "还有一点" };
    await core.messages.send(core.lulu, { to: ZHIWEI, ...about });
    await core.messages.send(core.zhiwei, { to: LULU, ...about });
    await core.tasks.cancel(core.lulu, receipt.task_id ?? "", {});
    assert.equal((await core.checks()).length, 1);
  });
});

describe("answering work", () => {
  /** A task from lulu that zhiwei holds. */
  async function asked() {
    const core = await gatedCore();
    await core.letAsk();
    const { receipt } = await core.ask();
    const { lease_id } = await core.lease();
    await core.checks();
    return { core, id: receipt.task_id ?? "", messageId: receipt.message_id, lease_id };
  }

  type Acting = Awaited<ReturnType<typeof asked>>;
  const acts: Readonly<Record<string, (acting: Acting) => Promise<unknown>>> = {
    status: ({ core, id, lease_id }) =>
      core.tasks.reportStatus(core.zhiwei, id, { state: "working", lease_id }),
    artifact: ({ core, id, lease_id }) =>
      core.tasks.addArtifact(core.zhiwei, id, { artifact: { parts: [{ text: "图" }] }, lease_id }),
    complete: ({ core, id, lease_id }) => core.tasks.complete(core.zhiwei, id, { text: "好了", lease_id }),
    fail: ({ core, id, lease_id }) => core.tasks.fail(core.zhiwei, id, { reason: "不行", lease_id }),
    reject: ({ core, id, lease_id }) => core.tasks.reject(core.zhiwei, id, { reason: "不行", lease_id }),
    "a reply": ({ core, messageId, lease_id }) =>
      core.messages.send(core.zhiwei, {
        to: LULU,
        type: "reply",
        reply_to: messageId,
        body: "好了",
        lease_id,
      }),
    "a question": ({ core, messageId, lease_id }) =>
      core.messages.send(core.zhiwei, {
        to: LULU,
        type: "reply",
        reply_to: messageId,
        needs_reply: true,
        body: "哪一页?",
        lease_id,
      }),
    "a status message": ({ core, id, lease_id }) =>
      core.messages.send(core.zhiwei, {
        to: LULU,
        type: "status",
        task_id: id,
        task_state: "working",
        body: "在做",
        lease_id,
      }),
  };
  for (const [name, act] of Object.entries(acts)) {
    it(`by ${name} needs a2a.respond`, async () => {
      const acting = await asked();
      await using core = acting.core;
      await refused(
        act(acting),
        "permission_denied",
        /^a2a respond to task \S+ requires capability "a2a\.respond\.lulu@kamac"\. Grant it with/,
      );
      const failed = told(await core.checks());
      assert.deepEqual([failed?.["agent_id"], failed?.["passed"]], [`a2a-respond:${acting.id}`, false]);
      assert.equal((await core.tasks.get(core.zhiwei, acting.id)).state, "submitted");
      await core.grant(ZHIWEI, RESPOND);
      await act(acting);
      const passed = told(await core.checks());
      assert.deepEqual([passed?.["agent_id"], passed?.["passed"]], [`a2a-respond:${acting.id}`, true]);
    });
  }

  it("again with the same content gives the same answer without a check", async () => {
    const acting = await asked();
    await using core = acting.core;
    const { id } = await core.grant(ZHIWEI, RESPOND);
    await acts["complete"]?.(acting);
    await core.capabilities.revoke(core.operator, { id });
    await core.checks();
    await acts["complete"]?.(acting);
    assert.deepEqual(await core.checks(), []);
  });

  it("is narrowed to a task, a lease and a peer, and each mismatch is recorded", async () => {
    const acting = await asked();
    await using core = acting.core;
    const narrow = [
      { task_id: "another" },
      { lease_id: "another" },
      { peer_pubkey_b58: await core.keyOf(KAMES) },
    ];
    for (const scope of narrow) {
      const { id } = await core.grant(ZHIWEI, RESPOND, { scope });
      const error = await refused(
        core.tasks.complete(core.zhiwei, acting.id, { lease_id: acting.lease_id }),
        "permission_denied",
        /^a2a respond to task \S+ rejected by capability scope: /,
      );
      assert.deepEqual(error.details, { required: [RESPOND], missing: [] });
      const check = told(await core.checks());
      assert.deepEqual([check?.["passed"], typeof check?.["reason"]], [false, "string"]);
      assert.equal((await core.delivery(acting.messageId)).lease?.id, acting.lease_id);
      await core.capabilities.revoke(core.operator, { id });
    }
    const scope = {
      task_id: acting.id,
      lease_id: acting.lease_id,
      peer_pubkey_b58: await core.keyOf(LULU),
    };
    await core.grant(ZHIWEI, RESPOND, { scope });
    await refused(core.tasks.complete(core.zhiwei, acting.id, {}), "permission_denied", /names no lease/);
    await core.tasks.complete(core.zhiwei, acting.id, { lease_id: acting.lease_id });
  });

  it("still works when the requester has left", async () => {
    const acting = await asked();
    await using core = acting.core;
    await core.grant(ZHIWEI, RESPOND);
    await core.agents.remove(core.operator, LULU);
    await acts["complete"]?.(acting);
    assert.equal((await core.tasks.get(core.zhiwei, acting.id)).state, "completed");
  });
});

describe("operators", () => {
  it("need no capability, and the check is recorded", async () => {
    await using core = await gatedCore();
    const { receipt } = await core.send({ type: "request" });
    await core.tasks.complete(core.operator, receipt.task_id ?? "", {});
    const checks = await core.checks();
    assert.deepEqual(
      checks.map(({ actor, data }) => [actor, data["agent_id"], data["passed"], data["authorized_by"]]),
      [
        ["operator", `a2a-send:${ZHIWEI}`, true, ["operator"]],
        ["operator", `a2a-respond:${receipt.task_id ?? ""}`, true, ["operator"]],
      ],
    );
  });
});

describe("where capabilities are off", () => {
  it("nothing is checked and nothing recorded", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.messages.send(core.lulu, { to: ZHIWEI, type: "request", body: "好" });
    await core.tasks.complete(core.zhiwei, receipt.task_id ?? "", {});
    assert.deepEqual((await core.journal.events(core.operator, { type: "capability_check" })).events, []);
  });

  it("each tenant has its own switch, which takes effect at once", async () => {
    await using core = await coreOnMemory();
    const root = rootOperator();
    await core.keys.create(root, { tenant: "acme" });
    const acme = operatorOf("acme");
    for (const agent_id of [LULU, ZHIWEI]) await core.agents.register(acme, { agent_id });
    const lulu = agentOf("acme", LULU);
    const ask = { to: ZHIWEI, type: "request", body: "好" };
    await core.messages.send(lulu, ask);
    await core.tenants.change(root, "acme", { capabilities: "on" });
    await refused(core.messages.send(lulu, ask), "permission_denied", /requires capability/);
    await core.messages.send(core.lulu, ask);
    await core.tenants.change(root, "acme", { capabilities: "off" });
    await core.messages.send(lulu, ask);
  });
});

describe("an agent without a public key", () => {
  it("is told to register again, and so is an agent that writes to it", async () => {
    await using core = await gatedCore();
    await core.letAsk();
    const known = await core.store.agents.get("default", ZHIWEI);
    assert.ok(known);
    const agents = [{ ...known.agent, publicKey: null }];
    await core.store.commit({ tenant: "default", agents, events: [] });
    await refused(core.ask(), "permission_denied", /zhiwei@known-blocks1 has no public key.*register again/);
    assert.equal(told(await core.checks())?.["passed"], false);
  });
});

describe("what cannot be recorded", () => {
  it("is refused, whether it would have passed or not", async () => {
    await using core = await gatedCore();
    const commit = core.store.commit.bind(core.store);
    core.store.commit = () => Promise.reject(new Error("no space"));
    await refused(core.ask(), "unavailable", /audit write failed; refusing to proceed/);
    core.store.commit = commit;
    await core.letAsk();
    core.store.commit = () => Promise.reject(new Error("no space"));
    await assert.rejects(core.ask(), /no space/);
    core.store.commit = commit;
    assert.deepEqual([await core.inboxOf(ZHIWEI), await core.checks()], [[], []]);
  });
});
