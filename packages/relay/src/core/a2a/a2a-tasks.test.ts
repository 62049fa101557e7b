import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { A2aCaller } from "./a2a-request.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const NOW = { returnImmediately: true };

function asks(text: string, clientTaskId: string): object {
  return { message: { role: "ROLE_USER", parts: [{ text }] }, configuration: NOW, clientTaskId };
}

function callerOf(core: CoreOnMemory, said: Partial<A2aCaller> = {}): A2aCaller {
  const { operator: principal } = core;
  return { principal, agentId: ZHIWEI, version: "0.1", extensions: [], idempotencyKey: undefined, ...said };
}

describe("a task that its caller named itself", () => {
  it("is added to at the agent that has it, and at no other", async () => {
    await using core = await coreOnMemory();
    await core.a2a.send(callerOf(core), asks("第一", "工作-1"), {});
    await core.a2a.send(callerOf(core), asks("再说", "工作-1"), {});
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
    const sent = core.a2a.send(callerOf(core, { agentId: LULU }), asks("秘密", "工作-1"), {});
    const { message } = await refused(sent, "conflict");
    assert.match(message, /工作-1/);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
    assert.deepEqual(await core.inboxOf(LULU), []);
  });

  it("is not found at the endpoint of another agent", async () => {
    await using core = await coreOnMemory();
    await core.a2a.send(callerOf(core), asks("第一", "工作-1"), {});
    assert.equal((await core.a2a.get(callerOf(core), { id: "工作-1" })).id, "工作-1");
    await refused(core.a2a.get(callerOf(core, { agentId: LULU }), { id: "工作-1" }), "not_found");
  });
});

describe("a caller that may only read a task", () => {
  it("gets A2A's error when it adds to the task, and nothing is sent", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.messages.send(
      core.lulu,
      { type: "request", to: ZHIWEI, body: "看看" },
      { isAsked: true },
    );
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "插话" }], taskId: receipt.task_id };
    const added = core.a2a.send(callerOf(core, { version: "1.0" }), { message, configuration: NOW }, {});
    const error = await refused(added, "not_found");
    assert.equal((error as { readonly a2a?: string }).a2a, "TaskNotFound");
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("cannot follow a task of an agent whose card switches streams off", async () => {
    await using core = await coreOnMemory();
    const card = { capabilities: { streaming: false } };
    await core.agents.register(core.operator, { agent_id: ZHIWEI, card });
    const { receipt } = await core.messages.send(
      core.operator,
      { type: "request", to: ZHIWEI, body: "看看" },
      { isAsked: true },
    );
    const params = { id: receipt.task_id };
    const following = core.a2a.subscribe(callerOf(core, { version: "1.0" }), params, { afterN: undefined });
    await refused(following, "wrong_state");
  });
});
