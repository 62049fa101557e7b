import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { KeyedMutex } from "./keyed-mutex.ts";

describe("turns", () => {
  it("are taken one after another, in the order in which they were asked for", async () => {
    const clock = new FakeClock();
    const turns = new KeyedMutex(clock);
    const seen: string[] = [];
    const act = (name: string) => async (): Promise<string> => {
      seen.push(`${name} begins`);
      for (let turn = 0; turn < 5; turn += 1) await clock.nextTurn();
      seen.push(`${name} ends`);
      return name;
    };
    const answers = ["a", "b", "c"].map((name) => turns.take("同", act(name)));
    assert.deepEqual(await Promise.all(answers), ["a", "b", "c"]);
    assert.deepEqual(seen, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("at different things wait for nobody", async () => {
    const turns = new KeyedMutex(new FakeClock());
    const { promise: later, resolve } = Promise.withResolvers<string>();
    const slow = turns.take("one", () => later);
    assert.equal(await turns.take("two", async () => "done"), "done");
    resolve("late");
    assert.equal(await slow, "late");
  });

  it("go on after one that failed, which alone hears of its failure", async () => {
    const turns = new KeyedMutex(new FakeClock());
    const failing = turns.take("x", async () => {
      throw new Error("mine");
    });
    const next = turns.take("x", async () => "fine");
    await assert.rejects(failing, /mine/);
    assert.equal(await next, "fine");
  });

  it("leave nothing behind", async () => {
    const turns = new KeyedMutex(new FakeClock());
    const taken = ["a", "a", "b"].map((key) => turns.take(key, async () => key));
    assert.equal(turns.busy, 2);
    await Promise.all(taken);
    assert.equal(turns.busy, 0);
  });
});
