import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Backoff, IntervalLoop } from "./loops.ts";

/** Steps that a test ends one by one. */
function stepper() {
  const begun: PromiseWithResolvers<void>[] = [];
  const waits: (() => void)[] = [];
  return {
    begun,
    async next(): Promise<void> {
      if (begun.length > 0) return;
      await new Promise<void>((resolve) => waits.push(resolve));
    },
    step: async (): Promise<void> => {
      const gate = Promise.withResolvers<void>();
      begun.push(gate);
      waits.shift()?.();
      await gate.promise;
    },
  };
}

function ignore(): void {
  assert.fail("nothing should have been reported");
}

describe("an interval loop", () => {
  it("runs its step until it is stopped, and at once when there is more to do", async () => {
    let runs = 0;
    const done = Promise.withResolvers<void>();
    const step = async (): Promise<boolean> => {
      runs += 1;
      if (runs === 50) done.resolve();
      return true;
    };
    await using _ = new IntervalLoop(step, { intervalMs: 1, report: ignore });
    await done.promise;
  });

  it("waits for the interval before the first run", async () => {
    let runs = 0;
    const step = async (): Promise<boolean> => {
      runs += 1;
      return false;
    };
    {
      await using _ = new IntervalLoop(step, { intervalMs: 60_000, report: ignore });
    }
    assert.equal(runs, 0);
  });

  it("never runs two steps at once, and stopping waits for the step under way", async () => {
    const steps = stepper();
    const loop = new IntervalLoop(
      async () => {
        await steps.step();
        return true;
      },
      { intervalMs: 1, report: ignore },
    );
    await steps.next();
    const stopping = loop[Symbol.asyncDispose]();
    const first = await Promise.race([
      stopping,
      new Promise((resolve) => setImmediate(resolve, "still running")),
    ]);
    assert.deepEqual([steps.begun.length, first], [1, "still running"]);
    steps.begun[0]?.resolve();
    await stopping;
    assert.equal(steps.begun.length, 1);
  });

  it("reports a failed step and continues", async () => {
    const reported: unknown[] = [];
    const again = Promise.withResolvers<void>();
    const step = async (): Promise<boolean> => {
      if (reported.length >= 2) again.resolve();
      throw new Error("the disk is full");
    };
    await using _ = new IntervalLoop(step, { intervalMs: 1, report: (reason) => reported.push(reason) });
    await again.promise;
    assert.match(String(reported[0]), /disk is full/);
  });
});

describe("a backoff", () => {
  it("doubles from one second to its limit, and starts again after a reset", async () => {
    const reported: unknown[] = [];
    const waits: number[] = [];
    const backoff = new Backoff({
      report: (reason) => reported.push(reason),
      signal: new AbortController().signal,
      pause: async (ms) => void waits.push(ms),
    });
    for (let failure = 0; failure < 8; failure += 1) await backoff.failed(failure);
    backoff.reset();
    await backoff.failed(8);
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 1_000]);
    assert.deepEqual(reported, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
