import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { firstAttemptAtMs, nextAttemptAtMs } from "./outbound-schedule.ts";

const OFFSETS_MS = [0, 5_000, 30_000, 120_000];

describe("the schedule of a push", () => {
  it("follows the offsets exactly when a receiver fails at once", () => {
    const tries: number[] = [NOON_MS];
    for (let attempt = 1; attempt < 10; attempt += 1) {
      const endedAtMs = tries.at(-1) ?? 0;
      const nextAtMs = nextAttemptAtMs({ attempt, endedAtMs, retryAfterMs: 0 }, OFFSETS_MS);
      if (nextAtMs === undefined) break;
      tries.push(nextAtMs);
    }
    assert.deepEqual(
      tries.map((atMs) => atMs - NOON_MS),
      OFFSETS_MS,
    );
  });

  it("counts the gap from the end of the attempt that failed", () => {
    const failed = { attempt: 2, endedAtMs: NOON_MS + 15_000, retryAfterMs: 0 };
    assert.equal(nextAttemptAtMs(failed, OFFSETS_MS), NOON_MS + 15_000 + 25_000);
  });

  it("ends after the last offset, also when there is only one", () => {
    const failed = { endedAtMs: NOON_MS, retryAfterMs: 5_000 };
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 4 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 5 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 1 }, [0]), undefined);
  });

  it("waits as long as the receiver asks, and never less than its own gap", () => {
    for (const [retryAfterMs, waitMs] of [
      [60_000, 60_000],
      [1_000, 5_000],
      [0, 5_000],
    ] as const) {
      const failed = { attempt: 1, endedAtMs: NOON_MS, retryAfterMs };
      assert.equal(nextAttemptAtMs(failed, OFFSETS_MS), NOON_MS + waitMs);
    }
  });
});

describe("the first attempt", () => {
  it("is due since its message was accepted, or so much later as the first offset says", () => {
    assert.equal(firstAttemptAtMs(NOON_MS, OFFSETS_MS), NOON_MS);
    assert.equal(firstAttemptAtMs(NOON_MS, [50, 60]), NOON_MS + 50);
  });
});
