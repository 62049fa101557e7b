import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseAgentId, parseRecordId } from "@a2a-relay/protocol";
import fc from "fast-check";
import { FakeClock, NOON_MS } from "../../../testing/fake-clock.ts";
import { timeDigits, TimeOrderedIds } from "./time-ordered-ids.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function idsWith(clock: FakeClock, byte = 0xff): TimeOrderedIds {
  return new TimeOrderedIds(clock, (bytes) => void bytes.fill(byte));
}

describe("ids of the relay", () => {
  it("are UUIDs of version 7 that carry the time", () => {
    for (const byte of [0, 0x3f, 0x7f, 0xff]) {
      const id = idsWith(new FakeClock(), byte).task();
      assert.match(id, UUID_V7);
      assert.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), NOON_MS);
    }
  });

  it("begin with the 48 bits of their millisecond, in whatever order times are asked for", () => {
    const near = fc.integer({ min: NOON_MS - 100_000, max: NOON_MS + 100_000 });
    const any = fc.integer({ min: 0, max: 2 ** 48 - 1 });
    fc.assert(
      fc.property(fc.array(fc.oneof(near, any), { minLength: 1, maxLength: 20 }), (times) => {
        for (const ms of times) {
          const digits = ms.toString(16).padStart(12, "0");
          assert.equal(timeDigits(ms), `${digits.slice(0, 8)}-${digits.slice(8)}-7`);
        }
      }),
    );
  });

  it("say what they are for, and are ids and addresses themselves", () => {
    const ids = idsWith(new FakeClock());
    assert.match(ids.message(), /^msg_/);
    assert.match(ids.thread(), /^thread_/);
    assert.match(ids.key(), /^key_/);
    assert.match(ids.capability(), /^cap_/);
    assert.match(ids.lease(), UUID_V7);
    const agent = ids.agent();
    assert.match(agent, /^urn:uuid:/);
    assert.equal(parseAgentId(agent), agent);
    const message = ids.message();
    assert.equal(parseRecordId(message, "id"), message);
  });

  it("sort in the order in which they were made, also many in one millisecond", () => {
    const clock = new FakeClock();
    const ids = idsWith(clock);
    const made: string[] = [];
    for (let index = 0; index < 10_000; index += 1) {
      if (index % 3_000 === 2_999) clock.advance(1);
      made.push(ids.task());
    }
    assert.deepEqual(made.toSorted(), made);
    assert.equal(new Set(made).size, made.length);
  });

  it("sort in that order also when the clock steps back", () => {
    const clock = new FakeClock();
    const ids = idsWith(clock);
    const before = ids.task();
    clock.advance(-60_000);
    const after = ids.task();
    assert.ok(before < after);
  });

  it("do not repeat randomness, neither within a draw nor from one draw to the next", () => {
    let draws = 0;
    const ids = new TimeOrderedIds(new FakeClock(), (bytes) => {
      for (let index = 0; index < bytes.length; index += 1) bytes[index] = (index * 31 + draws) % 251;
      draws += 1;
    });
    const tails = Array.from({ length: 250 }, () => ids.task().slice(19));
    assert.equal(new Set(tails).size, tails.length);
    assert.equal(draws, 1);
    for (let index = 0; index < 10; index += 1) ids.task();
    assert.equal(draws, 2);
  });
});
