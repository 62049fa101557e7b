import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RepairRequestSchema } from "@a2a-relay/protocol";
import { type TObject, type TProperties, Type } from "typebox";
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

function exactly(properties: TProperties): TObject {
  return Type.Object(properties, { additionalProperties: false });
}

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
    [
      { name: "a", extra: 1 },
      "invalid_argument",
      /^thing: unknown field extra; the known ones are name, count, kind, list, reason, version$/,
    ],
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

  it("names the known fields of the very object that has an unknown one", async () => {
    const parseRepair = parserOf(RepairRequestSchema, "repair");
    const command = { action: "requeue", duplicate_risk: "idempotent", risk: 1 };
    await refused(
      () => parseRepair({ reason: "x", command }),
      "invalid_argument",
      /^command: unknown field risk; the known ones are action, lease_id, duplicate_risk$/,
    );
    const slashed = Type.Object({ "a/b": Type.Array(exactly({ c: Type.Optional(Type.Null()) })) });
    await refused(
      () => parserOf(slashed, "thing")({ "a/b": [{}, { d: 1 }] }),
      "invalid_argument",
      /^a\/b\.1: unknown field d; the known ones are c$/,
    );
    await refused(
      () => parserOf(exactly({}), "thing")({ a: 1 }),
      "invalid_argument",
      /^thing: unknown field a$/,
    );
  });

  it("names of very many known fields the first ones, each whole", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `field_${String(index).padStart(3, "0")}`);
    const parseMany = parserOf(
      exactly(Object.fromEntries(names.map((name) => [name, Type.Optional(Type.Null())]))),
      "thing",
    );
    await refused(
      () => parseMany({ extra: 1 }),
      "invalid_argument",
      /^thing: unknown field extra; the known ones are (?:field_\d{3}, ){36}…$/,
    );
  });

  describe("of input that is large", () => {
    const parseTags = parserOf(
      Type.Object({
        tags: Type.Optional(Type.Record(Type.String(), Type.String())),
        ids: Type.Optional(Type.Array(Type.String(), { maxItems: 1_000, uniqueItems: true })),
        last: Type.Integer(),
      }),
      "thing",
    );
    const members = (count: number, value: unknown): Readonly<Record<string, unknown>> =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));

    it("reads it once, and describes the fault from a small sample", async () => {
      let reads = 0;
      const watched = (items: readonly unknown[]): readonly unknown[] =>
        new Proxy(items, { get: (target, name) => ((reads += 1), Reflect.get(target, name) as unknown) });
      const wrongIds = watched(Array.from({ length: 200_000 }, () => 1));
      const tooMany = watched(Array.from({ length: 150_000 }, (_, index) => `a${index}`));
      await refused(
        () => parseTags({ ids: wrongIds, last: 1 }),
        "invalid_argument",
        /^ids\.0: must be string/,
      );
      await refused(
        () => parseTags({ ids: tooMany, last: 1 }),
        "too_large",
        /^ids: must have at most 1000 items/,
      );
      assert.ok(reads < tooMany.length + 10_000, `it was read ${reads} times`);
    });

    it("still finds a member behind thousands of others", async () => {
      const many = members(5_000, 1);
      await refused(() => parseTags({ ...many, last: "x" }), "invalid_argument", /^last: must be integer/);
      await refused(() => parseTags(many), "invalid_argument", /^thing: last is missing$/);
    });

    it("says at least that something far behind is wrong", async () => {
      const tags = { ...members(5_000, "x"), wrong: 1 };
      await refused(() => parseTags({ tags, last: 1 }), "invalid_argument", /^thing: a member far behind/);
    });

    it("names one of too many unknown fields, and the beginning of a long name", async () => {
      const unknown = members(50_000, 1);
      await refused(
        () => parse({ name: "a", ...unknown }),
        "invalid_argument",
        /^thing: unknown field k0, and more of them; the known ones are name, .*, version$/,
      );
      const long = "长".repeat(100_000);
      await refused(
        () => parse({ name: "a", [long]: 1 }),
        "invalid_argument",
        /^thing: unknown field 长{77}\.\.\.; the known ones are name, /,
      );
      await refused(() => parseTags({ tags: { [long]: 1 }, last: 1 }), "invalid_argument", /^.{1,120}$/);
    });

    it("sees a member called __proto__ as what it is", async () => {
      const input = JSON.parse('{"name": "a", "__proto__": {"count": 0}}') as unknown;
      await refused(() => parse(input), "invalid_argument", /^thing: unknown field __proto__; /);
    });

    it("does not fall over what is nested deeply", async () => {
      const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as unknown;
      await refused(() => parse({ name: "a", count: deep }), "invalid_argument", /^count: /);
    });
  });

  it("of a shape leaves what is inside to others", () => {
    const parseShape = shapeParserOf(Type.Object({ items: Type.Array(Type.Unknown()) }), "thing");
    assert.deepEqual(parseShape({ items: ["\ud800"] }), { items: ["\ud800"] });
  });
});
