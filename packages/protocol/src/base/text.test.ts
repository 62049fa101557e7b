import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LIMITS } from "./limits.ts";
import { assertCleanJson, canonicalJson, formatInstant, parseInstant, quote } from "./text.ts";

describe("assertCleanJson", () => {
  it("lets any JSON of ordinary depth through", () => {
    const clean = fc.jsonValue().filter((value) => !JSON.stringify(value).includes("\\u0000"));
    fc.assert(fc.property(clean, (value) => assertCleanJson(value, "body")));
  });

  it("names the member that holds U+0000, wherever it is", () => {
    const sentence = /: has the character U\+0000; leave it out$/;
    assert.throws(() => assertCleanJson("知\0微", "body"), { code: "invalid_argument", message: sentence });
    assert.throws(() => assertCleanJson({ parts: [{ text: "\0" }] }, "message"), { message: /^parts: / });
    assert.throws(() => assertCleanJson({ "a\0": 1 }, "message"), { message: sentence });
  });

  it("names the member that holds a lone surrogate, wherever it is", () => {
    const lone = "a\udc00";
    assert.throws(() => assertCleanJson(lone, "body"), { code: "invalid_argument", message: /^body: / });
    assert.throws(() => assertCleanJson({ subject: lone }, "message"), { message: /^subject: / });
    assert.throws(() => assertCleanJson({ parts: [{ text: lone }] }, "message"), { message: /^parts: / });
    assert.throws(() => assertCleanJson({ [lone]: 1 }, "message"), { message: /lone surrogate/ });
  });

  it("lets a surrogate pair through", () => assertCleanJson({ body: "🦊知微" }, "message"));

  it("accepts the deepest nesting allowed, and refuses one more", () => {
    assertCleanJson(nested(LIMITS.jsonDepthMax), "message");
    assert.throws(() => assertCleanJson(nested(LIMITS.jsonDepthMax + 1), "message"), {
      code: "invalid_argument",
      message: /deeper than 64/,
    });
  });

  it("is not overrun by a nesting that would overflow the stack", () => {
    const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`) as unknown;
    assert.throws(() => assertCleanJson(deep, "message"), { message: /deeper than 64/ });
  });
});

describe("parseInstant", () => {
  const instants: readonly [text: string, atMs: number][] = [
    ["1970-01-01T00:00:00Z", 0],
    ["2026-05-08T08:30:00Z", 1_778_229_000_000],
    ["2026-05-08T08:30:00.25Z", 1_778_229_000_250],
    ["2026-05-08T16:30:00+08:00", 1_778_229_000_000],
    ["2024-02-29T00:00:00Z", 1_709_164_800_000],
    ["9999-12-31T23:59:59.999Z", 253_402_300_799_999],
  ];
  for (const [text, atMs] of instants) {
    it(`reads ${text}`, () => assert.equal(parseInstant(text, "at"), atMs));
  }

  const refused: readonly unknown[] = [
    undefined,
    null,
    0,
    1_778_229_000_000,
    "",
    "yesterday",
    "2026-05-08",
    "2026-05-08T08:30:00",
    "2026-05-08 08:30:00Z",
    "1969-12-31T23:59:59.999Z",
    "1970-01-01T00:00:00+01:00",
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T25:00:00Z",
    "2026-01-01T00:60:00Z",
    "+012026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "２026-01-01T00:00:00Z",
  ];
  for (const input of refused) {
    it(`refuses ${JSON.stringify(input) ?? "nothing"} and names the field`, () => {
      assert.throws(() => parseInstant(input, "expires_at"), {
        code: "invalid_argument",
        message: /^expires_at: /,
      });
    });
  }

  it("is written in UTC with its milliseconds, in whatever order instants come", () => {
    const near = fc.integer({ min: 1_000_000_000_000, max: 1_000_000_003_000 });
    const any = fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 });
    fc.assert(
      fc.property(fc.array(fc.oneof(near, any), { minLength: 1, maxLength: 20 }), (times) => {
        for (const atMs of times) assert.equal(formatInstant(atMs), new Date(atMs).toISOString());
      }),
    );
  });

  it("reads back what formatInstant writes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (atMs) => {
        assert.equal(parseInstant(formatInstant(atMs), "at"), atMs);
      }),
    );
  });
});

describe("quote", () => {
  it("shows any value on one line of at most 80 characters, well formed", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.string({ unit: "binary", maxLength: 200 })), (value) => {
        const shown = quote(value);
        assert.ok(shown.length <= 80 && shown.isWellFormed() && !/[\n\r]/.test(shown), shown);
      }),
    );
  });

  it("shows what JSON has no word for", () => {
    assert.equal(quote(undefined), "undefined");
    assert.equal(quote(Number.NaN), "NaN");
    assert.equal(quote(7n), "7");
  });

  it("shows JSON as it is, cut off where it is too long", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const whole = JSON.stringify(JSON.parse(JSON.stringify(value)));
        const cut = `${whole.slice(0, 77).toWellFormed()}...`;
        assert.equal(quote(JSON.parse(whole)), whole.length <= 80 ? whole : cut);
      }),
      { numRuns: 1_000 },
    );
  });

  it("does not fall over what is nested too deeply", () => {
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown;
    assert.equal(quote(deep), `${"[".repeat(77)}...`);
  });

  it("reads only the beginning of a large value", () => {
    const seen: number[] = [];
    const items = Array.from({ length: 1_000 }, (_, index) => index);
    const watched = new Proxy(items, {
      get: (target, key, receiver) => {
        if (typeof key === "string" && /^\d+$/.test(key)) seen.push(Number(key));
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    assert.match(quote(watched), /^\[0,1,2,.*\.\.\.$/);
    assert.ok(seen.length < 100, `${seen.length} items were read`);
  });
});

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

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
