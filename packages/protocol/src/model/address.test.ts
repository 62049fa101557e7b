import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseAddress, parseAgentId, parseRecordId } from "./address.ts";
import { LIMITS } from "../base/limits.ts";
import { RelayError } from "../base/relay-error.ts";

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (reason) {
    if (reason instanceof RelayError) return reason.code;
    throw reason;
  }
  return "accepted";
}

describe("parseAgentId", () => {
  const accepted = [
    "lulu@kamac",
    "zhiwei@known-blocks1",
    "urn:uuid:0196b2f0-0000-7000-8000-000000000000",
    "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
    "12D3KooWGzBrbE7qM9yFKDS3FWFjQ6pKmXNDqvU7hjRwtMfVHGCu",
    "知微@机器",
    "a",
    "a.b",
    "…",
    "x".repeat(LIMITS.idCharsMax),
  ];
  for (const id of accepted) {
    it(`accepts ${id.slice(0, 40)}`, () => assert.equal(parseAgentId(id), id));
  }

  const refused: readonly [what: string, input: unknown][] = [
    ["nothing", undefined],
    ["null", null],
    ["a number", 7],
    ["an object", { id: "a" }],
    ["the empty string", ""],
    ["one dot", "."],
    ["two dots", ".."],
    ["a step up inside", "a..b"],
    ["a slash", "a/b"],
    ["a backslash", "a\\b"],
    ["a blank", "a b"],
    ["a line break", "a\nb"],
    ["NUL", "a\u0000b"],
    ["an escape character", "a\u001b[31m"],
    ["a mark that reverses the text", "a\u202eb"],
    ["a zero-width joiner", "a\u200db"],
    ["a lone surrogate", "a\ud800"],
    ["a percent sign", "a%2e"],
    ["a question mark", "a?b"],
    ["a fragment", "a#b"],
    ["a quote", 'a"b'],
    ["angle brackets", "<a>"],
  ];
  for (const [what, input] of refused) {
    it(`refuses ${what}`, () =>
      assert.equal(
        codeOf(() => parseAgentId(input)),
        "invalid_argument",
      ));
  }

  it("says that a long id is too large, and names the field", () => {
    const long = "x".repeat(LIMITS.idCharsMax + 1);
    assert.throws(() => parseAgentId(long, "to"), { code: "too_large", message: /^to: .*200.*201/ });
  });

  it("gives back what it accepts unchanged, and never a path out of a directory", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 20 }), (text) => {
        if (codeOf(() => parseRecordId(text, "id")) !== "accepted") return;
        assert.equal(parseRecordId(text, "id"), text);
        assert.ok(!/[/\\\s\0]/.test(text) && !text.includes("..") && text !== ".");
        assert.equal(encodeURIComponent(text).length > 0, true);
      }),
    );
  });
});

describe("parseAddress", () => {
  it("tells names, skills and URLs apart", () => {
    assert.deepEqual(parseAddress("kames"), { kind: "name", name: "kames" });
    assert.deepEqual(parseAddress("skill:translate"), { kind: "skill", skill: "translate" });
    assert.deepEqual(parseAddress("https://a.example/x?y=1"), {
      kind: "url",
      url: "https://a.example/x?y=1",
    });
    assert.deepEqual(parseAddress("HTTP://a.example"), { kind: "url", url: "HTTP://a.example" });
  });

  it("refuses URLs that are none, and those that are too long", () => {
    assert.equal(
      codeOf(() => parseAddress("https://")),
      "invalid_argument",
    );
    assert.equal(
      codeOf(() => parseAddress(`https://a.example/${"x".repeat(2_000)}`)),
      "invalid_argument",
    );
  });

  it("takes other schemes for names, which have no slash", () => {
    assert.equal(
      codeOf(() => parseAddress("ftp://a.example")),
      "invalid_argument",
    );
    assert.deepEqual(parseAddress("urn:a2a:lulu"), { kind: "name", name: "urn:a2a:lulu" });
  });
});
