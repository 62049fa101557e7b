import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { Throttle } from "./throttle.ts";

describe("a throttle", () => {
  it("lets a few callers step per turn of the event loop, in the order of their calls", async () => {
    const throttle = new Throttle(new FakeClock());
    const stepped: number[] = [];
    const steps = Array.from({ length: 7 }, (_, index) => throttle.step().then(() => stepped.push(index)));
    assert.deepEqual(stepped, []);
    await nextTurn();
    const first = stepped.length;
    assert.ok(first > 0 && first < 4, `${first} in one turn`);
    await Promise.all(steps);
    assert.deepEqual(stepped, [0, 1, 2, 3, 4, 5, 6]);
  });

  it("goes on after it was idle", async () => {
    const throttle = new Throttle(new FakeClock());
    await throttle.step();
    await nextTurn();
    await throttle.step();
  });
});
