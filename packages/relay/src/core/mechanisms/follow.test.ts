import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../../testing/fake-clock.ts";
import type { Watch } from "../ports/change-feed.ts";
import { follow, type PollResult } from "./follow.ts";
import { Throttle } from "./throttle.ts";

const HEARTBEAT_MS = 15_000;
const POLL_MS = 1_000;

/** Something always happens. */
const busy: Watch = { changed: async () => true, [Symbol.dispose]: () => undefined };

/** Each poll takes a second and finds nothing. */
function followNothing(more: Partial<PollResult<number>> = {}): AsyncIterable<number> {
  const clock = new FakeClock();
  let polls = 0;
  return follow({
    watch: busy,
    clock,
    throttle: new Throttle(clock),
    heartbeatMs: HEARTBEAT_MS,
    signal: undefined,
    poll: async () => {
      clock.advance(POLL_MS);
      polls += 1;
      return { page: polls, isEmpty: true, ...more };
    },
    assertAllowed: async () => undefined,
  });
}

describe("a follower that is shown nothing", () => {
  for (const [why, more] of [
    ["other things happen without a pause", {}],
    ["the next page is far away", { hasMore: true }],
  ] as const) {
    it(`gets its heartbeats also while ${why}`, { timeout: 10_000 }, async () => {
      const beats: number[] = [];
      for await (const poll of followNothing(more)) {
        beats.push(poll);
        if (beats.length === 4) break;
      }
      const apart = HEARTBEAT_MS / POLL_MS + 1;
      assert.equal(beats[0], 1);
      for (const [index, poll] of beats.entries()) assert.ok(poll <= 1 + index * apart, String(beats));
    });
  }
});
