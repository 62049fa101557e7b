import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { idsOf, lease, readIds, send } from "../../../testing/store-builders.ts";
import { DELIVERY_PURPOSES } from "../../core/ports/deliveries.ts";
import { AvailableDeliveries, type AvailableDelivery, type AvailableFilter } from "./open-deliveries.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";

function walk(
  available: AvailableDeliveries,
  afterPosition = 0,
  filter?: AvailableFilter,
): readonly AvailableDelivery[] {
  const found: AvailableDelivery[] = [];
  let next = available.next(afterPosition, filter);
  while (next !== undefined) {
    found.push(next);
    next = available.next(next.position, filter);
  }
  return found;
}

function deliveryAt(position: number, said: Partial<AvailableDelivery> = {}): AvailableDelivery {
  return { position, ref: position + 1_000, expiresAtMs: 100, purpose: "mail", reservedFor: null, ...said };
}

describe("AvailableDeliveries", () => {
  it("gives deliveries by position, after a position, and forgets what is removed", () => {
    const available = new AvailableDeliveries();
    for (const position of [3, 5, 9]) available.add(deliveryAt(position));
    available.remove(5);
    available.remove(4);
    assert.deepEqual(walk(available), [deliveryAt(3), deliveryAt(9)]);
    assert.deepEqual(walk(available, 3), [deliveryAt(9)]);
    assert.equal(available.size, 2);
    assert.equal(available.next(9), undefined);
  });

  it("skips what has expired, from the very millisecond, and what is reserved for another worker", () => {
    const available = new AvailableDeliveries();
    const expired = deliveryAt(1, { expiresAtMs: 50 });
    const kept = deliveryAt(2, { reservedFor: "w1" });
    for (const delivery of [expired, kept, deliveryAt(3)]) available.add(delivery);
    assert.deepEqual(walk(available, 0, { nowMs: 49 }), [expired, kept, deliveryAt(3)]);
    assert.deepEqual(walk(available, 0, { nowMs: 50 }), [kept, deliveryAt(3)]);
    assert.deepEqual(walk(available, 0, { nowMs: 50, worker: "w1" }), [kept, deliveryAt(3)]);
    for (const worker of ["w2", null]) {
      assert.deepEqual(walk(available, 0, { nowMs: 50, worker }), [deliveryAt(3)]);
    }
    available.remove(2);
    available.add(deliveryAt(2));
    assert.deepEqual(walk(available, 0, { nowMs: 50, worker: "w2" }), [deliveryAt(2), deliveryAt(3)]);
  });

  it("skips other purposes, when asked to", () => {
    const available = new AvailableDeliveries();
    const work = deliveryAt(2, { purpose: "work" });
    const result = deliveryAt(3, { purpose: "result" });
    for (const delivery of [deliveryAt(1), work, result, deliveryAt(4)]) available.add(delivery);
    assert.deepEqual(walk(available, 0, { nowMs: 0, purpose: "work" }), [work]);
    assert.deepEqual(walk(available, 0, { nowMs: 0, purpose: "mail" }), [deliveryAt(1), deliveryAt(4)]);
    assert.deepEqual(walk(available, 2, { nowMs: 0, purpose: "work" }), []);
    assert.deepEqual(walk(available, 0, { nowMs: 0 }), [deliveryAt(1), work, result, deliveryAt(4)]);
  });

  it("does the same as a sorted list, whatever is added, removed and undone", () => {
    const act = fc.record({
      kind: fc.constantFrom("append", "append", "remove-first", "remove-any", "undo"),
      pick: fc.nat({ max: 400 }),
      expiresAtMs: fc.nat({ max: 3 }),
      purpose: fc.constantFrom(...DELIVERY_PURPOSES),
      reservedFor: fc.constantFrom(null, null, "w1", "w2"),
    });
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 400 }), (acts) => {
        const available = new AvailableDeliveries();
        const model = new Map<number, AvailableDelivery>();
        const removed: AvailableDelivery[] = [];
        let last = 0;
        const sorted = (): AvailableDelivery[] =>
          [...model.values()].toSorted((one, other) => one.position - other.position);
        for (const { kind, pick, ...said } of acts) {
          const entries = sorted();
          if (kind === "append") {
            last += 1 + (pick % 3);
            available.add(deliveryAt(last, said));
            model.set(last, deliveryAt(last, said));
          } else if (kind === "undo") {
            const [delivery] = removed.splice(-1);
            if (delivery === undefined) continue;
            available.add(delivery);
            model.set(delivery.position, delivery);
          } else {
            const delivery = entries[kind === "remove-first" ? 0 : pick % Math.max(1, entries.length)];
            if (delivery === undefined) continue;
            available.remove(delivery.position);
            model.delete(delivery.position);
            removed.push(delivery);
          }
          assert.equal(available.size, model.size);
        }
        assert.deepEqual(walk(available), sorted());
        const middle = Math.floor(last / 2);
        assert.deepEqual(
          walk(available, middle),
          sorted().filter(({ position }) => position > middle),
        );
        assert.deepEqual(
          walk(available, 0, { nowMs: 1, worker: "w1" }),
          sorted().filter(({ expiresAtMs, reservedFor }) => expiresAtMs > 1 && reservedFor !== "w2"),
        );
        assert.deepEqual(
          walk(available, 0, { nowMs: 0, purpose: "work" }),
          sorted().filter(({ expiresAtMs, purpose }) => expiresAtMs > 0 && purpose === "work"),
        );
      }),
    );
  });

  it("stays small when deliveries only pass through", () => {
    const available = new AvailableDeliveries();
    const fieldsOf = (position: number): Partial<AvailableDelivery> => ({
      expiresAtMs: position,
      purpose: position % 7 === 0 ? "work" : "mail",
    });
    for (let position = 1; position <= 100_000; position += 1) {
      available.add(deliveryAt(position, fieldsOf(position)));
      if (position > 10) available.remove(position - 10);
    }
    assert.equal(available.size, 10);
    assert.deepEqual(available.next(0), deliveryAt(99_991, fieldsOf(99_991)));
    assert.deepEqual(walk(available, 0, { nowMs: 0, purpose: "work" }), [
      deliveryAt(99_995, fieldsOf(99_995)),
    ]);
  });
});

describe("OpenDeliveries", () => {
  it("knows after a restart what has expired and what is reserved for which worker", async () => {
    const directory = mkdtempSync(join(tmpdir(), "a2a-relay-bounded-"));
    const path = join(directory, "relay.db");
    try {
      const ids: string[] = [];
      {
        await using store = await openSqliteStore({
          path,
          checkpointPages: 1_000,
          onFatal: () => assert.fail(),
        });
        for (const said of [{ expiresAtMs: NOON_MS }, { reservedFor: "工人一" }, {}]) {
          ids.push((await send(store, {}, said)).id);
        }
      }
      await using store = await openSqliteStore({
        path,
        checkpointPages: 1_000,
        onFatal: () => assert.fail(),
      });
      assert.deepEqual(await readIds(store), ids.slice(1));
      const leaseIds = ["l1", "l2", "l3"];
      assert.deepEqual(idsOf(await lease(store, { worker: "工人二", leaseIds })), ids.slice(2));
      assert.deepEqual(idsOf(await lease(store, { worker: "工人一", leaseIds })), ids.slice(1, 2));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
