import assert from "node:assert/strict";
import { expiryAt } from "../../../testing/records.ts";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { messageOf, newKey, PLAIN, sign, signed } from "../../../testing/signed-message.ts";

const AGE_MS = LIMITS.signedMessageAgeMsMax;

describe("a nonce", () => {
  it("is used once: the same message again is refused", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const message = signed(core, key);
    await core.inbox.receive(message, PLAIN);
    const used = /^nonce: this nonce was used already; sign again with a fresh one$/;
    for (const again of [message, signed(core, key, { nonce: message.nonce, body: "别的" })]) {
      await refused(core.inbox.receive(again, PLAIN), "conflict", used);
    }
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("that is fresh gives the same receipt to a message that was sent before, and counts as well", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const first = signed(core, key, { type: "request" });
    const { receipt } = await core.inbox.receive(first, PLAIN);
    const { id, created_at } = first;
    const again = signed(core, key, { type: "request", id, created_at, nonce: "新的" });
    const answer = await core.inbox.receive(again, PLAIN);
    assert.deepEqual([answer.created, answer.receipt], [false, receipt]);
    assert.equal(answer.message["nonce"], first.nonce, "the message is the first one");
    await refused(core.inbox.receive(again, PLAIN), "conflict", /^nonce: /);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("of many senders at once is used by one of them", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const message = signed(core, key);
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, () => core.inbox.receive(message, PLAIN)),
    );
    const refusals = all.filter((each) => each.status === "rejected").map(({ reason }) => String(reason));
    assert.equal(refusals.length, all.length - 1);
    for (const refusal of refusals) assert.match(refusal, /nonce was used already/);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("is not used by a message that was refused", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 1 });
    const key = await newKey(core);
    await core.send();
    const message = signed(core, key);
    await refused(core.inbox.receive(message, PLAIN), "mailbox_full");
    await refused(core.inbox.receive(signed(core, key, { to: "stranger" }), PLAIN), "unknown_agent");
    const [item] = await core.inboxOf(ZHIWEI);
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [item?.message_id ?? ""] });
    assert.equal((await core.inbox.receive(message, PLAIN)).created, true);
  });

  it("belongs to its key: two keys may use the same", async () => {
    await using core = await coreOnMemory();
    for (const key of [await newKey(core), await newKey(core)]) {
      const message = signed(core, key, { nonce: "一" });
      assert.equal((await core.inbox.receive(message, PLAIN)).created, true);
    }
  });

  it("is remembered until its message is too old to be shown again", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const ahead = sign(key, messageOf(key, {}, core.clock.nowMs() + AGE_MS));
    await core.inbox.receive(ahead, PLAIN);
    core.clock.advance(2 * AGE_MS);
    await core.retention.step("default");
    await refused(core.inbox.receive(ahead, PLAIN), "conflict", /^nonce: /);
    core.clock.advance(1);
    await core.retention.step("default");
    await refused(core.inbox.receive(ahead, PLAIN), "unauthenticated", /^signed_at: /);
    assert.equal(await core.store.retention.forgetExpired(expiryAt(Number.MAX_SAFE_INTEGER)), 0);
  });

  it("of a heartbeat counts too, so that a replay does not renew presence", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const beat = signed(core, key, { type: "heartbeat", body: "" });
    core.clock.advance(1_000);
    await core.inbox.receive(beat, PLAIN);
    const seen = (await core.agents.get(core.operator, LULU)).last_seen_at;
    core.clock.advance(1_000);
    await refused(core.inbox.receive(beat, PLAIN), "conflict", /^nonce: /);
    assert.equal((await core.agents.get(core.operator, LULU)).last_seen_at, seen);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });
});
