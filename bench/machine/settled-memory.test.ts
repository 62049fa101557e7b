import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isSettled } from "./settled-memory.ts";

const STILL = [1_000, 1_005, 1_000, 1_010, 1_005, 1_000];

describe("memory", () => {
  it("is settled when it has moved little for a while", () => {
    assert.equal(isSettled(STILL), true);
    assert.equal(isSettled([9_000, ...STILL]), true);
  });

  it("is not settled before enough samples", () => {
    assert.equal(isSettled(STILL.slice(1)), false);
  });

  it("is not settled while it grows or shrinks, also at the last sample", () => {
    assert.equal(isSettled([...STILL, 1_020]), false);
    assert.equal(isSettled([...STILL.slice(1), 900]), false);
  });
});
