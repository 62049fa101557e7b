import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { Pulses } from "./pulses.ts";

describe("pulses", () => {
  it("call everybody once in each interval, and not all at the same moment", (t) => {
    mock.timers.enable({ apis: ["setInterval"] });
    t.after(() => mock.timers.reset());
    const pulses = new Pulses(1_600);
    const counts = Array.from({ length: 40 }, () => 0);
    const leave = counts.map((_, index) => pulses.join(() => (counts[index] = (counts[index] ?? 0) + 1)));
    mock.timers.tick(100);
    assert.ok(counts.some((count) => count === 1) && counts.some((count) => count === 0));
    mock.timers.tick(1_500);
    assert.deepEqual(new Set(counts), new Set([1]));
    for (const each of leave.slice(1)) each();
    mock.timers.tick(1_600);
    assert.deepEqual([counts[0], counts[1]], [2, 1]);
  });

  it("keep no timer when nobody is left, also when somebody leaves twice", (t) => {
    mock.timers.enable({ apis: ["setInterval"] });
    t.after(() => mock.timers.reset());
    const pulses = new Pulses(160);
    let beats = 0;
    const leave = pulses.join(() => (beats += 1));
    const stay = pulses.join(() => (beats += 1));
    leave();
    leave();
    mock.timers.tick(160);
    assert.equal(beats, 1);
    stay();
    mock.timers.tick(1_600);
    assert.equal(beats, 1);
  });
});
