import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../../testing/fake-clock.ts";
import type { Watch } from "../ports/change-feed.ts";
import { follow, type PollResult } from "./follow.ts";
import { Throttle } from "./throttle.ts";

const PULSE_MS = 15_000;
const LOOK_MS = 1_000;

/** Something always happens. */
const busy: Watch = { changed: async () => true, [Symbol.dispose]: () => undefined };

/** Each look takes a second, and there is never anything on it. */
function followNothing(more: Partial<PollResult<number>> = {}): AsyncIterable<number> {
  const clock = new FakeClock();
  let looks = 0;
  return follow({
    watch: busy,
    clock,
    throttle: new Throttle(clock),
    pulseMs: PULSE_MS,
    signal: undefined,
    look: async () => {
      clock.advance(LOOK_MS);
      looks += 1;
      return { page: looks, isEmpty: true, ...more };
    },
    stillAllowed: async () => {},
  });
}

describe("whoever follows something and is shown nothing", () => {
  for (const [why, more] of [
    ["other things happen without a pause", {}],
    ["the walk to what it wants is long", { hasMore: true }],
  ] as const) {
    it(`gets its signs of life also while ${why}`, { timeout: 10_000 }, async () => {
      const signs: number[] = [];
      for await (const look of followNothing(more)) {
        signs.push(look);
        if (signs.length === 4) break;
      }
      const apart = PULSE_MS / LOOK_MS + 1;
      assert.equal(signs[0], 1);
      for (const [index, look] of signs.entries()) assert.ok(look <= 1 + index * apart, String(signs));
    });
  }
});
