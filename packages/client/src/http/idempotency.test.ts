import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createIdempotencyKey } from "./idempotency.ts";

describe("createIdempotencyKey", () => {
  it("makes a UUID of version 7", () => {
    assert.match(
      createIdempotencyKey(),
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  it("begins with the time, so that later keys sort behind earlier ones", () => {
    assert.equal(createIdempotencyKey(0x0198_7654_3210).slice(0, 13), "01987654-3210");
    const keys = [1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1_800_000_000_000].map((atMs) =>
      createIdempotencyKey(atMs),
    );
    assert.deepEqual(keys.toSorted(), keys);
  });

  it("never makes the same key twice in one millisecond", () => {
    const keys = Array.from({ length: 10_000 }, () => createIdempotencyKey(1));
    assert.equal(new Set(keys).size, keys.length);
  });
});
