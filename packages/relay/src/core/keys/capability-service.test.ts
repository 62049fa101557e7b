import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { gatedCore, KAMES } from "../../../testing/gated-core.ts";
import { refused } from "../../../testing/refusal.ts";
import { isSignedBy, newKeyPair } from "../rules/ed25519.ts";
import { operatorOf, rootOperator } from "../access/principal.ts";

const SEND = `a2a.send.${ZHIWEI}`;

describe("a grant", () => {
  it("answers the signed token, with keys instead of names, and is recorded", async () => {
    await using core = await gatedCore();
    const [lulu, zhiwei] = [await core.keyOf(LULU), await core.keyOf(ZHIWEI)];
    const scope = { version: 1 as const, max_uses: 3, duplicate_risk: "operator-accepted" as const };
    const expires_at = core.clock.nowMs() + 1_000;
    const granted = await core.grant("lulu", "a2a.send.zhiwei", { scope, expires_at });
    const { id, nonce, signature_b58, ...rest } = granted;
    assert.match(id, /^cap_/);
    assert.deepEqual(rest, {
      domain: "a2a-relay.capability.v1",
      tenant: "default",
      subject: LULU,
      subject_pubkey_b58: lulu,
      action: `a2a.send.${zhiwei}`,
      written_action: "a2a.send.zhiwei",
      scope: { ...scope, duplicate_risk: "operator_accepted" },
      granted_by: "operator",
      issued_at: "2026-05-08T12:00:00.000Z",
      expires_at: "2026-05-08T12:00:01.000Z",
    });
    // All that a third party needs to verify it.
    const claims = [
      granted.domain,
      granted.tenant,
      id,
      nonce,
      lulu,
      granted.action,
      { duplicate_risk: "operator_accepted", max_uses: 3, version: 1 },
      "operator",
      null,
      core.clock.nowMs(),
      expires_at,
    ];
    assert.ok(isSignedBy(core.identity.publicKey, JSON.stringify(claims), signature_b58));
    const [event] = (await core.journal.events(core.operator, { type: "capability.granted" })).events;
    assert.deepEqual(
      [event?.actor, event?.agent, event?.data["capability_id"], event?.data["scope"]],
      ["operator", LULU, id, granted.scope],
    );
  });

  it("names agents by id, alias, display name or key", async () => {
    await using core = await gatedCore();
    const key = await core.keyOf(KAMES);
    for (const name of [KAMES, "kames", "凯姆斯", key]) {
      assert.equal((await core.grant(name, `a2a.respond.${name}`)).action, `a2a.respond.${key}`);
    }
  });

  it("may name an unknown key as peer, but not as subject", async () => {
    await using core = await gatedCore();
    const { publicKey } = newKeyPair();
    assert.equal((await core.grant(LULU, `a2a.send.${publicKey}`)).action, `a2a.send.${publicKey}`);
    await refused(core.grant(publicKey, SEND), "unknown_agent", /^subject: /);
  });

  const wrong: readonly (readonly [what: string, request: object, code: Parameters<typeof refused>[1]])[] = [
    ["an unknown subject", { subject: "unknown", action: SEND }, "unknown_agent"],
    ["an unknown peer", { subject: LULU, action: "a2a.send.unknown" }, "unknown_agent"],
    ["a wildcard", { subject: LULU, action: "a2a.send.*" }, "invalid_argument"],
    ["another action", { subject: LULU, action: "a2a.everything" }, "invalid_argument"],
    ["no subject", { action: SEND }, "invalid_argument"],
    ["a scope that is a list", { subject: LULU, action: SEND, scope: [] }, "invalid_argument"],
    ["another version", { subject: LULU, action: SEND, scope: { version: 2 } }, "invalid_argument"],
    ["no uses", { subject: LULU, action: SEND, scope: { max_uses: 0 } }, "invalid_argument"],
    ["half a use", { subject: LULU, action: SEND, scope: { max_uses: 0.5 } }, "invalid_argument"],
    [
      "another posture",
      { subject: LULU, action: SEND, scope: { duplicate_risk: "any" } },
      "invalid_argument",
    ],
    ["no posture", { subject: LULU, action: SEND, scope: { duplicate_risk: null } }, "invalid_argument"],
    ["an end that has passed", { subject: LULU, action: SEND, expires_at: 1 }, "invalid_argument"],
    ["an end that is no time", { subject: LULU, action: SEND, expires_at: "soon" }, "invalid_argument"],
    ["a field too many", { subject: LULU, action: SEND, granted_by: LULU }, "invalid_argument"],
  ];
  for (const [what, request, code] of wrong) {
    it(`is refused with ${what}`, async () => {
      await using core = await gatedCore();
      await refused(core.capabilities.grant(core.operator, request), code);
      assert.deepEqual((await core.capabilities.list(core.operator, {})).capabilities, []);
    });
  }

  it("is refused beyond the limit of one agent and action", async () => {
    await using core = await gatedCore();
    const max = LIMITS.capabilitiesOfActionMax;
    const expires_at = core.clock.nowMs() + 1_000;
    for (let index = 0; index < max; index += 1) await core.grant(LULU, SEND, { expires_at });
    await refused(core.grant(LULU, SEND), "resource_exhausted", /revoke some first/);
    await core.grant(LULU, `a2a.send.${KAMES}`);
    core.clock.advance(1_001);
    await core.grant(LULU, SEND);
    // Expired ones no longer count.
    const zhiwei = await core.keyOf(ZHIWEI);
    const held = await core.store.capabilities.of("default", await core.keyOf(LULU), `a2a.send.${zhiwei}`);
    assert.equal(held.length, 1);
  });
});

describe("an agent that grants", () => {
  it("may not grant to itself, nor what it does not hold or may not delegate; all is recorded", async () => {
    await using core = await gatedCore();
    await refused(core.grant(LULU, SEND, { by: core.lulu }), "permission_denied", /holds no capability/);
    await refused(core.grant(KAMES, SEND, { by: core.lulu }), "permission_denied", /holds no capability/);
    await core.grant(LULU, SEND);
    await refused(core.grant(KAMES, SEND, { by: core.lulu }), "permission_denied", /may be passed on/);
    await core.grant(LULU, SEND, { scope: { delegable: true } });
    await refused(core.grant(LULU, SEND, { by: core.lulu }), "permission_denied", /to itself/);
    await refused(
      core.grant(await core.keyOf(LULU), SEND, { by: core.lulu }),
      "permission_denied",
      /to itself/,
    );
    await refused(core.grant(KAMES, "a2a.compact", { by: core.lulu }), "permission_denied");
    await refused(core.grant(KAMES, "a2a.send.unknown", { by: core.lulu }), "permission_denied");
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["verb"]]),
      Array.from({ length: 7 }, () => [LULU, "capabilities.grant"]),
    );
    assert.equal((await core.capabilities.list(core.operator, {})).capabilities.length, 2);
  });

  it("may not delegate more than it holds, and is told what is too much", async () => {
    await using core = await gatedCore();
    const expires_at = core.clock.nowMs() + 1_000;
    const scope = { delegable: true, max_uses: 2, task_id: "t1" };
    await core.grant(LULU, SEND, { scope, expires_at });
    const by = core.lulu;
    const fits = { max_uses: 2, task_id: "t1" };
    const tries: readonly (readonly [more: object, words: RegExp])[] = [
      [{ scope: { max_uses: 2 }, expires_at }, /task_id must stay "t1"/],
      [{ scope: { ...fits, task_id: "t2" }, expires_at }, /task_id must stay "t1"/],
      [{ scope: { ...fits, max_uses: 3 }, expires_at }, /max_uses must be at most 2/],
      [{ scope: { ...fits, delegable: true }, expires_at }, /delegable/],
      [{ scope: fits }, /expires_at must be 2026-05-08T12:00:01.000Z or earlier/],
      [{ scope: fits, expires_at: expires_at + 1 }, /expires_at/],
    ];
    for (const [more, words] of tries) {
      await refused(core.grant(KAMES, SEND, { by, ...more }), "permission_denied", words);
    }
    const child = await core.grant(KAMES, SEND, { by, scope: fits, expires_at });
    assert.equal(child.granted_by, LULU);
  });
});

describe("a revocation", () => {
  it("is for operators, its holder and its granter, once", async () => {
    for (const who of ["operator", "lulu", "kames"] as const) {
      await using core = await gatedCore();
      await core.grant(LULU, SEND, { scope: { delegable: true } });
      const { id } = await core.grant(KAMES, SEND, { by: core.lulu });
      assert.deepEqual(await core.capabilities.revoke(core[who], { id }), { id, revoked: true });
      assert.deepEqual(await core.capabilities.revoke(core[who], { id }), { id, revoked: false });
      const { events } = await core.journal.events(core.operator, { type: "capability.revoked" });
      assert.deepEqual(
        events.map(({ data }) => data["capability_id"]),
        [id],
      );
    }
  });

  it("by any other agent finds nothing, whether it exists or not, and is recorded", async () => {
    await using core = await gatedCore();
    const { id } = await core.grant(LULU, SEND);
    const hidden = await refused(core.capabilities.revoke(core.zhiwei, { id }), "not_found");
    const absent = await refused(core.capabilities.revoke(core.zhiwei, { id: "cap_0" }), "not_found");
    assert.equal(hidden.message, absent.message);
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["verb"]]),
      [
        [ZHIWEI, "capabilities.revoke"],
        [ZHIWEI, "capabilities.revoke"],
      ],
    );
    await core.keys.create(rootOperator(), { tenant: "acme" });
    await refused(core.capabilities.revoke(operatorOf("acme"), { id }), "not_found");
    assert.equal((await core.row(id)).revokedAtMs, null);
  });
});

describe("the list of capabilities", () => {
  it("shows operators all of their tenant, and agents what they hold or granted", async () => {
    await using core = await gatedCore();
    await core.grant(LULU, SEND, { scope: { delegable: true } });
    await core.grant(KAMES, SEND, { by: core.lulu });
    await core.grant(ZHIWEI, "a2a.compact");
    const subjects = async (who: "operator" | "lulu" | "kames" | "zhiwei") =>
      (await core.capabilities.list(core[who], {})).capabilities.map(({ subject }) => subject);
    assert.deepEqual(await subjects("operator"), [LULU, KAMES, ZHIWEI]);
    assert.deepEqual(await subjects("lulu"), [LULU, KAMES]);
    assert.deepEqual(await subjects("kames"), [KAMES]);
    assert.deepEqual(await subjects("zhiwei"), [ZHIWEI]);
    await core.keys.create(rootOperator(), { tenant: "acme" });
    assert.deepEqual((await core.capabilities.list(operatorOf("acme"), {})).capabilities, []);
  });

  it("goes from page to page", async () => {
    await using core = await gatedCore();
    for (let index = 0; index < 3; index += 1) await core.grant(LULU, SEND);
    const first = await core.capabilities.list(core.lulu, { limit: 2 });
    const second = await core.capabilities.list(core.lulu, { limit: 2, page_token: first.pageToken });
    assert.deepEqual(
      [first.capabilities.length, second.capabilities.length, second.pageToken],
      [2, 1, undefined],
    );
  });
});

describe("the usage of capabilities", () => {
  it("says of each whether it is valid now", async () => {
    await using core = await gatedCore();
    const expires_at = core.clock.nowMs() + 1;
    await core.grant(LULU, SEND);
    const revoked = await core.grant(LULU, SEND);
    await core.grant(LULU, SEND, { expires_at });
    await core.grant(KAMES, SEND);
    await core.capabilities.revoke(core.operator, { id: revoked.id });
    core.clock.advance(2);
    await core.agents.remove(core.operator, KAMES);
    const { grants } = await core.capabilities.usage(core.operator, {});
    assert.deepEqual(
      grants.map((grant) => [grant.subject, grant.effective, grant.revoked, grant.budget]),
      [
        [LULU, true, false, undefined],
        [LULU, false, true, undefined],
        [LULU, false, false, undefined],
        [KAMES, false, false, undefined],
      ],
    );
  });
});
