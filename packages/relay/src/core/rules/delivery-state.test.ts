import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DELIVERY_STATES, type DeliveryState, isSettled, SETTLED_DELIVERY_STATES } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { aDelivery, aLeasedDelivery } from "../../../testing/records.ts";
import { refused } from "../../../testing/refusal.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import {
  acknowledge,
  assertMayFinish,
  CANCELED_REASON,
  DELIVERY_ACTS,
  DELIVERY_TRANSITIONS,
  type DeliveryAct,
  expire,
  fail,
  forceError,
  lease,
  release,
  requeue,
  timeOut,
  withdraw,
} from "./delivery-state.ts";

/** The machine of the map, written down a second time: state, act, what becomes of it. */
const EDGES: readonly [DeliveryState, DeliveryAct, DeliveryState][] = [
  ["held", "approve", "available"],
  ["held", "deny", "dead"],
  ["held", "expire", "expired"],
  ["held", "withdraw", "withdrawn"],
  ["available", "lease", "leased"],
  ["available", "acknowledge", "acknowledged"],
  ["available", "fail", "dead"],
  ["available", "expire", "expired"],
  ["available", "withdraw", "withdrawn"],
  ["leased", "release", "available"],
  ["leased", "requeue", "available"],
  ["leased", "acknowledge", "acknowledged"],
  ["leased", "fail", "dead"],
  ["leased", "withdraw", "withdrawn"],
];

const GRANT = { leaseId: "l2", worker: "w2", leasedAtMs: NOON_MS, leaseExpiresAtMs: NOON_MS + 1_000 };

/** Each act as a service performs it, by the right of the current lease where there is one. */
const ACTS: Readonly<Partial<Record<DeliveryAct, (delivery: DeliveryRecord) => DeliveryRecord | undefined>>> =
  {
    lease: (delivery) => lease(delivery, GRANT),
    release: (delivery) => release(delivery, delivery.leaseId ?? "l1"),
    requeue: (delivery) => requeue(delivery, undefined),
    acknowledge: (delivery) => acknowledge(delivery, delivery.leaseId ?? undefined, NOON_MS),
    fail: (delivery) => fail(delivery, delivery.leaseId ?? undefined, "no", NOON_MS),
    expire: (delivery) => expire(delivery, NOON_MS),
    withdraw: (delivery) => withdraw(delivery, "no longer wanted", NOON_MS),
  };

function inState(state: DeliveryState): DeliveryRecord {
  if (state === "leased") return aLeasedDelivery();
  return aDelivery({ state, ...(isSettled(state) ? { settledAtMs: NOON_MS - 1 } : {}) });
}

describe("the delivery machine", () => {
  it("has the edges of the map and no others", () => {
    const edges = DELIVERY_STATES.flatMap((state) =>
      DELIVERY_ACTS.flatMap((act) => {
        const next = DELIVERY_TRANSITIONS[state][act];
        return next === undefined ? [] : [[state, act, next]];
      }),
    );
    const byName = (a: readonly string[], b: readonly string[]): number => (a.join() < b.join() ? -1 : 1);
    assert.deepEqual(edges.toSorted(byName), [...EDGES].toSorted(byName));
  });

  for (const state of DELIVERY_STATES) {
    for (const act of DELIVERY_ACTS) {
      const perform = ACTS[act];
      if (perform === undefined) continue;
      const next = EDGES.find(([from, by]) => from === state && by === act)?.[2];
      if (next !== undefined) {
        it(`makes ${state} deliveries ${next} by ${act}`, () => {
          const after = perform(inState(state));
          assert.equal(after?.state, next);
          assert.equal(after.settledAtMs, isSettled(next) ? NOON_MS : null);
        });
      } else if (state === "acknowledged" && act === "acknowledge") {
        it("answers a second acknowledgement without changing anything", () => {
          assert.equal(perform(inState(state)), undefined);
        });
      } else {
        it(`refuses to ${act} ${state} deliveries`, async () => {
          const delivery = inState(state);
          const before = structuredClone(delivery);
          // A release names a lease, and this delivery has none.
          await refused(() => perform(delivery), act === "release" ? "lease_lost" : "wrong_state");
          assert.deepEqual(delivery, before);
        });
      }
    }
  }
});

describe("a lease", () => {
  it("counts attempts upwards and says who holds it, since when and until when", () => {
    const first = lease(aDelivery(), GRANT);
    assert.deepEqual({ ...first }, { ...aDelivery(), ...GRANT, state: "leased", attempt: 1 });
    const second = lease(requeue(first, undefined), { ...GRANT, leaseId: "l3" });
    assert.equal(second.attempt, 2);
    assert.equal(second.leaseId, "l3");
  });

  it("leaves its attempt behind when the message goes back, and its id unless an operator took it back", () => {
    const leased = aLeasedDelivery({
      deliveredAtMs: NOON_MS,
      leaseExpiresAtMs: NOON_MS + 1,
      reservedFor: "w1",
    });
    assert.deepEqual(release(leased, "l1"), aDelivery({ leaseId: "l1", attempt: 1 }));
    assert.deepEqual(requeue(leased, "l1"), aDelivery({ leaseId: null, attempt: 1 }));
  });
});

describe("fencing", () => {
  const overtaken = aLeasedDelivery({ leaseId: "l2", attempt: 2 });

  it("lets the holder of the current lease finish", () => {
    for (const finish of [acknowledge, failing]) assert.ok(finish(overtaken, "l2", NOON_MS));
    assert.equal(release(overtaken, "l2").state, "available");
  });

  it("refuses the holder of an earlier lease, and says which attempt is under way", async () => {
    for (const finish of [acknowledge, failing]) {
      const error = await refused(
        () => finish(overtaken, "l1", NOON_MS),
        "lease_lost",
        /lease l1 on message m1/,
      );
      assert.deepEqual(error.details, { message_id: "m1", attempt: 2 });
    }
    await refused(() => release(overtaken, "l1"), "lease_lost");
  });

  it("asks for the lease when a leased delivery is finished without one", async () => {
    for (const finish of [acknowledge, failing]) {
      await refused(() => finish(overtaken, undefined, NOON_MS), "lease_required", /attempt 2/);
    }
  });

  it("lets a late holder finish while no other worker took over", () => {
    const idempotent = aLeasedDelivery({ duplicateSafety: "idempotent", leaseExpiresAtMs: NOON_MS });
    const back = timeOut(idempotent, NOON_MS) ?? idempotent;
    assert.equal(back.state, "available");
    assert.equal(acknowledge(back, "l1", NOON_MS)?.state, "acknowledged");
    assert.equal(fail(back, "l1", "no", NOON_MS).state, "dead");
  });

  it("refuses the holder of a lease that an operator ended, also before another worker has it", async () => {
    for (const ended of [
      requeue(aLeasedDelivery(), undefined),
      forceError(aLeasedDelivery(), undefined, "no", NOON_MS),
    ]) {
      for (const finish of [acknowledge, failing]) {
        await refused(() => finish(ended, "l1", NOON_MS), "lease_lost");
      }
      await refused(() => release(ended, "l1"), "lease_lost");
    }
  });

  it("refuses a late holder once another worker took over, also when they gave it back", async () => {
    const back = release(overtaken, "l2");
    await refused(() => acknowledge(back, "l1", NOON_MS), "lease_lost");
    await refused(() => assertMayFinish(back, "l1"), "lease_lost");
    assert.equal(acknowledge(back, "l2", NOON_MS)?.state, "acknowledged");
  });

  it("needs no lease on a delivery that was never leased, and refuses one that was never given", async () => {
    assert.equal(acknowledge(aDelivery(), undefined, NOON_MS)?.state, "acknowledged");
    await refused(() => acknowledge(aDelivery(), "l1", NOON_MS), "lease_lost");
  });

  it("takes a repeated acknowledgement by the same right for done, by another for lost", async () => {
    const done = acknowledge(aLeasedDelivery(), "l1", NOON_MS);
    assert.ok(done);
    assert.equal(acknowledge(done, "l1", NOON_MS + 5), undefined);
    assert.equal(acknowledge(done, undefined, NOON_MS + 5), undefined);
    await refused(() => acknowledge(done, "l0", NOON_MS + 5), "lease_lost", /under another lease/);
  });

  for (const state of SETTLED_DELIVERY_STATES) {
    it(`says lease_lost to a stranger's lease on ${state} deliveries, and wrong_state to its own`, async () => {
      const delivery = aDelivery({ state, leaseId: "l1", attempt: 1, settledAtMs: NOON_MS });
      await refused(() => fail(delivery, "l9", "no", NOON_MS), "lease_lost");
      await refused(() => fail(delivery, "l1", "no", NOON_MS), "wrong_state", new RegExp(`already ${state}`));
      await refused(() => fail(delivery, undefined, "no", NOON_MS), "wrong_state");
    });
  }

  it("says task_canceled to the holder of a message of a canceled task", async () => {
    const withdrawn = withdraw(aLeasedDelivery(), CANCELED_REASON, NOON_MS);
    for (const leaseId of ["l1", "l9", undefined]) {
      await refused(() => acknowledge(withdrawn, leaseId, NOON_MS), "task_canceled");
    }
    await refused(
      () => acknowledge(withdraw(aLeasedDelivery(), "zhiwei is gone", NOON_MS), "l1", NOON_MS),
      "wrong_state",
    );
  });
});

describe("an operator's repair", () => {
  it("needs no lease id, and checks the one it was given", async () => {
    assert.equal(requeue(aLeasedDelivery(), undefined).state, "available");
    assert.equal(requeue(aLeasedDelivery(), "l1").state, "available");
    const error = await refused(
      () => requeue(aLeasedDelivery(), "l0"),
      "lease_lost",
      /under lease l1, not l0/,
    );
    assert.deepEqual(error.details, { expected: "l0", actual: "l1" });
    await refused(() => forceError(aLeasedDelivery(), "l0", "no", NOON_MS), "lease_lost");
  });

  it("keeps the words of a forced error as the reason", () => {
    const dead = forceError(aLeasedDelivery(), "l1", "worker is lost", NOON_MS);
    assert.deepEqual([dead.state, dead.reason, dead.settledAtMs], ["dead", "worker is lost", NOON_MS]);
  });

  for (const state of DELIVERY_STATES.filter((each) => each !== "leased")) {
    it(`is refused on ${state} deliveries, which have no lease`, async () => {
      await refused(() => requeue(inState(state), undefined), "wrong_state", /not leased/);
      await refused(() => forceError(inState(state), undefined, "no", NOON_MS), "wrong_state", /not leased/);
    });
  }
});

describe("the clock alone", () => {
  const due = aLeasedDelivery({ duplicateSafety: "idempotent", leaseExpiresAtMs: NOON_MS });

  it("requeues idempotent work whose finite lease is over, while attempts remain", () => {
    assert.equal(timeOut(due, NOON_MS, 3)?.state, "available");
    assert.equal(timeOut({ ...due, attempt: 2 }, NOON_MS, 3)?.state, "available");
  });

  it("does nothing a millisecond before the lease ends, and acts at that very one", () => {
    assert.equal(timeOut(due, NOON_MS - 1, 3), undefined);
    assert.equal(timeOut(due, NOON_MS, 3)?.state, "available");
    assert.equal(timeOut(due, NOON_MS + 1, 3)?.state, "available");
  });

  it("never touches unsafe work", () => {
    assert.equal(timeOut({ ...due, duplicateSafety: "unsafe" }, NOON_MS + 1_000_000, 3), undefined);
    assert.equal(
      timeOut({ ...due, duplicateSafety: "unsafe", attempt: 9 }, NOON_MS + 1_000_000, 3),
      undefined,
    );
  });

  it("never touches a lease without an end", () => {
    assert.equal(timeOut({ ...due, leaseExpiresAtMs: null }, NOON_MS + 1_000_000, 3), undefined);
  });

  it("gives up when the attempts are used up, and says how many there were", () => {
    const dead = timeOut({ ...due, attempt: 3 }, NOON_MS, 3);
    assert.deepEqual([dead?.state, dead?.settledAtMs], ["dead", NOON_MS]);
    assert.match(dead?.reason ?? "", /at attempt 3 of 3/);
    assert.equal(timeOut({ ...due, attempt: 4 }, NOON_MS, 3)?.state, "dead");
  });

  for (const state of DELIVERY_STATES.filter((each) => each !== "leased")) {
    it(`leaves ${state} deliveries alone`, () => {
      const delivery = { ...inState(state), duplicateSafety: "idempotent", leaseExpiresAtMs: 0 } as const;
      assert.equal(timeOut(delivery, NOON_MS, 3), undefined);
    });
  }

  it("says when a message expired", () => {
    const expired = expire(aDelivery({ expiresAtMs: NOON_MS }), NOON_MS + 5);
    assert.match(expired.reason ?? "", /2026-05-08T12:00:00.000Z/);
  });
});

function failing(delivery: DeliveryRecord, leaseId: string | undefined, nowMs: number): DeliveryRecord {
  return fail(delivery, leaseId, "no", nowMs);
}
