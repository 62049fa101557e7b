import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RepairRequestSchema } from "@a2a-relay/protocol";
import { Type } from "typebox";
import { refused } from "../../../testing/refusal.ts";
import { parserOf, shapeParserOf } from "./schema-check.ts";

const parse = parserOf(
  Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 3 }),
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
      kind: Type.Optional(Type.Enum(["a", "b"])),
      list: Type.Optional(Type.Array(Type.Object({ "a/b~c": Type.Boolean() }), { minItems: 1, maxItems: 2 })),
      reason: Type.Optional(Type.String({ pattern: "\\S" })),
      version: Type.Optional(Type.Literal("v1")),
    },
    { additionalProperties: false },
  ),
  "thing",
);

describe("a parser", () => {
  it("gives back what fits", () => {
    const input = { name: "abc", count: 5, list: [{ "a/b~c": true }] };
    assert.equal(parse(input), input);
  });

  const wrong: readonly [input: unknown, code: "invalid_argument" | "too_large", sentence: RegExp][] = [
    [undefined, "invalid_argument", /^thing: .*undefined/],
    [null, "invalid_argument", /^thing: .*null/],
    ["x", "invalid_argument", /^thing: .*"x"/],
    [{}, "invalid_argument", /^thing: name is missing$/],
    [{ name: 7 }, "invalid_argument", /^name: must be string, got 7$/],
    [{ name: "" }, "invalid_argument", /^name: must not be blank, got ""$/],
    [{ name: "abcd" }, "too_large", /^name: must have at most 3 characters, got "abcd"$/],
    [{ name: "a", count: 0 }, "invalid_argument", /^count: .*1, got 0$/],
    [{ name: "a", count: 6 }, "invalid_argument", /^count: .*5, got 6$/],
    [{ name: "a", count: 1.5 }, "invalid_argument", /^count: .*integer, got 1\.5$/],
    [{ name: "a", kind: "c" }, "invalid_argument", /^kind: must be one of a, b, got "c"$/],
    [{ name: "a", reason: " " }, "invalid_argument", /^reason: must not be blank/],
    [{ name: "a", version: "v2" }, "invalid_argument", /^version: must be "v1", got "v2"$/],
    [{ name: "a", list: [] }, "invalid_argument", /^list: must have at least 1 item/],
    [
      { name: "a", list: [1, 2, 3].map(() => ({ "a/b~c": true })) },
      "too_large",
      /^list: must have at most 2 items/,
    ],
    [{ name: "a", list: [{ "a/b~c": 1 }] }, "invalid_argument", /^list\.0\.a\/b~c: must be boolean, got 1$/],
    [{ name: "a", extra: 1 }, "invalid_argument", /^thing: unknown field extra$/],
    [{ name: "\ud800" }, "invalid_argument", /^name: has a lone surrogate/],
  ];
  for (const [input, code, sentence] of wrong) {
    it(`says of ${JSON.stringify(input) ?? "nothing"} what is wrong with which value`, async () => {
      await refused(() => parse(input), code, sentence);
    });
  }

  it("says of a union what is wrong with the branch that was meant", async () => {
    const parseRepair = parserOf(RepairRequestSchema, "repair");
    const reason = "x";
    await refused(
      () => parseRepair({ reason, command: { action: "requeue", duplicate_risk: "none" } }),
      "invalid_argument",
      /^command\.duplicate_risk: must be one of idempotent, operator_accepted/,
    );
    await refused(
      () => parseRepair({ reason, command: { action: "force_error" } }),
      "invalid_argument",
      /^command: message is missing$/,
    );
    await refused(
      () => parseRepair({ reason, command: { action: "delete" } }),
      "invalid_argument",
      /^command\.action: must be one of requeue, force_error, got "delete"$/,
    );
    await refused(
      () => parseRepair({ reason, command: 7 }),
      "invalid_argument",
      /^command: must be object, got 7$/,
    );
  });

  it("of a shape leaves what is inside to others", () => {
    const parseShape = shapeParserOf(Type.Object({ items: Type.Array(Type.Unknown()) }), "thing");
    assert.deepEqual(parseShape({ items: ["\ud800"] }), { items: ["\ud800"] });
  });
});
