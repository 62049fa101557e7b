import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { A2aDialect } from "./a2a-dialect.ts";
import { A2A_STATES } from "./a2a-json.ts";
import { A2A_DIALECTS } from "./dialects.ts";
import { withoutMembers } from "./json-members.ts";
import { V03_REST_DIALECT } from "./v03-rest-dialect.ts";

type Arbitrary = fc.Arbitrary<Readonly<Record<string, unknown>>>;

const text = fc.oneof(
  fc.constantFrom("知微", "你好，世界", ""),
  fc.string({ unit: "grapheme", maxLength: 5 }),
);
const json = fc.jsonValue({ maxDepth: 2 });
/** Members that no dialect knows, some with names that objects have by nature. */
const others: Arbitrary = fc.dictionary(
  fc.oneof(
    text.map((name) => `x-${name}`),
    fc.constantFrom("constructor", "toString", "__proto__", "名"),
  ),
  json,
  { maxKeys: 2 },
);

function having(
  known: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  required: readonly string[],
): Arbitrary {
  const members = fc.record(known, { requiredKeys: [...required] });
  return fc.tuple(members, others).map(([named, other]) => ({ ...other, ...named }));
}

const part: Arbitrary = fc.oneof(
  having({ text, metadata: others, mediaType: text, filename: text }, ["text"]),
  having({ raw: fc.base64String(), metadata: others, mediaType: text, filename: text }, ["raw"]),
  having({ url: fc.webUrl(), metadata: others, mediaType: text, filename: text }, ["url"]),
  // Beside data that is wrapped, metadata without a member is the same as none.
  having({ data: json, metadata: others.map((all) => ({ ...all, n: 1 })), mediaType: text }, ["data"]),
  having({ data: fc.constant(null) }, ["data"]),
);
const message = having(
  {
    messageId: text,
    role: fc.constantFrom("ROLE_USER", "ROLE_AGENT"),
    parts: fc.array(part, { maxLength: 3 }),
    contextId: text,
    taskId: text,
    metadata: others,
    extensions: fc.array(fc.webUrl(), { maxLength: 2 }),
    referenceTaskIds: fc.array(text, { maxLength: 2 }),
  },
  ["messageId", "role", "parts"],
);
const artifact = having(
  { artifactId: text, name: text, parts: fc.array(part, { maxLength: 2 }), metadata: others },
  ["artifactId", "parts"],
);
const task = having(
  {
    id: text,
    contextId: text,
    status: having({ state: fc.constantFrom(...A2A_STATES), message, timestamp: text }, ["state"]),
    artifacts: fc.array(artifact, { maxLength: 2 }),
    history: fc.array(message, { maxLength: 2 }),
    metadata: others,
  },
  ["id", "contextId", "status"],
);

const DIALECTS: readonly (readonly [string, A2aDialect])[] = [
  ["1.0", A2A_DIALECTS["1.0"]],
  ["0.3", A2A_DIALECTS["0.3"]],
  ["0.2", A2A_DIALECTS["0.2"]],
  ["0.3 over REST", V03_REST_DIALECT],
];

for (const [name, dialect] of DIALECTS) {
  describe(`there and back through A2A ${name}`, () => {
    it("a request keeps everything", () => {
      fc.assert(
        fc.property(message, others, (sent, metadata) => {
          const params = { message: sent, metadata };
          assert.deepEqual(
            dialect.readParams("send", overWire(dialect.writeParams("send", params))),
            overWire(params),
          );
        }),
      );
    });

    it("a task keeps everything", () => {
      fc.assert(
        fc.property(task, (made) => {
          assert.deepEqual(
            dialect.readResult("get", overWire(dialect.writeResult("get", made))),
            overWire(made),
          );
          const event = dialect.writeEvent({ task: made as never }, { isFinal: false });
          assert.deepEqual(dialect.readEvent(overWire(event)), { task: overWire(made) });
        }),
      );
    });
  });
}

describe("through A2A 0.1", () => {
  it("a message keeps everything", () => {
    const { "0.1": dialect } = A2A_DIALECTS;
    fc.assert(
      fc.property(message, (made) => {
        const sent = withoutMembers(made, "taskId");
        const params = { message: sent, clientTaskId: "我的" };
        const { message: back, clientTaskId } = dialect.readParams(
          "send",
          overWire(dialect.writeParams("send", params)),
        );
        assert.deepEqual([back, clientTaskId], [overWire(sent), "我的"]);
      }),
    );
  });
});

/** As JSON carries it: -0 is 0 there. */
function overWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
