import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { firstAttemptAtMs, nextAttemptAtMs } from "./outbound-schedule.ts";

const OFFSETS_MS = [0, 5_000, 30_000, 120_000];

describe("the schedule of a push", () => {
  it("follows the offsets exactly when a receiver fails at once", () => {
    const tries: number[] = [NOON_MS];
    for (let attempt = 1; attempt < 10; attempt += 1) {
      const endedAtMs = tries.at(-1) ?? 0;
      const nextAtMs = nextAttemptAtMs({ attempt, endedAtMs, retryAfter: undefined }, OFFSETS_MS);
      if (nextAtMs === undefined) break;
      tries.push(nextAtMs);
    }
    assert.deepEqual(
      tries.map((atMs) => atMs - NOON_MS),
      OFFSETS_MS,
    );
  });

  it("counts the gap from the end of the attempt that failed", () => {
    const failed = { attempt: 2, endedAtMs: NOON_MS + 15_000, retryAfter: undefined };
    assert.equal(nextAttemptAtMs(failed, OFFSETS_MS), NOON_MS + 15_000 + 25_000);
  });

  it("ends after the last offset, also when there is only one", () => {
    const failed = { endedAtMs: NOON_MS, retryAfter: { waitMs: 5_000 } };
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 4 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 5 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 1 }, [0]), undefined);
  });

  for (const [retryAfter, waitMs] of [
    [{ waitMs: 60_000 }, 60_000],
    [{ waitMs: 1_000 }, 5_000],
    [{ waitMs: 0 }, 5_000],
    [{ waitMs: Infinity }, LIMITS.pushRetryAfterMsMax],
    [{ untilMs: NOON_MS + 90_000 }, 90_000],
    [{ untilMs: NOON_MS - 90_000 }, 5_000],
    [{ untilMs: NOON_MS * 2 }, LIMITS.pushRetryAfterMsMax],
    [undefined, 5_000],
  ] as const) {
    it(`waits ${waitMs} ms where ${JSON.stringify(retryAfter)} is asked for, and never less than its own gap`, () => {
      const failed = { attempt: 1, endedAtMs: NOON_MS, retryAfter };
      assert.equal(nextAttemptAtMs(failed, OFFSETS_MS), NOON_MS + waitMs);
    });
  }
});

describe("the first attempt", () => {
  it("is due since its message was accepted, or so much later as the first offset says", () => {
    assert.equal(firstAttemptAtMs(NOON_MS, OFFSETS_MS), NOON_MS);
    assert.equal(firstAttemptAtMs(NOON_MS, [50, 60]), NOON_MS + 50);
  });
});
