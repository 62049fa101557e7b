import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { Guard } from "./guard.ts";

describe("the guard", () => {
  it("allows without an event in the journal", async () => {
    await using core = await coreOnMemory();
    const head = (await core.store.journal.chain(core.lulu.tenant)).head;
    await core.guard.authorize(core.lulu, "mailbox.read", { agentId: LULU });
    assert.deepEqual((await core.store.journal.chain(core.lulu.tenant)).head, head);
  });

  it("records a refusal before it answers: actor, verb, agent and key", async () => {
    await using core = await coreOnMemory();
    const keyed = { ...core.lulu, keyId: "key_7" };
    await refused(core.guard.authorize(keyed, "mailbox.read", { agentId: ZHIWEI }), "permission_denied");
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, agent, data }) => ({ actor, agent, data })),
      [{ actor: LULU, agent: ZHIWEI, data: { verb: "mailbox.read", key_id: "key_7" } }],
    );
  });

  it("also records hidden refusals, and one event for each message of a batch", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    const stranger = { ...core.lulu, agentId: "kames@kamac" as typeof LULU };
    await refused(core.messages.get(stranger, receipt.message_id), "not_found");
    const message = { from: ZHIWEI, to: LULU, body: "冒名" };
    await core.messages.sendBatch(core.lulu, { messages: [message, message] });
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ data }) => data["verb"]),
      ["messages.read", "messages.send", "messages.send"],
    );
  });

  it("answers `unavailable` when it cannot record a refusal", async () => {
    await using core = await coreOnMemory();
    const full = Object.create(core.store, {
      commit: { value: () => Promise.reject(new Error("no space")) },
    }) as typeof core.store;
    const guard = new Guard({ store: full, clock: core.clock });
    await refused(
      guard.authorize(core.lulu, "mailbox.read", { agentId: ZHIWEI }),
      "unavailable",
      /audit write failed; refusing to proceed/,
    );
  });
});
