import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { digestOf, digestOfText } from "./digest.ts";

describe("a digest", () => {
  it("of a value does not depend on the order of its members", () => {
    assert.equal(digestOf({ a: 1, b: { 知: 1, 微: 2 } }), digestOf({ b: { 微: 2, 知: 1 }, a: 1 }));
    assert.notEqual(digestOf([1, 2]), digestOf([2, 1]));
  });

  it("of a text is that of exactly its bytes", () => {
    assert.equal(digestOf({ b: 1, a: "知" }), digestOfText('{"a":"知","b":1}'));
    assert.notEqual(digestOfText("a"), digestOfText("a "));
  });
});
