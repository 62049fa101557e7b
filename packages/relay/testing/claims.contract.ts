import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, ClaimRequest, WorkUnit } from "../src/core/ports/claims.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewMessage,
  aNewPushEndpoint,
  anEvent,
  aSend,
  clashOf,
  commit,
  type OpenStore,
  OTHER_TENANT,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const UNIT: WorkUnit = { kind: "endpoint", key: JSON.stringify([TENANT, ZHIWEI]) };
const UNTIL_MS = NOON_MS + 60_000;

function claim(store: RelayStore, said: Partial<ClaimRequest> = {}): Promise<readonly Claim[]> {
  return store.claims.claim({ units: [UNIT], owner: "甲", nowMs: NOON_MS, untilMs: UNTIL_MS, ...said });
}

async function claimed(store: RelayStore, said: Partial<ClaimRequest> = {}): Promise<Claim> {
  const [taken] = await claim(store, said);
  assert.ok(taken, "the unit is not free");
  return taken;
}

export function describeClaims(open: OpenStore): void {
  describe("claims", () => {
    it("take what is free, and answer the owner and a fence", async () => {
      await using store = await open();
      const other: WorkUnit = { kind: "sweep", key: "到期" };
      const taken = await claim(store, { units: [UNIT, other] });
      assert.deepEqual(
        taken.map(({ kind, key, owner }) => ({ kind, key, owner })),
        [
          { ...UNIT, owner: "甲" },
          { ...other, owner: "甲" },
        ],
      );
      assert.deepEqual(await claim(store, { units: [] }), []);
    });

    it("leave out what another owner holds, and take the rest", async () => {
      await using store = await open();
      await claimed(store);
      const free: WorkUnit = { kind: "endpoint", key: JSON.stringify([OTHER_TENANT, ZHIWEI]) };
      const taken = await claim(store, { units: [UNIT, free], owner: "乙", nowMs: UNTIL_MS - 1 });
      assert.deepEqual(
        taken.map(({ key }) => key),
        [free.key],
      );
    });

    it("are told apart by kind as well as by key", async () => {
      await using store = await open();
      await claimed(store);
      await claimed(store, { units: [{ ...UNIT, kind: "remote-task" }], owner: "乙" });
    });

    it("give a unit to one of several owners that ask at once", async () => {
      await using store = await open();
      const owners = ["甲", "乙", "丙"];
      const taken = await Promise.all(owners.map((owner) => claim(store, { owner })));
      assert.equal(taken.flat().length, 1);
    });

    it("of the same owner are extended and keep their fence", async () => {
      await using store = await open();
      const first = await claimed(store);
      assert.deepEqual(await claimed(store, { nowMs: UNTIL_MS + 5, untilMs: UNTIL_MS + 10 }), first);
      assert.deepEqual(await claim(store, { owner: "乙", nowMs: UNTIL_MS + 9 }), []);
    });

    it("go to another owner at the very millisecond they expire, with a higher fence", async () => {
      await using store = await open();
      const first = await claimed(store);
      const second = await claimed(store, { owner: "乙", nowMs: UNTIL_MS, untilMs: UNTIL_MS + 1 });
      assert.ok(second.fence > first.fence);
      const third = await claimed(store, { nowMs: UNTIL_MS + 1 });
      assert.ok(third.fence > second.fence);
    });

    it("are renewed while no other owner has taken the unit, though they have expired", async () => {
      await using store = await open();
      const first = await claimed(store);
      assert.deepEqual(await store.claims.renew([first], UNTIL_MS + 10), [first]);
      assert.deepEqual(await claim(store, { owner: "乙", nowMs: UNTIL_MS + 9 }), []);
    });

    it("that are lost are not renewed, nor released", async () => {
      await using store = await open();
      const lost = await claimed(store);
      const kept = await claimed(store, { units: [{ kind: "sweep", key: "到期" }] });
      const current = await claimed(store, { owner: "乙", nowMs: UNTIL_MS, untilMs: UNTIL_MS + 10 });
      assert.deepEqual(await store.claims.renew([lost, kept], UNTIL_MS + 1_000), [kept]);
      await store.claims.release([lost]);
      assert.deepEqual(await claim(store, { owner: "丙", nowMs: UNTIL_MS + 9 }), []);
      assert.deepEqual(await store.claims.renew([current], UNTIL_MS + 20), [current]);
    });

    it("that are released are free at once, and the next has a higher fence", async () => {
      await using store = await open();
      const first = await claimed(store);
      await store.claims.release([first]);
      assert.deepEqual(await store.claims.renew([first], UNTIL_MS), []);
      assert.ok((await claimed(store)).fence > first.fence);
      assert.deepEqual(await claim(store, { owner: "乙" }), []);
    });
  });

  describe("a commit under a claim", () => {
    it("is written while the unit has no other owner, though the claim has expired", async () => {
      await using store = await open();
      const held = await claimed(store, { untilMs: NOON_MS });
      await commit(store, { ...aSend(), claims: [held] });
    });

    for (const [how, lose] of [
      ["another owner has taken", (store: RelayStore) => claimed(store, { owner: "乙", nowMs: UNTIL_MS })],
      ["was released", (store: RelayStore, held: Claim) => store.claims.release([held])],
      [
        "the same owner took again after a release",
        async (store: RelayStore, held: Claim) => {
          await store.claims.release([held]);
          await claimed(store);
        },
      ],
    ] as const) {
      it(`that ${how} is a clash and writes nothing`, async () => {
        await using store = await open();
        const other = await claimed(store, { units: [{ kind: "sweep", key: "到期" }] });
        const held = await claimed(store);
        await lose(store, held);
        const message = aNewMessage();
        const changes = {
          messages: [message],
          pushEndpoints: [aNewPushEndpoint()],
          events: [anEvent()],
        };
        const before = await store.journal.chain(TENANT);
        assert.equal(await clashOf(store, { ...changes, claims: [other, held] }), "claim");
        assert.deepEqual(await store.messages.get(TENANT, [message.id]), [undefined]);
        assert.equal(await store.endpoints.get(TENANT, ZHIWEI), undefined);
        assert.deepEqual(await store.journal.chain(TENANT), before);
      });
    }
  });
}
