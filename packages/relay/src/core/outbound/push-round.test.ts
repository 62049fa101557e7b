import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DELIVERY_STATES } from "@a2a-relay/protocol";
import { aDelivery } from "../../../testing/records.ts";
import { dropReason, failedOnce, newPush, enqueued } from "./push-round.ts";

const AT = { nowMs: 1_000, firstAtMs: 900 };
const DELIVERY = aDelivery({ state: "available", position: 7, deliveredAtMs: null, expiresAtMs: 2_000 });
const READ = { ...DELIVERY, deliveredAtMs: 500 };
const PUSH = { ...newPush(DELIVERY, AT), attempts: 4, version: 2 };

describe("a message that is enqueued", () => {
  it("is pushed for the first time, also when it was read before", () => {
    const first = {
      state: "pending",
      position: 7,
      attempts: 0,
      attemptsBefore: 0,
      createdAtMs: 1_000,
      nextAtMs: 900,
      sentAtMs: null,
    };
    for (const delivery of [DELIVERY, READ]) {
      const { tenant, messageId, agentId } = delivery;
      const expected = { tenant, messageId, agentId, reason: null, version: 0, ...first };
      assert.deepEqual(enqueued(undefined, delivery, AT), expected);
    }
  });

  it("is not pushed again if it may have arrived, unless it returned or is idempotent", () => {
    const lost = { ...PUSH, state: "failed", reason: "why", nextAtMs: null, sentAtMs: 950 } as const;
    const round = {
      ...PUSH,
      state: "pending",
      reason: null,
      attemptsBefore: 4,
      nextAtMs: 900,
      sentAtMs: null,
    };
    assert.equal(enqueued(lost, DELIVERY, AT), undefined);
    assert.deepEqual(enqueued({ ...lost, position: 3 }, DELIVERY, AT), round);
    assert.deepEqual(enqueued(lost, { ...DELIVERY, duplicateSafety: "idempotent" }, AT), round);
  });

  for (const state of ["failed", "dropped", "delivered"] as const) {
    it(`begins a new round with all its attempts after it was ${state} and returned`, () => {
      const known = { ...PUSH, state, reason: "why", position: 3, nextAtMs: null };
      const expected = { ...PUSH, state: "pending", reason: null, attemptsBefore: 4, nextAtMs: 900 };
      assert.deepEqual(enqueued(known, DELIVERY, AT), expected);
    });
  }

  it("stays as it is while it is pending, and once it was delivered and waits for its acknowledgement", () => {
    assert.equal(enqueued(PUSH, DELIVERY, AT), undefined);
    assert.equal(enqueued({ ...PUSH, state: "delivered" }, READ, AT), undefined);
  });
});

describe("a push", () => {
  for (const state of DELIVERY_STATES) {
    it(`of a message that is ${state} is ${state === "available" ? "made" : "dropped, with that reason"}`, () => {
      const reason = dropReason({ ...DELIVERY, state }, 1_999);
      assert.equal(reason, state === "available" ? undefined : `the message is ${state}`);
    });
  }

  it("of a message that is expired or no longer kept is dropped", () => {
    assert.equal(dropReason(DELIVERY, 2_000), "the message is expired");
    assert.equal(dropReason(undefined, 0), "the message is no longer kept");
  });

  it("that failed waits for its next attempt, or is given up after the last", () => {
    const again = failedOnce(PUSH, "the endpoint answered 500", 5_000);
    assert.deepEqual([again.state, again.attempts, again.nextAtMs], ["pending", 5, 5_000]);
    const over = failedOnce(PUSH, "the endpoint answered 500", undefined);
    assert.deepEqual(
      [over.state, over.attempts, over.nextAtMs, over.reason],
      ["failed", 5, null, "the endpoint answered 500"],
    );
  });
});
