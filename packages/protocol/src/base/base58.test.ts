import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fromBase58, toBase58 } from "./base58.ts";

describe("base58", () => {
  it("writes what others write", () => {
    assert.equal(toBase58(Buffer.from("Hello World!")), "2NEpo7TZRRrLZSi2U");
    assert.equal(toBase58(Uint8Array.from([0, 0, 40, 127, 180, 205])), "11233QC4");
    assert.equal(toBase58(new Uint8Array()), "");
  });

  it("reads back whatever it wrote, leading zeroes too", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
        assert.deepEqual(fromBase58(toBase58(bytes), bytes.length), bytes);
      }),
    );
  });

  for (const text of ["0", "O", "I", "l", "知", "a b", "-"]) {
    it(`does not read "${text}"`, () => assert.equal(fromBase58(text, 1), undefined));
  }

  it("does not read another length than it is asked for, however long", () => {
    assert.equal(fromBase58(toBase58(new Uint8Array(31).fill(7)), 32), undefined);
    assert.equal(fromBase58(toBase58(new Uint8Array(33).fill(7)), 32), undefined);
    assert.equal(fromBase58("z".repeat(1_000_000), 32), undefined);
  });
});
