import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Type } from "typebox";
import { RegisterRequestSchema } from "../model/agent.ts";
import { MessageSchema } from "../model/message.ts";
import { TaskArtifactRequestSchema } from "../model/task.ts";
import { AgentsResponseSchema, RenewResponseSchema, TaskTreeResponseSchema } from "../wire/answers.ts";
import { RepairRequestSchema } from "../wire/repair.ts";
import { camelFrom, snakeFrom } from "./member-names.ts";

const SCHEMAS = [
  RegisterRequestSchema,
  MessageSchema,
  TaskArtifactRequestSchema,
  AgentsResponseSchema,
  RenewResponseSchema,
  TaskTreeResponseSchema,
  RepairRequestSchema,
];

/** Names that the schemas declare, the same in camelCase, and others. */
const NAMES =
  `agent_id agentId agent_card thread_id threadId task tree children message_id artifact artifactId
  artifact_id parts results lease leased_at leasedAt agents command duplicate_risk duplicateRisk pageToken page_token
  metadata my_own __proto__`.split(/\s+/);

const values = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constantFrom(null, 1, true, "知微"),
      fc.array(tie("value"), { maxLength: 3 }),
      tie("object"),
    ),
    object: fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 6 }),
  }))
  .object.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe("members in camelCase", () => {
  it("follow the schema, through lists, alternatives and trees", () => {
    const task = { id: "t1", thread_id: "th1", handoffs: [{ message_id: "m1", at: "2026-05-08T08:30:00Z" }] };
    assert.deepEqual(
      camelFrom(TaskTreeResponseSchema, { tree: { task, children: [{ task, children: [] }] } }),
      {
        tree: {
          task: { id: "t1", threadId: "th1", handoffs: [{ messageId: "m1", at: "2026-05-08T08:30:00Z" }] },
          children: [
            {
              task: {
                id: "t1",
                threadId: "th1",
                handoffs: [{ messageId: "m1", at: "2026-05-08T08:30:00Z" }],
              },
              children: [],
            },
          ],
        },
      },
    );
    assert.deepEqual(
      camelFrom(RenewResponseSchema, {
        renewed: 1,
        results: [{ message_id: "m1", ok: true, lease: { id: "l1", leased_at: "now" } }],
      }),
      { renewed: 1, results: [{ messageId: "m1", ok: true, lease: { id: "l1", leasedAt: "now" } }] },
    );
    assert.deepEqual(
      snakeFrom(RepairRequestSchema, {
        taskId: "t1",
        reason: "stuck",
        command: { action: "requeue", duplicateRisk: "idempotent" },
      }),
      { task_id: "t1", reason: "stuck", command: { action: "requeue", duplicate_risk: "idempotent" } },
    );
  });

  it("leave parts, cards, metadata and undeclared members as they are", () => {
    const untouched = {
      parts: [{ data: { my_key: 1 }, media_type: "x" }],
      my_own: { nested_key: [{ deep_key: 1 }] },
    };
    assert.deepEqual(camelFrom(MessageSchema, { thread_id: "th1", ...untouched }), {
      threadId: "th1",
      ...untouched,
    });
    const card = { supported_interfaces: [], name: "卡" };
    assert.deepEqual(camelFrom(RegisterRequestSchema, { agent_card: card }), { agentCard: card });
    const artifact = { artifact_id: "a", parts: [{ some_text: "x" }], metadata: { my_key: 1 } };
    const request = { artifact, metadata: { my_key: 1 } };
    assert.deepEqual(camelFrom(TaskArtifactRequestSchema, { ...request, last_chunk: true }), {
      ...request,
      lastChunk: true,
    });
  });

  it("never collide: an undeclared member with that name takes the other name", () => {
    const message = { thread_id: "declared", threadId: "undeclared" };
    assert.deepEqual(camelFrom(MessageSchema, message), { threadId: "declared", thread_id: "undeclared" });
    const proofs = { key_proof: { signed_at: "1" }, keyProof: { signed_at: "2" } };
    assert.deepEqual(camelFrom(RegisterRequestSchema, proofs), {
      keyProof: { signedAt: "1" },
      key_proof: { signed_at: "2" },
    });
  });

  it("give every value back", () => {
    for (const schema of SCHEMAS) {
      fc.assert(
        fc.property(values, (value) => {
          assert.deepEqual(snakeFrom(schema, camelFrom(schema, value)), value);
          assert.deepEqual(camelFrom(schema, snakeFrom(schema, value)), value);
        }),
        { numRuns: 300 },
      );
    }
  });

  it("change nothing where a schema declares no members", () => {
    fc.assert(
      fc.property(values, (value) => {
        assert.equal(camelFrom(Type.Record(Type.String(), Type.Unknown()), value), value);
      }),
    );
  });
});
