import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Piece, ReusedMemory } from "./reused-memory.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

describe("memory that is used again", () => {
  it("is what was given back before, for whoever needs about as much", () => {
    const memory = new ReusedMemory();
    const first = memory.take(130 * KIB);
    const { buffer } = first.bytes;
    assert.equal(first.bytes.length, 130 * KIB);
    first.giveBack();
    assert.equal(memory.idleBytes, 256 * KIB);
    const second = memory.take(200 * KIB);
    assert.equal(second.bytes.buffer, buffer);
    assert.equal(second.bytes.length, 200 * KIB);
    assert.equal(memory.idleBytes, 0);
    assert.notEqual(memory.take(200 * KIB).bytes.buffer, buffer);
  });

  it("is not kept for what is small or very large", () => {
    const memory = new ReusedMemory();
    for (const length of [0, 1, 64 * KIB - 1, MIB + 1, 16 * MIB]) {
      const piece = memory.take(length);
      assert.equal(piece.bytes.length, length);
      piece.giveBack();
    }
    assert.equal(memory.idleBytes, 0);
  });

  it("is let go where more of it lies ready than is ever needed", () => {
    const memory = new ReusedMemory();
    const pieces = Array.from({ length: 40 }, () => memory.take(MIB));
    for (const piece of pieces) piece.giveBack();
    assert.equal(memory.idleBytes, 8 * MIB);
  });

  it("of one size is kept however much there is of another", () => {
    const memory = new ReusedMemory();
    const large = Array.from({ length: 40 }, () => memory.take(MIB));
    for (const piece of large) piece.giveBack();
    const before = memory.idleBytes;
    const batches = Array.from({ length: 64 }, () => memory.take(128 * KIB));
    for (const piece of batches) piece.giveBack();
    assert.equal(memory.idleBytes, before + 64 * 128 * KIB);
  });

  it("is nobody's who gave it back, and is given back only once", () => {
    const memory = new ReusedMemory();
    const piece = memory.take(MIB);
    piece.giveBack();
    piece.giveBack();
    assert.equal(memory.idleBytes, MIB);
    assert.throws(() => piece.bytes, /given back/);
  });

  it("holds texts as UTF-8, however long they are, and nothing behind them", () => {
    const memory = new ReusedMemory();
    const texts = fc.array(fc.tuple(fc.string({ unit: "binary" }), fc.constantFrom(1, 1_000, 30_000)), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(texts, (pieces) => {
        const written = pieces.map(([text, times]) => text.repeat(times));
        const piece = memory.write(written);
        assert.ok(piece.bytes.equals(Buffer.from(written.join(""))));
        piece.bytes.fill("#");
        piece.giveBack();
      }),
      { numRuns: 40 },
    );
    const long = "知微你好".repeat(200_000);
    assert.equal(memory.write([long, long]).bytes.toString(), long + long);
  });

  it("never belongs to two at the same time", () => {
    const lengths = fc.integer({ min: 60 * KIB, max: 300 * KIB });
    const acts = fc.array(fc.oneof(fc.record({ take: lengths }), fc.record({ giveBack: fc.nat(9) })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(acts, (script) => {
        const memory = new ReusedMemory();
        const held: { readonly piece: Piece; readonly mark: number }[] = [];
        for (const [index, act] of script.entries()) {
          if ("take" in act) {
            const mark = (index % 255) + 1;
            const piece = memory.take(act.take);
            piece.bytes.fill(mark);
            held.push({ piece, mark });
          } else {
            held.splice(act.giveBack, 1)[0]?.piece.giveBack();
          }
          for (const { piece, mark } of held) {
            assert.equal(piece.bytes[0], mark);
            assert.equal(piece.bytes.at(-1), mark);
          }
        }
      }),
      { numRuns: 50 },
    );
  });
});
