import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { readRetryAfter } from "./outbound-exchange.ts";

describe("Retry-After", () => {
  for (const [text, waitMs] of [
    [undefined, 0],
    ["", 0],
    ["0", 0],
    [" 7 ", 7_000],
    ["-7", 0],
    ["1.5", 0],
    ["1e9", 0],
    ["9".repeat(400), LIMITS.pushRetryAfterMsMax],
    ["Fri, 08 May 2026 12:00:30 GMT", 30_000],
    ["Friday, 08-May-26 12:00:30 GMT", 30_000],
    ["Fri May  8 12:00:30 2026", 30_000],
    ["Fri, 08 May 2026 11:00:00 GMT", 0],
    ["Fri, 08 May 2099 11:00:00 GMT", LIMITS.pushRetryAfterMsMax],
    ["2026", 2_026_000],
    ["2026-05-08T12:00:30Z", 0],
    ["Soon, very soon GMT", 0],
  ] as const) {
    it(`${JSON.stringify(text)?.slice(0, 40)} means ${waitMs} ms`, () => {
      assert.equal(readRetryAfter(text, NOON_MS), waitMs);
    });
  }
});
