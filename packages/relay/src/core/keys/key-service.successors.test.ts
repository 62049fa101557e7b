import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { rootOperator } from "../access/principal.ts";

const ROOT = rootOperator();
const HOUR_MS = 3_600_000;

async function successorOf(core: CoreOnMemory, keyId: string): Promise<string | undefined> {
  const { keys } = await core.keys.list(core.operator, { limit: 500 });
  return keys.find(({ key_id }) => key_id === keyId)?.replaced_by;
}

describe("rotating a key again", () => {
  it("after a lost reply creates a key that ends when the first one should have", async () => {
    await using core = await coreOnMemory();
    for (const expires_at of [undefined, new Date(core.clock.nowMs() + 90 * DAY_MS).toISOString()]) {
      const old = await core.keys.create(ROOT, { agent_id: LULU, ...(expires_at && { expires_at }) });
      const caller = { ...core.lulu, keyId: old.key_id };
      const lost = await core.keys.rotate(caller, old.key_id, {});
      core.clock.advance(HOUR_MS);
      const again = await core.keys.rotate(caller, old.key_id, {});
      assert.deepEqual([again.expires_at, again.replaces], [expires_at, old.key_id]);
      assert.equal(again.old_expires_at, lost.old_expires_at, "the old key is not prolonged");
      assert.equal(await successorOf(core, old.key_id), again.key_id);
      await core.keys.rotate(core.operator, again.key_id, { overlap_ms: 0 });
      const third = await core.keys.rotate(caller, old.key_id, {});
      assert.equal(third.expires_at, expires_at, "though the one before was rotated as well");
      await core.keys.revoke(core.operator, third.key_id);
      const fourth = await core.keys.rotate(caller, old.key_id, {});
      assert.equal(fourth.expires_at, expires_at, "though the one before was revoked");
    }
  });

  it("works for an operator's own key, but not for a caller that ends before the successor", async () => {
    await using core = await coreOnMemory();
    const own = await core.keys.create(ROOT, {});
    const { old_expires_at } = await core.keys.rotate(ROOT, own.key_id, {});
    const endsAtMs = Date.parse(old_expires_at);
    const itself = { ...core.operator, keyId: own.key_id, expiresAtMs: endsAtMs };
    const again = await core.keys.rotate(itself, own.key_id, {});
    assert.equal(again.expires_at, undefined);
    const guest = { ...core.operator, keyId: "key_guest", expiresAtMs: endsAtMs + 1 };
    await refused(core.keys.rotate(guest, own.key_id, {}), "permission_denied", /ends later than itself/);
  });
});

describe("revoking a key that was rotated", () => {
  it("names its newest successor, which stays valid", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await core.keys.create(ROOT, { agent_id: ZHIWEI });
    await core.keys.rotate(core.operator, key_id, {});
    core.clock.advance(HOUR_MS);
    const newest = await core.keys.rotate(core.operator, key_id, {});
    const revoked = await core.keys.revoke(core.operator, key_id);
    assert.deepEqual([revoked.state, revoked.replaced_by], ["revoked", newest.key_id]);
    const { keys } = await core.keys.list(core.operator, { agent: ZHIWEI });
    const successor = keys.find((key) => key.key_id === newest.key_id);
    assert.deepEqual([successor?.state, successor?.replaced_by], ["active", undefined]);
  });
});
