import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { firstAttemptAtMs, nextAttemptAtMs, readRetryAfter } from "./outbound-schedule.ts";

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
    const failed = { endedAtMs: NOON_MS, retryAfter: "5" };
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 4 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 5 }, OFFSETS_MS), undefined);
    assert.equal(nextAttemptAtMs({ ...failed, attempt: 1 }, [0]), undefined);
  });

  for (const [retryAfter, waitMs] of [
    ["60", 60_000],
    ["1", 5_000],
    ["0", 5_000],
    ["999999999", LIMITS.pushRetryAfterMsMax],
    [new Date(NOON_MS + 90_000).toUTCString(), 90_000],
    ["whenever", 5_000],
  ] as const) {
    it(`waits ${waitMs} ms where ${retryAfter} is asked for, and never less than its own gap`, () => {
      const failed = { attempt: 1, endedAtMs: NOON_MS, retryAfter };
      assert.equal(nextAttemptAtMs(failed, OFFSETS_MS), NOON_MS + waitMs);
    });
  }
});

describe("Retry-After", () => {
  for (const [text, waitMs] of [
    [undefined, undefined],
    ["", undefined],
    ["0", 0],
    [" 7 ", 7_000],
    ["-7", undefined],
    ["1.5", undefined],
    ["1e9", undefined],
    ["9".repeat(400), LIMITS.pushRetryAfterMsMax],
    ["Fri, 08 May 2026 12:00:30 GMT", 30_000],
    ["Friday, 08-May-26 12:00:30 GMT", 30_000],
    ["Fri May  8 12:00:30 2026", 30_000],
    ["Fri, 08 May 2026 11:00:00 GMT", 0],
    ["Fri, 08 May 2099 11:00:00 GMT", LIMITS.pushRetryAfterMsMax],
    ["2026", 2_026_000],
    ["2026-05-08T12:00:30Z", undefined],
    ["Soon, very soon GMT", undefined],
  ] as const) {
    it(`${JSON.stringify(text)?.slice(0, 40)} means ${waitMs === undefined ? "nothing" : `${waitMs} ms`}`, () => {
      assert.equal(readRetryAfter(text, NOON_MS), waitMs);
    });
  }
});

describe("the first attempt", () => {
  it("is due since its message was accepted, or so much later as the first offset says", () => {
    assert.equal(firstAttemptAtMs(NOON_MS, OFFSETS_MS), NOON_MS);
    assert.equal(firstAttemptAtMs(NOON_MS, [50, 60]), NOON_MS + 50);
  });
});
