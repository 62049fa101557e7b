import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { type GatedCore, gatedCore, KAMES } from "../../../testing/gated-core.ts";
import { refused } from "../../../testing/refusal.ts";
import type { CapabilityRecord } from "../ports/access.ts";
import { mint } from "../access/capability-token.ts";
import { newKeyPair, signingKey } from "../rules/ed25519.ts";

const SEND = `a2a.send.${ZHIWEI}`;
const MINUTE_MS = 60_000;

/** Writes to the store directly, as an attacker with access to the database could. */
async function write(core: GatedCore, capability: CapabilityRecord): Promise<void> {
  const outcome = await core.store.commit({
    tenant: capability.tenant,
    capabilities: [capability],
    events: [],
  });
  assert.ok(outcome.committed);
}

/** The recipient has consented; the tests are about lulu's own capability. */
async function setup(): Promise<GatedCore> {
  const core = await gatedCore();
  await core.grant(ZHIWEI, `a2a.recv.${LULU}`);
  return core;
}

describe("a capability that was written past the relay", () => {
  it("is ignored when it is not signed by this relay's key, and the journal says so", async () => {
    await using core = await setup();
    const { id } = await core.grant(KAMES, SEND);
    const stolen = { ...(await core.row(id)), id: "cap_forged", subject: LULU, version: 0 };
    const foreign = signingKey(newKeyPair().privateKey);
    const subjectKey = await core.keyOf(LULU);
    await write(core, mint({ ...stolen, subjectKey }, foreign));
    await refused(core.ask(), "permission_denied", /cap_forged is not signed by this relay/);
    const [check] = await core.checks();
    assert.deepEqual(
      [check?.data["passed"], check?.data["reason"]],
      [false, "cap_forged is not signed by this relay"],
    );
  });

  const copies: Readonly<Record<string, (core: GatedCore) => Promise<Partial<CapabilityRecord>>>> = {
    "for another subject": async (core) => ({ id: "cap_copy", subjectKey: await core.keyOf(LULU) }),
    "for another subject under its own id": async (core) => ({ subjectKey: await core.keyOf(LULU) }),
  };
  for (const [how, change] of Object.entries(copies)) {
    it(`is ignored when it is a copy ${how}`, async () => {
      await using core = await setup();
      const { id } = await core.grant(KAMES, SEND);
      const row = await core.row(id);
      const copy = { ...row, subject: LULU, ...(await change(core)) };
      await write(core, { ...copy, version: copy.id === id ? row.version : 0 });
      await refused(core.ask(), "permission_denied", /requires capability/);
    });
  }

  it("is ignored when it is a copy from another tenant", async () => {
    await using core = await setup();
    const { id } = await core.grant(LULU, SEND);
    const row = await core.row(id);
    await core.capabilities.revoke(core.operator, { id });
    const foreign = mint({ ...row, id: "cap_foreign", tenant: "acme", version: 0 }, core.identity);
    await write(core, { ...foreign, tenant: row.tenant });
    await refused(core.ask(), "permission_denied", /cap_foreign is not signed by this relay/);
    await write(core, mint({ ...row, id: "cap_here", version: 0 }, core.identity));
    await core.ask();
  });

  it("is ignored when a genuine one was changed, also after the relay had accepted it", async () => {
    await using core = await setup();
    const { id } = await core.grant(LULU, SEND, { scope: { max_uses: 1 } });
    await core.ask();
    const row = await core.row(id);
    assert.equal(row.used, 1);
    await write(core, { ...row, scope: { max_uses: 9 } });
    await refused(core.ask(), "permission_denied", /not signed by this relay/);
    await write(core, { ...(await core.row(id)), scope: {} });
    await refused(core.ask(), "permission_denied", /not signed by this relay/);
  });

  it("does not affect another grant", async () => {
    await using core = await setup();
    const { id } = await core.grant(LULU, SEND);
    const row = await core.row(id);
    await write(core, { ...row, id: "cap_0", version: 0, scope: { delegable: true } });
    await core.ask();
    await refused(
      core.grant(KAMES, SEND, { by: core.lulu }),
      "permission_denied",
      /holds no capability .* that may be passed on/,
    );
  });
});

describe("the end of a capability", () => {
  it("comes after the millisecond of its expiry", async () => {
    await using core = await setup();
    const expires_at = core.clock.nowMs() + MINUTE_MS;
    const { id } = await core.grant(LULU, SEND, { expires_at });
    core.clock.advance(MINUTE_MS);
    await core.ask();
    core.clock.advance(1);
    await refused(core.ask(), "permission_denied", new RegExp(`${id} expired at 2026-`));
    assert.match(String((await core.checks()).at(-1)?.data["reason"]), /expired/);
  });

  it("comes with its revocation, and a new grant is a new token that works", async () => {
    await using core = await setup();
    const first = await core.grant(LULU, SEND);
    await core.ask();
    await core.capabilities.revoke(core.operator, { id: first.id });
    await refused(core.ask(), "permission_denied", /requires capability/);
    const second = await core.grant(LULU, SEND);
    assert.notEqual(second.id, first.id);
    assert.notEqual(second.nonce, first.nonce);
    assert.notEqual(second.signature_b58, first.signature_b58);
    await core.ask();
  });

  it("leaves other capabilities for the same action valid", async () => {
    await using core = await setup();
    await core.grant(LULU, SEND, { expires_at: core.clock.nowMs() + 1 });
    await core.grant(LULU, SEND, { scope: { task_id: "another" } });
    core.clock.advance(2);
    await refused(
      core.ask(),
      "permission_denied",
      /rejected by capability scope: it is for task_id "another" only/,
    );
    await core.grant(LULU, SEND);
    await core.ask();
  });
});

describe("a delegated capability", () => {
  /** Lulu may ask zhiwei, and has delegated that to kames. */
  async function delegated(scope: object = {}, childScope: object = {}) {
    const core = await gatedCore();
    const parent = await core.grant(LULU, SEND, { scope: { delegable: true, ...scope } });
    await core.grant(ZHIWEI, `a2a.recv.${KAMES}`);
    const child = await core.grant(KAMES, SEND, { by: core.lulu, scope: childScope });
    const ask = () => core.messages.send(core.kames, { to: ZHIWEI, type: "request", body: "好" });
    return { core, parent, child, ask };
  }

  it("works, and the journal names who granted it", async () => {
    const { core, child, parent, ask } = await delegated();
    await using _ = core;
    assert.deepEqual([child.granted_by, child.delegated_from], [LULU, parent.id]);
    await ask();
    const [check] = await core.checks();
    const [used] = (check?.data["authorized_by"] ?? []) as readonly unknown[];
    assert.equal(used, child.id);
  });

  it("ends with its parent", async () => {
    const { core, parent, ask } = await delegated();
    await using _ = core;
    await core.capabilities.revoke(core.operator, { id: parent.id });
    await refused(ask(), "permission_denied", /is without its parent/);
    await using other = await gatedCore();
    const expires_at = other.clock.nowMs() + MINUTE_MS;
    await other.grant(LULU, SEND, { scope: { delegable: true }, expires_at });
    await other.grant(KAMES, SEND, { by: other.lulu, expires_at });
    other.clock.advance(MINUTE_MS + 1);
    const { grants } = await other.capabilities.usage(other.operator, {});
    assert.deepEqual(
      grants.map(({ effective }) => effective),
      [false, false],
    );
  });

  it("ends when the agent that delegated it leaves or changes its key", async () => {
    const { core, ask } = await delegated();
    await using _ = core;
    await ask();
    await core.agents.remove(core.operator, LULU);
    await refused(ask(), "permission_denied", /is without its parent/);
    await core.agents.register(core.operator, { agent_id: LULU });
    await refused(ask(), "permission_denied", /is without its parent/);
  });

  it("spends the uses of its parent, and no more", async () => {
    const { core, parent, ask } = await delegated({ max_uses: 2 }, { max_uses: 2 });
    await using _ = core;
    await core.grant(ZHIWEI, `a2a.recv.${LULU}`);
    await core.ask();
    await ask();
    assert.equal((await core.row(parent.id)).used, 2);
    await refused(ask(), "permission_denied", /is without its parent/);
    await refused(core.ask(), "permission_denied", /is spent: 2 of 2 uses/);
  });

  it("is not delegated again", async () => {
    const { core } = await delegated();
    await using _ = core;
    await refused(core.grant(ZHIWEI, SEND, { by: core.kames }), "permission_denied");
  });
});
