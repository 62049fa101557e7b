import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { CachedResult } from "../src/core/ports/tasks.ts";
import { NOON_MS } from "./fake-clock.ts";
import { expiryAt } from "./records.ts";
import { aCachedResult, commit, type OpenStore, OTHER_TENANT, TENANT } from "./store-builders.ts";

/** More results than any test stores that sets no limit. */
const KEPT_MAX = 1_000;

async function put(store: RelayStore, ...results: readonly Partial<CachedResult>[]): Promise<void> {
  await commit(store, { cachedResults: results.map((said) => aCachedResult(said)) });
}

async function cachedTask(
  store: RelayStore,
  resultKey: string,
  tenant = TENANT,
): Promise<string | undefined> {
  return (await store.tasks.cachedResult(tenant, resultKey, NOON_MS))?.taskId;
}

export function describeResultCache(open: OpenStore): void {
  describe("cached results", () => {
    it("are given back with every field, in any script", async () => {
      await using store = await open();
      const full = aCachedResult({
        resultKey: "问题",
        text: "答案 \u{1f44b}",
        parts: [{ text: "答案" }],
        artifacts: [{ artifactId: "甲", parts: [{ text: "文件" }] }],
      });
      const plain = aCachedResult({ resultKey: "plain", text: "", parts: null, artifacts: [] });
      await commit(store, { cachedResults: [full, plain] });
      assert.deepEqual(await store.tasks.cachedResult(TENANT, "问题", NOON_MS), full);
      assert.deepEqual(await store.tasks.cachedResult(TENANT, "plain", NOON_MS), plain);
      assert.equal(await store.tasks.cachedResult(TENANT, "另一个问题", NOON_MS), undefined);
    });

    it("answer until the very millisecond they expire", async () => {
      await using store = await open();
      await put(store, { resultKey: "k", expiresAtMs: NOON_MS + 10 });
      assert.ok(await store.tasks.cachedResult(TENANT, "k", NOON_MS + 9));
      assert.equal(await store.tasks.cachedResult(TENANT, "k", NOON_MS + 10), undefined);
    });

    it("are replaced by a newer result", async () => {
      await using store = await open();
      await put(store, { resultKey: "k", taskId: "一", parts: [{ text: "旧" }], expiresAtMs: NOON_MS });
      const newer = aCachedResult({ resultKey: "k", taskId: "二", text: "新", parts: null });
      await commit(store, { cachedResults: [newer] });
      assert.deepEqual(await store.tasks.cachedResult(TENANT, "k", NOON_MS), newer);
    });

    it("are removed once they expire, however many there are", async () => {
      await using store = await open();
      const over = Array.from({ length: 250 }, (_, index) => ({
        resultKey: `over-${index}`,
        expiresAtMs: NOON_MS,
      }));
      await put(store, ...over, { resultKey: "good", taskId: "好", expiresAtMs: NOON_MS + 1 });
      assert.equal(
        await store.retention.forgetExpired(expiryAt(NOON_MS, { cachedResultsMax: KEPT_MAX })),
        250,
      );
      assert.equal(await store.tasks.cachedResult(TENANT, "over-7", 0), undefined);
      assert.equal(await cachedTask(store, "good"), "好");
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS, { cachedResultsMax: KEPT_MAX })), 0);
    });

    it("are removed beyond the number that is kept, the oldest of each tenant", async () => {
      await using store = await open();
      const many = Array.from({ length: 150 }, (_, index) => ({
        resultKey: `k-${index}`,
        taskId: `t-${index}`,
        storedAtMs: NOON_MS - index,
      }));
      const theirs = many.slice(-3).map((each) => ({ ...each, tenant: OTHER_TENANT }));
      await put(store, ...many, ...theirs);
      assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS, { cachedResultsMax: 2 })), 149);
      assert.deepEqual(
        [await cachedTask(store, "k-0"), await cachedTask(store, "k-1"), await cachedTask(store, "k-2")],
        ["t-0", "t-1", undefined],
      );
      assert.equal(await cachedTask(store, "k-147"), undefined);
      assert.equal(await cachedTask(store, "k-147", OTHER_TENANT), "t-147");
      assert.equal(await cachedTask(store, "k-149", OTHER_TENANT), undefined);
    });
  });
}
