import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { KeyedMutex } from "./keyed-mutex.ts";

describe("a keyed mutex", () => {
  it("runs acts with the same key one after another, in the order of the calls", async () => {
    const clock = new FakeClock();
    const mutex = new KeyedMutex(clock);
    const seen: string[] = [];
    const act = (name: string) => async (): Promise<string> => {
      seen.push(`${name} begins`);
      for (let n = 0; n < 5; n += 1) await clock.nextTurn();
      seen.push(`${name} ends`);
      return name;
    };
    const answers = ["a", "b", "c"].map((name) => mutex.run("同", act(name)));
    assert.deepEqual(await Promise.all(answers), ["a", "b", "c"]);
    assert.deepEqual(seen, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("does not let acts with different keys wait for each other", async () => {
    const mutex = new KeyedMutex(new FakeClock());
    const { promise: later, resolve } = Promise.withResolvers<string>();
    const slow = mutex.run("one", () => later);
    assert.equal(await mutex.run("two", async () => "done"), "done");
    resolve("late");
    assert.equal(await slow, "late");
  });

  it("goes on after an act that failed, and only its caller sees the failure", async () => {
    const mutex = new KeyedMutex(new FakeClock());
    const failing = mutex.run("x", async () => {
      throw new Error("mine");
    });
    const next = mutex.run("x", async () => "fine");
    await assert.rejects(failing, /mine/);
    assert.equal(await next, "fine");
  });

  it("keeps nothing of a key that is free", async () => {
    const mutex = new KeyedMutex(new FakeClock());
    const taken = ["a", "a", "b"].map((key) => mutex.run(key, async () => key));
    assert.equal(mutex.lockedCount, 2);
    await Promise.all(taken);
    assert.equal(mutex.lockedCount, 0);
  });
});
