import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { memberJson } from "./json-member.ts";

describe("memberJson", () => {
  it("finds what JSON.parse finds, in any object", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
        fc.string(),
        (object, other) => {
          // As JSON says it: -0 is 0 there.
          const json = JSON.stringify(object);
          for (const member of [...Object.keys(object), other]) {
            const value = Object.hasOwn(object, member) ? JSON.stringify(object[member]) : undefined;
            assert.equal(memberJson(json, member), value, `${member} in ${json}`);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it("is not led astray by quotes, brackets and the wanted name inside of other texts", () => {
    const body = 'a "body": \\ and \\" and {"body":"x"}], 正文';
    const json = JSON.stringify({ subject: '","body":"no', nested: { body: [1, { body: "no" }] }, body });
    assert.equal(memberJson(json, "body"), JSON.stringify(body));
    assert.equal(memberJson(json, "nested"), '{"body":[1,{"body":"no"}]}');
    assert.equal(memberJson(json, "parts"), undefined);
    assert.equal(memberJson("{}", "body"), undefined);
  });
});
