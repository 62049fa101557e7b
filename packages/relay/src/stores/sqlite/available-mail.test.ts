import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DELIVERY_PURPOSES } from "../../core/ports/deliveries.ts";
import { AvailableDeliveries, type AvailablePlace, type Wanted } from "./available-mail.ts";

function walk(mail: AvailableDeliveries, afterPosition = 0, wanted?: Wanted): readonly AvailablePlace[] {
  const found: AvailablePlace[] = [];
  let next = mail.next(afterPosition, wanted);
  while (next !== undefined) {
    found.push(next);
    next = mail.next(next.position, wanted);
  }
  return found;
}

function placeAt(position: number, said: Partial<AvailablePlace> = {}): AvailablePlace {
  return { position, ref: position + 1_000, expiresAtMs: 100, purpose: "mail", reservedFor: null, ...said };
}

describe("AvailableDeliveries", () => {
  it("gives mail by position, after a position, and forgets what is removed", () => {
    const mail = new AvailableDeliveries();
    for (const position of [3, 5, 9]) mail.add(placeAt(position));
    mail.remove(5);
    mail.remove(4);
    assert.deepEqual(walk(mail), [placeAt(3), placeAt(9)]);
    assert.deepEqual(walk(mail, 3), [placeAt(9)]);
    assert.equal(mail.size, 2);
    assert.equal(mail.next(9), undefined);
  });

  it("passes over what has expired, from the very moment, and what is kept for another worker", () => {
    const mail = new AvailableDeliveries();
    const expired = placeAt(1, { expiresAtMs: 50 });
    const kept = placeAt(2, { reservedFor: "w1" });
    for (const place of [expired, kept, placeAt(3)]) mail.add(place);
    assert.deepEqual(walk(mail, 0, { nowMs: 49 }), [expired, kept, placeAt(3)]);
    assert.deepEqual(walk(mail, 0, { nowMs: 50 }), [kept, placeAt(3)]);
    assert.deepEqual(walk(mail, 0, { nowMs: 50, worker: "w1" }), [kept, placeAt(3)]);
    for (const worker of ["w2", null]) {
      assert.deepEqual(walk(mail, 0, { nowMs: 50, worker }), [placeAt(3)]);
    }
    mail.remove(2);
    mail.add(placeAt(2));
    assert.deepEqual(walk(mail, 0, { nowMs: 50, worker: "w2" }), [placeAt(2), placeAt(3)]);
  });

  it("passes over what is for something else, when asked to", () => {
    const mail = new AvailableDeliveries();
    const work = placeAt(2, { purpose: "work" });
    const result = placeAt(3, { purpose: "result" });
    for (const place of [placeAt(1), work, result, placeAt(4)]) mail.add(place);
    assert.deepEqual(walk(mail, 0, { nowMs: 0, purpose: "work" }), [work]);
    assert.deepEqual(walk(mail, 0, { nowMs: 0, purpose: "mail" }), [placeAt(1), placeAt(4)]);
    assert.deepEqual(walk(mail, 2, { nowMs: 0, purpose: "work" }), []);
    assert.deepEqual(walk(mail, 0, { nowMs: 0 }), [placeAt(1), work, result, placeAt(4)]);
  });

  it("does the same as a sorted list, whatever comes, goes and is undone", () => {
    const act = fc.record({
      kind: fc.constantFrom("append", "append", "remove-first", "remove-any", "undo"),
      pick: fc.nat({ max: 400 }),
      expiresAtMs: fc.nat({ max: 3 }),
      purpose: fc.constantFrom(...DELIVERY_PURPOSES),
      reservedFor: fc.constantFrom(null, null, "w1", "w2"),
    });
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 400 }), (acts) => {
        const mail = new AvailableDeliveries();
        const model = new Map<number, AvailablePlace>();
        const removed: AvailablePlace[] = [];
        let last = 0;
        const sorted = (): AvailablePlace[] =>
          [...model.values()].toSorted((one, other) => one.position - other.position);
        for (const { kind, pick, ...said } of acts) {
          const entries = sorted();
          if (kind === "append") {
            last += 1 + (pick % 3);
            mail.add(placeAt(last, said));
            model.set(last, placeAt(last, said));
          } else if (kind === "undo") {
            const [place] = removed.splice(-1);
            if (place === undefined) continue;
            mail.add(place);
            model.set(place.position, place);
          } else {
            const place = entries[kind === "remove-first" ? 0 : pick % Math.max(1, entries.length)];
            if (place === undefined) continue;
            mail.remove(place.position);
            model.delete(place.position);
            removed.push(place);
          }
          assert.equal(mail.size, model.size);
        }
        assert.deepEqual(walk(mail), sorted());
        const middle = Math.floor(last / 2);
        assert.deepEqual(
          walk(mail, middle),
          sorted().filter(({ position }) => position > middle),
        );
        assert.deepEqual(
          walk(mail, 0, { nowMs: 1, worker: "w1" }),
          sorted().filter(({ expiresAtMs, reservedFor }) => expiresAtMs > 1 && reservedFor !== "w2"),
        );
        assert.deepEqual(
          walk(mail, 0, { nowMs: 0, purpose: "work" }),
          sorted().filter(({ expiresAtMs, purpose }) => expiresAtMs > 0 && purpose === "work"),
        );
      }),
    );
  });

  it("stays small when mail only passes through", () => {
    const mail = new AvailableDeliveries();
    const saidOf = (position: number): Partial<AvailablePlace> => ({
      expiresAtMs: position,
      purpose: position % 7 === 0 ? "work" : "mail",
    });
    for (let position = 1; position <= 100_000; position += 1) {
      mail.add(placeAt(position, saidOf(position)));
      if (position > 10) mail.remove(position - 10);
    }
    assert.equal(mail.size, 10);
    assert.deepEqual(mail.next(0), placeAt(99_991, saidOf(99_991)));
    assert.deepEqual(walk(mail, 0, { nowMs: 0, purpose: "work" }), [placeAt(99_995, saidOf(99_995))]);
  });
});
