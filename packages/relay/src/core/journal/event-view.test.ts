import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import fc from "fast-check";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import type { EventDraft } from "../ports/journal.ts";
import { eventHash, GENESIS, sealEvent } from "../rules/event.ts";
import { eventOfView, receiptsOf, viewEvent } from "./event-view.ts";

const DRAFT: EventDraft = {
  type: "message.accepted",
  atMs: NOON_MS,
  actor: "知微@known-blocks1",
  agentId: "lulu@kamac",
  messageId: null,
  taskId: null,
  threadId: "话题",
  data: {},
};

/** The event before it is sent, as a client reads it from the wire, and the hash that the client computes. */
function acrossTheWire(data: EventDraft["data"]): readonly [sent: object, received: object, hash: string] {
  const sealed = sealEvent("默认", GENESIS, { ...DRAFT, data });
  const received = eventOfView(JSON.parse(JSON.stringify(viewEvent(sealed))) as EventView);
  return [sealed, received, eventHash(received)];
}

describe("the view of an event", () => {
  it("carries all that the hash covers, whatever its data is", () => {
    const key = fc.oneof(fc.string(), fc.constantFrom("__proto__", "10", "9", "-1", "constructor"));
    const data = fc.dictionary(key, fc.jsonValue({ stringUnit: "binary" }));
    fc.assert(
      fc.property(data, (given) => {
        const [sent, received, hash] = acrossTheWire(given);
        assert.deepEqual(received, sent);
        assert.equal(hash, (sent as { readonly hash: string }).hash);
      }),
      { numRuns: 500 },
    );
  });

  for (const [what, value] of [
    ["half a character", "\ud800"],
    ["line separators", "\u2028\u2029"],
    ["the smallest and the largest numbers", [5e-324, 1.7976931348623157e308, 1e21, 1e-7, -0]],
    ["what JSON leaves out", { gone: undefined }],
    ["keys that could be read as numbers", { b: 1, 2: 1, 1: 1 }],
  ] as const) {
    it(`carries ${what}`, () => {
      const [sent, received] = acrossTheWire({ value });
      assert.deepEqual(received, sent);
    });
  }
});

const LEASED: EventDraft = {
  ...DRAFT,
  type: "message.leased",
  atMs: 1_000,
  actor: "zhiwei",
  data: { attempt: 2, reason: "租" },
};

describe("receipts", () => {
  it("are a message's steps, each with time, actor, reason and attempt", () => {
    const leased = sealEvent("default", GENESIS, LEASED);
    assert.deepEqual(receiptsOf([leased]), [
      { stage: "leased", at: "1970-01-01T00:00:01.000Z", by: "zhiwei", reason: "租", attempt: 2 },
    ]);
  });

  it("leave out other events, and show a completed task as a reply", () => {
    const events = (["agent.updated", "retry.scanned", "task.completed", "task.handed_off"] as const).map(
      (type) => sealEvent("default", GENESIS, { ...LEASED, type, data: {} }),
    );
    assert.deepEqual(
      receiptsOf(events).map(({ stage }) => stage),
      ["replied", "handed_off"],
    );
  });
});
