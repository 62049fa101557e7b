import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Semaphore } from "./semaphore.ts";

describe("lanes", () => {
  it("let so many run at one time and the others wait in their order", async () => {
    const lanes = new Semaphore(2);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const acts = [0, 1, 2, 3].map((number) =>
      lanes.run(async () => {
        started.push(number);
        await new Promise<void>((resolve) => ends.push(resolve));
      }),
    );
    assert.deepEqual(started, [0, 1]);
    ends[1]?.();
    await acts[1];
    assert.deepEqual(started, [0, 1, 2]);
    ends[2]?.();
    await acts[2];
    ends[0]?.();
    ends[3]?.();
    await Promise.all(acts);
    assert.deepEqual(started, [0, 1, 2, 3]);
  });

  it("go on after an act that failed", async () => {
    const lanes = new Semaphore(1);
    const failing = lanes.run(async () => Promise.reject(new Error("no")));
    const next = lanes.run(async () => "next");
    await assert.rejects(failing, { message: "no" });
    assert.equal(await next, "next");
  });
});
