import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { GatheredBody } from "./gathered-body.ts";
import { ReusedMemory } from "./reused-memory.ts";

const KIB = 1024;

/** Counts what is taken, and hands out memory that is full of something else. */
class WatchedMemory extends ReusedMemory {
  readonly taken: number[] = [];

  override take(length: number): ReturnType<ReusedMemory["take"]> {
    this.taken.push(length);
    const piece = super.take(length);
    piece.bytes.fill("#");
    return piece;
  }
}

describe("a body that comes in parts", () => {
  it("is the same however it was cut, and whether or not its length was announced", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 * KIB }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(lengths, fc.boolean(), (partLengths, isAnnounced) => {
        const parts = partLengths.map((length, index) => Buffer.alloc(length, `${index}知`));
        const expected = Buffer.concat(parts);
        const memory = new WatchedMemory();
        const body = new GatheredBody(memory, isAnnounced ? expected.length : undefined);
        for (const part of parts) {
          body.add(part);
          // From then on the part itself is not needed any more.
          if (memory.taken.length > 0) part.fill("!");
        }
        assert.ok(body.finish()?.bytes.equals(expected));
      }),
    );
  });

  it("takes no memory for what was only announced, nor for what came at once", () => {
    const memory = new WatchedMemory();
    const body = new GatheredBody(memory, 1024 * KIB);
    for (let part = 0; part < 7; part += 1) body.add(Buffer.alloc(64 * KIB));
    assert.deepEqual(memory.taken, []);
    body.add(Buffer.alloc(64 * KIB));
    assert.deepEqual(memory.taken, [1024 * KIB]);
    const whole = new GatheredBody(memory, 64 * KIB);
    const part = Buffer.alloc(64 * KIB);
    whole.add(part);
    assert.equal(whole.finish()?.bytes, part);
    assert.equal(memory.taken.length, 1);
  });

  it("is not there if it is shorter, or longer, than was announced", () => {
    const memory = new WatchedMemory();
    for (const parts of [[80], [50, 100], [150, 100], [250], []]) {
      const body = new GatheredBody(memory, 200 * KIB);
      for (const length of parts) body.add(Buffer.alloc(length * KIB));
      assert.equal(body.finish(), undefined);
    }
    assert.equal(memory.idleBytes, 256 * KIB);
  });

  it("that nobody wants any more gives its memory back", () => {
    const memory = new WatchedMemory();
    const body = new GatheredBody(memory, 200 * KIB);
    body.add(Buffer.alloc(100 * KIB));
    assert.equal(memory.idleBytes, 0);
    body.drop();
    assert.equal(memory.idleBytes, 256 * KIB);
    body.drop();
    assert.equal(memory.idleBytes, 256 * KIB);
  });

  it("is not given back by it once somebody has it", () => {
    const memory = new WatchedMemory();
    const body = new GatheredBody(memory, 200 * KIB);
    body.add(Buffer.alloc(100 * KIB, "知"));
    body.add(Buffer.alloc(100 * KIB, "知"));
    const whole = body.finish();
    body.drop();
    assert.equal(memory.idleBytes, 0);
    assert.equal(whole?.bytes.length, 200 * KIB);
  });

  it("of nothing is empty", () => {
    assert.equal(new GatheredBody(new WatchedMemory(), undefined).finish()?.bytes.length, 0);
  });
});
