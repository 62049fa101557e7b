import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventDraft } from "../ports/journal.ts";
import { eventHash, GENESIS, sealEvent } from "./event.ts";
import { receiptsOf } from "../journal/receipts.ts";

const DRAFT: EventDraft = {
  type: "message.leased",
  atMs: 1_000,
  actor: "zhiwei",
  agentId: "zhiwei",
  messageId: "m1",
  taskId: null,
  threadId: "t1",
  data: { attempt: 2, reason: "租" },
};

describe("sealing an event", () => {
  it("puts it behind the head and hashes it onto the one before", () => {
    const first = sealEvent("default", GENESIS, DRAFT);
    const second = sealEvent("default", first, DRAFT);
    assert.deepEqual([first.seq, second.seq], [1, 2]);
    assert.match(first.hash, /^[0-9a-f]{64}$/);
    assert.notEqual(first.hash, second.hash);
    assert.equal(second.hash, eventHash(second));
  });

  it("covers every column, so that no edit goes unseen", () => {
    const { hash, ...sealed } = sealEvent("default", GENESIS, DRAFT);
    assert.equal(eventHash(sealed), hash);
    for (const column of Object.keys(sealed) as (keyof typeof sealed)[]) {
      const value = sealed[column];
      const edited = { ...sealed, [column]: typeof value === "number" ? value + 1 : `${value ?? ""}x` };
      assert.notEqual(eventHash(edited), hash, `${column} can be edited`);
    }
    assert.notEqual(eventHash({ ...sealed, previousHash: "1".repeat(64) }), hash);
  });

  it("does not mistake one column for the next", () => {
    const one = sealEvent("default", GENESIS, { ...DRAFT, messageId: "a", taskId: null });
    const other = sealEvent("default", GENESIS, { ...DRAFT, messageId: null, taskId: "a" });
    assert.notEqual(one.hash, other.hash);
  });
});

describe("receipts", () => {
  it("are the steps of a message's way, each with its time, its actor and what is worth knowing", () => {
    const leased = sealEvent("default", GENESIS, DRAFT);
    assert.deepEqual(receiptsOf([leased]), [
      { stage: "leased", at: "1970-01-01T00:00:01.000Z", by: "zhiwei", reason: "租", attempt: 2 },
    ]);
  });

  it("leave out what is no step, and call a completed task a reply", () => {
    const events = (["agent.updated", "retry.scanned", "task.completed", "task.handed_off"] as const).map(
      (type) => sealEvent("default", GENESIS, { ...DRAFT, type, data: {} }),
    );
    assert.deepEqual(
      receiptsOf(events).map(({ stage }) => stage),
      ["replied", "handed_off"],
    );
  });
});
