import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { UsedNonce } from "../src/core/ports/access.ts";
import { NOON_MS } from "./fake-clock.ts";
import { expiryAt } from "./records.ts";
import {
  aSend,
  clashOf,
  commit,
  type OpenStore,
  OTHER_TENANT,
  readIds,
  sendKeyOf,
  TENANT,
} from "./store-builders.ts";

function aNonce(said: Partial<UsedNonce> = {}): UsedNonce {
  return { keyId: "key_一", nonce: "随机数", expiresAtMs: NOON_MS, ...said };
}

export function describeNonces(open: OpenStore): void {
  describe("nonces", () => {
    it("are used once: a used one clashes, with the same message or another", async () => {
      await using store = await open();
      const first = aSend();
      await commit(store, { ...first, nonces: [aNonce()] });
      assert.equal(await clashOf(store, { ...aSend(), nonces: [aNonce()] }), "nonce");
      assert.equal(await clashOf(store, { nonces: [aNonce({ expiresAtMs: NOON_MS + 1 })] }), "nonce");
      assert.deepEqual(
        await readIds(store),
        first.messages.map(({ id }) => id),
      );
    });

    it("are told apart by their key and by their tenant", async () => {
      await using store = await open();
      await commit(store, { nonces: [aNonce()] });
      await commit(store, { nonces: [aNonce({ keyId: "key_二" }), aNonce({ nonce: "另一个" })] });
      await commit(store, { tenant: OTHER_TENANT, nonces: [aNonce()] });
      assert.equal(await clashOf(store, { tenant: OTHER_TENANT, nonces: [aNonce()] }), "nonce");
    });

    it("clash within one change as well", async () => {
      await using store = await open();
      assert.equal(await clashOf(store, { nonces: [aNonce(), aNonce()] }), "nonce");
      await commit(store, { nonces: [aNonce()] });
    });

    it("accept one of many concurrent changes with the same nonce", async () => {
      await using store = await open();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, () => clashOf(store, { ...aSend(), nonces: [aNonce()] })),
      );
      assert.equal(outcomes.filter((outcome) => outcome === "nonce").length, 49);
      assert.equal((await readIds(store)).length, 1);
    });

    it("are not used up by a change that is refused for another reason", async () => {
      await using store = await open();
      const existing = aSend();
      await commit(store, existing);
      assert.equal(await clashOf(store, { ...existing, nonces: [aNonce()] }), "message_id");
      await commit(store, { ...aSend(), nonces: [aNonce()] });
    });

    it("clash before everything else when the same signed message comes a second time", async () => {
      await using store = await open();
      const sent = aSend();
      const changes = { ...sent, sendKeys: [sendKeyOf(sent.messages[0], "again")], nonces: [aNonce()] };
      await commit(store, changes);
      assert.equal(await clashOf(store, changes), "nonce");
    });

    it("are removed after their time, in all tenants, and can be used again", async () => {
      await using store = await open();
      const late = aNonce({ nonce: "晚", expiresAtMs: NOON_MS + 1 });
      await commit(store, { nonces: [aNonce(), late] });
      await commit(store, { tenant: OTHER_TENANT, nonces: [aNonce()] });
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS)), 0);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS + 1)), 2);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS + 1)), 0);
      assert.equal(await clashOf(store, { nonces: [late] }), "nonce");
      await commit(store, { tenant: TENANT, nonces: [aNonce()] });
    });

    it("are removed however many there are", async () => {
      await using store = await open();
      const many = Array.from({ length: 2_500 }, (_, index) => aNonce({ nonce: `随机数-${index}` }));
      await commit(store, { nonces: many });
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS + 1)), 2_500);
      await commit(store, { nonces: many });
    });
  });
}
