import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { HeartbeatTimer } from "./heartbeat-timer.ts";

describe("the heartbeat timer", () => {
  it("calls every listener once per interval, and not all at the same moment", (t) => {
    mock.timers.enable({ apis: ["setInterval"] });
    t.after(() => mock.timers.reset());
    const timer = new HeartbeatTimer(1_600);
    const counts = Array.from({ length: 40 }, () => 0);
    const remove = counts.map((_, index) => timer.add(() => (counts[index] = (counts[index] ?? 0) + 1)));
    mock.timers.tick(100);
    assert.ok(counts.some((count) => count === 1) && counts.some((count) => count === 0));
    mock.timers.tick(1_500);
    assert.deepEqual(new Set(counts), new Set([1]));
    for (const each of remove.slice(1)) each();
    mock.timers.tick(1_600);
    assert.deepEqual([counts[0], counts[1]], [2, 1]);
  });

  it("keeps no interval without listeners, also when one is removed twice", (t) => {
    mock.timers.enable({ apis: ["setInterval"] });
    t.after(() => mock.timers.reset());
    const timer = new HeartbeatTimer(160);
    let beats = 0;
    const remove = timer.add(() => (beats += 1));
    const removeOther = timer.add(() => (beats += 1));
    remove();
    remove();
    mock.timers.tick(160);
    assert.equal(beats, 1);
    removeOther();
    mock.timers.tick(1_600);
    assert.equal(beats, 1);
  });
});
