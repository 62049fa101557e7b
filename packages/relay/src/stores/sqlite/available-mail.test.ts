import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { AvailableMail } from "./available-mail.ts";

function walk(mail: AvailableMail, afterPosition = 0): readonly (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  let next = mail.next(afterPosition);
  while (next !== undefined) {
    found.push([next.position, next.ref]);
    next = mail.next(next.position);
  }
  return found;
}

describe("AvailableMail", () => {
  it("gives mail by position, after a position, and forgets what is removed", () => {
    const mail = new AvailableMail();
    for (const position of [3, 5, 9]) mail.add(position, position * 10);
    mail.remove(5);
    mail.remove(4);
    assert.deepEqual(walk(mail), [
      [3, 30],
      [9, 90],
    ]);
    assert.deepEqual(walk(mail, 3), [[9, 90]]);
    assert.equal(mail.size, 2);
    assert.equal(mail.next(9), undefined);
  });

  it("does the same as a sorted list, whatever comes, goes and is undone", () => {
    const act = fc.record({
      kind: fc.constantFrom("append", "append", "remove-first", "remove-any", "undo"),
      pick: fc.nat({ max: 400 }),
    });
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 400 }), (acts) => {
        const mail = new AvailableMail();
        const model = new Map<number, number>();
        const removed: [number, number][] = [];
        let last = 0;
        const sorted = (): [number, number][] => [...model].toSorted(([one], [other]) => one - other);
        for (const { kind, pick } of acts) {
          const entries = sorted();
          if (kind === "append") {
            last += 1 + (pick % 3);
            mail.add(last, last + 1_000);
            model.set(last, last + 1_000);
          } else if (kind === "undo") {
            const [place] = removed.splice(-1);
            if (place === undefined) continue;
            mail.add(...place);
            model.set(...place);
          } else {
            const place = entries[kind === "remove-first" ? 0 : pick % Math.max(1, entries.length)];
            if (place === undefined) continue;
            mail.remove(place[0]);
            model.delete(place[0]);
            removed.push(place);
          }
          assert.equal(mail.size, model.size);
        }
        assert.deepEqual(walk(mail), sorted());
        const middle = Math.floor(last / 2);
        assert.deepEqual(
          walk(mail, middle),
          sorted().filter(([position]) => position > middle),
        );
      }),
    );
  });

  it("stays small when mail only passes through", () => {
    const mail = new AvailableMail();
    for (let position = 1; position <= 100_000; position += 1) {
      mail.add(position, position);
      if (position > 10) mail.remove(position - 10);
    }
    assert.equal(mail.size, 10);
    assert.deepEqual(mail.next(0), { position: 99_991, ref: 99_991 });
  });
});
