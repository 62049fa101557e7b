import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { gatedCore } from "../../../testing/gated-core.ts";
import { refused } from "../../../testing/refusal.ts";
import {
  messageOf,
  newKey,
  PLAIN,
  sign,
  signed,
  type SigningKeyShown,
} from "../../../testing/signed-message.ts";
import { operatorOf, rootOperator } from "../access/principal.ts";

const ROOT = rootOperator();
const AGE_MS = LIMITS.signedMessageAgeMsMax;
const NOT_SIGNED = /^signature: is not one of a signing key that works here/;

function without<NewMessage extends object>(message: NewMessage, member: keyof NewMessage): object {
  return Object.fromEntries(Object.entries(message).filter(([name]) => name !== member));
}

async function reasons(core: CoreOnMemory, tenant = "default") {
  const query = { type: "access.unauthenticated", limit: 500 };
  const { events } = await core.journal.events(operatorOf(tenant), query);
  return events.map(({ data }) => data["reason"]);
}

describe("a signed message", () => {
  it("is sent as the agent of its key, and keeps what it was signed with", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const draft = signed(core, key, { type: "request", x_more: { 页: [1, { 二: null }] }, urgency: "high" });
    const { created, receipt, message } = await core.inbox.receive(draft, PLAIN);
    assert.equal(created, true);
    assert.deepEqual([receipt.message_id, receipt.recipient], [draft.id, ZHIWEI]);
    const kept = await core.message(draft.id);
    assert.deepEqual(kept, message);
    const { from, signature, key_id, nonce, signed_at, x_more } = kept;
    assert.deepEqual(
      { from, signature, key_id, nonce, signed_at, x_more },
      {
        from: LULU,
        signature: draft.signature,
        key_id: key.key_id,
        nonce: draft.nonce,
        signed_at: draft.signed_at,
        x_more: { 页: [1, { 二: null }] },
      },
    );
    const { events } = await core.journal.events(core.operator, { type: "message.accepted" });
    assert.equal(events.at(-1)?.actor, LULU);
  });

  it("may leave the sender out, or call it by another of its names", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const unnamed = sign(key, without(messageOf(key, {}, core.clock.nowMs()), "from"));
    for (const message of [unnamed, signed(core, key, { from: "lulu" })]) {
      assert.equal((await core.inbox.receive(message, PLAIN)).message.from, LULU);
    }
  });

  it("is not another agent's, whatever its signature", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const message = signed(core, key, { from: ZHIWEI, to: LULU });
    await refused(core.inbox.receive(message, PLAIN), "permission_denied", /an agent acts for itself only/);
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["key_id"]]),
      [[LULU, key.key_id]],
    );
    assert.deepEqual(await core.inboxOf(LULU), []);
  });

  for (const member of ["id", "created_at", "thread_id"] as const) {
    it(`brings its ${member}, which the relay would else fill in unsigned`, async () => {
      await using core = await coreOnMemory();
      const key = await newKey(core);
      const message = messageOf(key, {}, core.clock.nowMs());
      for (const lacking of [without(message, member), { ...message, [member]: null }]) {
        await refused(
          core.inbox.receive(sign(key, lacking), PLAIN),
          "invalid_argument",
          new RegExp(`^signature: a signed message must bring ${member}$`),
        );
      }
      // What was refused has not used its nonce.
      assert.equal((await core.inbox.receive(sign(key, message), PLAIN)).created, true);
    });
  }

  for (const member of ["key_id", "nonce", "signed_at", "signature"] as const) {
    it(`has a ${member}`, async () => {
      await using core = await coreOnMemory();
      const key = await newKey(core);
      const message = signed(core, key);
      const missing = new RegExp(`^message: ${member} is missing$`);
      await refused(core.inbox.receive(without(message, member), PLAIN), "invalid_argument", missing);
      for (const value of [null, "", 7, {}]) {
        const wrong = { ...message, [member]: value };
        await refused(core.inbox.receive(wrong, PLAIN), "invalid_argument", new RegExp(`^${member}: `));
      }
      await refused(core.inbox.receive({ ...message, [member]: "x".repeat(501) }, PLAIN), "too_large");
      assert.deepEqual(await reasons(core), []);
    });
  }

  it("is refused when anything of it was changed on its way", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const message = signed(core, key, { x_more: { 页: [1] }, subject: "查一下" });
    const members = Object.keys(message).filter((each) => each !== "key_id" && each !== "version");
    for (const member of members) {
      const changed = member === "signed_at" ? "2026-05-08T12:00:00.001Z" : "changed";
      await refused(
        core.inbox.receive({ ...message, [member]: changed }, PLAIN),
        "unauthenticated",
        NOT_SIGNED,
      );
    }
    await refused(core.inbox.receive({ ...message, x_added: 1 }, PLAIN), "unauthenticated", NOT_SIGNED);
    assert.deepEqual(new Set(await reasons(core)), new Set(["signature"]));
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
    const reordered = Object.fromEntries(Object.entries(message).toReversed());
    assert.equal((await core.inbox.receive(reordered, PLAIN)).created, true);
  });

  it("that is nested too deep is refused before it is read", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    let x_more: object = {};
    for (let depth = 0; depth < 50_000; depth += 1) x_more = { x_more };
    const message = { ...signed(core, key), x_more };
    await refused(core.inbox.receive(message, PLAIN), "invalid_argument", /nested deeper/);
  });
});

describe("a caller that could not sign", () => {
  it("hears the same for every reason; the journal keeps which", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const revoked = await newKey(core);
    await core.keys.revoke(ROOT, revoked.key_id);
    const expiring = await newKey(core, { expires_at: core.clock.nowMs() + 1 });
    core.clock.advance(1);
    const bearer = await core.keys.create(ROOT, { agent_id: LULU });
    const operators = await core.keys.create(ROOT, {});
    const stranger = { key_id: "key_0190abcd-0000-7000-8000-000000000000", key: key.key };
    const secretOf = ({ key_id, key: text }: SigningKeyShown) => ({ key_id, key: text.split(".")[1] ?? "" });
    const tries: readonly [reason: string, message: object][] = [
      ["unknown", signed(core, stranger)],
      ["unknown", signed(core, { ...stranger, key_id: "知微" })],
      ["bearer", signed(core, secretOf(bearer))],
      ["bearer", signed(core, secretOf(operators))],
      ["signature", signed(core, { ...key, key: revoked.key })],
      ["revoked", signed(core, { ...revoked, key: key.key })],
      ["revoked", signed(core, revoked)],
      ["expired", signed(core, expiring)],
    ];
    const sentences = new Set<string>();
    for (const [reason, draft] of tries) {
      const { message } = await refused(core.inbox.receive(draft, PLAIN), "unauthenticated", NOT_SIGNED);
      sentences.add(message);
      assert.equal((await reasons(core)).at(-1), reason);
    }
    assert.equal(sentences.size, 1);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
  });

  it("is put on record a bounded number of times", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const message = { ...signed(core, key), body: "另一封" };
    const most = LIMITS.unauthenticatedEventsPerMinuteMax;
    for (let count = 0; count < most + 7; count += 1) {
      await refused(core.inbox.receive(message, PLAIN), "unauthenticated");
    }
    assert.equal((await reasons(core)).length, most);
    core.clock.advance(60_000);
    await refused(core.inbox.receive(message, PLAIN), "unauthenticated");
    const { events } = await core.journal.events(core.operator, {
      type: "access.unauthenticated",
      limit: 500,
    });
    assert.equal(events.at(-1)?.data["suppressed"], 7);
  });
});

describe("the time of a signature", () => {
  it("may differ from the relay's by some minutes either way, and no more", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const nowMs = core.clock.nowMs();
    for (const offMs of [-AGE_MS, AGE_MS, 0]) {
      const message = sign(key, messageOf(key, {}, nowMs + offMs));
      assert.equal((await core.inbox.receive(message, PLAIN)).created, true, `${offMs}`);
    }
    for (const offMs of [-AGE_MS - 1, AGE_MS + 1, -100 * AGE_MS]) {
      const message = sign(key, messageOf(key, {}, nowMs + offMs));
      await refused(
        core.inbox.receive(message, PLAIN),
        "unauthenticated",
        /^signed_at: .* is more than 5 minutes from 2026-05-08T12:00:00\.000Z, the time here; sign anew$/,
      );
      assert.equal((await reasons(core)).at(-1), "stale");
    }
  });

  it("is an instant, in any zone", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const zoned = signed(core, key, { signed_at: "2026-05-08T20:00:00+08:00" });
    assert.equal((await core.inbox.receive(zoned, PLAIN)).message["signed_at"], "2026-05-08T20:00:00+08:00");
    for (const signed_at of ["now", "2026-05-08", "2026-05-08T12:00:00", "1778241600"]) {
      await refused(
        core.inbox.receive(signed(core, key, { signed_at }), PLAIN),
        "invalid_argument",
        /^signed_at: expected an ISO 8601 time/,
      );
    }
  });
});

describe("a signing key", () => {
  it("goes on for a while beside its successor", async () => {
    await using core = await coreOnMemory();
    const old = await newKey(core);
    const next = await core.keys.rotate(ROOT, old.key_id, { overlap_ms: 1_000 });
    for (const key of [old, next]) {
      assert.equal((await core.inbox.receive(signed(core, key), PLAIN)).created, true);
    }
    core.clock.advance(1_000);
    await refused(core.inbox.receive(signed(core, old), PLAIN), "unauthenticated", NOT_SIGNED);
    assert.equal((await core.inbox.receive(signed(core, next), PLAIN)).created, true);
  });

  it("ends with its agent, and a new registration does not bring it back", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    await core.agents.remove(core.operator, LULU);
    await refused(core.inbox.receive(signed(core, key), PLAIN), "unauthenticated", NOT_SIGNED);
    await core.agents.register(core.operator, { agent_id: LULU });
    await refused(core.inbox.receive(signed(core, key), PLAIN), "unauthenticated", NOT_SIGNED);
  });

  it("of an agent that is not registered yet sends nothing", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core, { agent_id: "kames@桌面" });
    await refused(
      core.inbox.receive(signed(core, key, { from: "kames@桌面" }), PLAIN),
      "unknown_agent",
      /^from: /,
    );
  });

  it("answers a task as its agent", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core, { agent_id: ZHIWEI });
    const { receipt } = await core.send({ type: "request" });
    const reply = signed(core, key, { from: ZHIWEI, to: LULU, type: "reply", reply_to: receipt.message_id });
    assert.equal((await core.inbox.receive(reply, PLAIN)).receipt.task_id, receipt.task_id);
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "completed");
  });

  it("sends in its own tenant, by the plain path or by that tenant's", async () => {
    await using core = await coreOnMemory();
    const acme = operatorOf("acme");
    const key = await core.keys.create(ROOT, { tenant: "acme", agent_id: LULU, use: "sign" });
    for (const agent_id of [LULU, ZHIWEI]) await core.agents.register(acme, { agent_id });
    for (const tenant of [undefined, "acme"]) {
      assert.equal((await core.inbox.receive(signed(core, key), { ...PLAIN, tenant })).created, true);
    }
    const words = new Set<string>();
    for (const tenant of ["default", "nowhere"]) {
      const sent = core.inbox.receive(signed(core, key), { ...PLAIN, tenant });
      words.add((await refused(sent, "permission_denied", /own tenant only/)).message);
    }
    assert.equal(words.size, 1);
    const { events } = await core.journal.events(acme, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ data }) => [data["key_id"], data["tenant"]]),
      [
        [key.key_id, "default"],
        [key.key_id, "nowhere"],
      ],
    );
    assert.equal((await core.mailboxes.read(acme, ZHIWEI, { peek: true })).messages.length, 2);
    assert.deepEqual(await core.inboxOf(ZHIWEI), []);
    // What is wrong with it is that tenant's business.
    await refused(core.inbox.receive({ ...signed(core, key), body: "改" }, PLAIN), "unauthenticated");
    assert.deepEqual([await reasons(core), await reasons(core, "acme")], [[], ["signature"]]);
  });

  it("without an agent, as only a direct edit of the store could write it, signs for no agent", async () => {
    await using core = await coreOnMemory();
    const key = await newKey(core);
    const record = await core.store.keys.get(key.key_id);
    assert.ok(record);
    await core.store.commit({ tenant: "default", events: [], keys: [{ ...record, agentId: null }] });
    await refused(core.inbox.receive(signed(core, key), PLAIN), "unauthenticated", NOT_SIGNED);
  });
});

describe("where capabilities are on", () => {
  it("a signed request needs them as any other, and a repetition spends none", async () => {
    await using core = await gatedCore();
    const key = await newKey(core);
    const message = signed(core, key, { type: "request" });
    await refused(core.inbox.receive(message, PLAIN), "permission_denied", /a2a\.send/);
    await core.grant(LULU, `a2a.send.${ZHIWEI}`, { scope: { max_uses: 1 } });
    await core.grant(ZHIWEI, `a2a.recv.${LULU}`);
    assert.equal((await core.inbox.receive(message, PLAIN)).created, true);
    await refused(core.inbox.receive(message, PLAIN), "conflict", /^nonce: /);
    const { id, created_at } = message;
    const again = signed(core, key, { type: "request", id, created_at });
    assert.equal((await core.inbox.receive(again, PLAIN)).created, false);
    const other = signed(core, key, { type: "request" });
    await refused(core.inbox.receive(other, PLAIN), "permission_denied");
    assert.equal((await core.inbox.receive(signed(core, key), PLAIN)).created, true, "a note needs none");
  });
});
