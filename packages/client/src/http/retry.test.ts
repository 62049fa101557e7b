import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseRetryAfterMs, retryDelayMs } from "./retry.ts";

describe("retryDelayMs", () => {
  const delays = { firstMs: 100, maxMs: 1_000 };

  it("doubles its ceiling from try to try and never passes the highest", () => {
    const ceilings = [1, 2, 3, 4, 5, 50, 5_000].map((attempt) => retryDelayMs(attempt, delays, () => 1));
    assert.deepEqual(ceilings, [100, 200, 400, 800, 1_000, 1_000, 1_000]);
  });

  it("is anything between nothing and the ceiling", () => {
    assert.equal(
      retryDelayMs(3, delays, () => 0),
      0,
    );
    assert.equal(
      retryDelayMs(3, delays, () => 0.5),
      200,
    );
  });
});

describe("parseRetryAfterMs", () => {
  it("reads seconds", () => {
    assert.equal(parseRetryAfterMs("3"), 3_000);
    assert.equal(parseRetryAfterMs("0"), 0);
  });

  it("reads a date, and a date that has passed as now", () => {
    const nowMs = Date.parse("2026-05-08T08:30:00Z");
    assert.equal(parseRetryAfterMs("Fri, 08 May 2026 08:30:05 GMT", nowMs), 5_000);
    assert.equal(parseRetryAfterMs("Fri, 08 May 2026 08:29:00 GMT", nowMs), 0);
  });

  it("ignores what is neither", () => {
    for (const header of [null, "", "soon", "-3", "1e9999"])
      assert.equal(parseRetryAfterMs(header), undefined);
  });
});
