import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MicroBatch } from "./micro-batch.ts";

describe("MicroBatch", () => {
  it("runs the calls that wait while a batch runs as the next batch", async () => {
    const first = Promise.withResolvers<void>();
    const batches: (readonly string[])[] = [];
    const batch = new MicroBatch<string, string>(async (inputs) => {
      batches.push(inputs);
      if (batches.length === 1) await first.promise;
      return inputs.map((input) => `${input}好`);
    });
    const early = [batch.submit("甲"), batch.submit("乙")];
    await new Promise(setImmediate);
    const late = [batch.submit("丙")];
    await new Promise(setImmediate);
    late.push(batch.submit("丁"));
    first.resolve();
    assert.deepEqual(await Promise.all([...early, ...late]), ["甲好", "乙好", "丙好", "丁好"]);
    assert.deepEqual(batches, [
      ["甲", "乙"],
      ["丙", "丁"],
    ]);
  });

  it("asks again for the calls that a batch had no answer for", async () => {
    const batches: (readonly string[])[] = [];
    const batch = new MicroBatch<string, string>(async (inputs) => {
      batches.push(inputs);
      return inputs.slice(0, 1);
    });
    assert.deepEqual(await Promise.all([batch.submit("甲"), batch.submit("乙")]), ["甲", "乙"]);
    assert.deepEqual(batches, [["甲", "乙"], ["乙"]]);
  });

  it("fails the calls of a batch that fails, and no others", async () => {
    const batch = new MicroBatch<string, string>(async (inputs) => {
      if (inputs.includes("坏")) throw new Error("没有数据库");
      return inputs;
    });
    const outcomes = await Promise.allSettled([batch.submit("坏"), batch.submit("甲")]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    assert.equal(await batch.submit("乙"), "乙");
  });
});
