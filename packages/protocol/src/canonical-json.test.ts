import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { canonicalJson } from "./canonical-json.ts";

describe("canonical JSON", () => {
  it("is JSON of the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("does not depend on the order of members, at any depth", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.equal(canonicalJson(reversed(value)), canonicalJson(value));
      }),
    );
  });

  it("leaves out what is undefined and keeps the order of lists", () => {
    assert.equal(canonicalJson({ b: undefined, a: [2, 1] }), '{"a":[2,1]}');
    assert.equal(canonicalJson(undefined), "null");
  });

  it("sorts by code units and not by code points, and writes no blanks", () => {
    const value = {
      "\u{1f600}": 1,
      "\uff01": 2,
      知微: { b: "x y", a: null },
      Z: 1e21,
      a: true,
      "10": 0,
      "9": -0,
    };
    assert.equal(
      canonicalJson(value),
      '{"10":0,"9":0,"Z":1e+21,"a":true,"知微":{"a":null,"b":"x y"},"\u{1f600}":1,"\uff01":2}',
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]) => [key, reversed(member)] as const)
      .toReversed(),
  );
}
