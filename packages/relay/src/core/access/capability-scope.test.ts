import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CapabilityScope, LIMITS } from "@a2a-relay/protocol";
import fc from "fast-check";
import { refused } from "../../../testing/refusal.ts";
import { normalizeScope, type ScopedRequest, scopeRefusal, usesLeft, widening } from "./capability-scope.ts";
import { newKeyPair } from "../rules/ed25519.ts";

const [KEY, OTHER] = [newKeyPair().publicKey, newKeyPair().publicKey];

const REQUEST: ScopedRequest = {
  peers: [KEY],
  taskIds: ["t1", "任务"],
  leaseId: "l1",
  duplicateRisk: "idempotent",
};

describe("a scope", () => {
  it("has one form: without nulls, with one name for each risk, and with unknown members", () => {
    assert.deepEqual(normalizeScope(), {});
    assert.deepEqual(normalizeScope({ task_id: null, lease_id: null, max_uses: null }), {});
    const given = { version: 1, duplicate_risk: "operator-accepted", 票号: { a: [1, null] } } as const;
    assert.deepEqual(normalizeScope(given as CapabilityScope), {
      ...given,
      duplicate_risk: "operator_accepted",
    });
  });

  it("is refused with a peer that is no public key, and when it is too large", async () => {
    for (const peer_pubkey_b58 of ["zhiwei", "", "0OIl", KEY + KEY]) {
      await refused(() => normalizeScope({ peer_pubkey_b58 }), "invalid_argument", /no public key/);
    }
    const note = "字".repeat(LIMITS.capabilityScopeBytesMax / 3);
    await refused(() => normalizeScope({ note } as CapabilityScope), "too_large");
  });

  const admitted: readonly CapabilityScope[] = [
    {},
    { version: 1 },
    { peer_pubkey_b58: KEY },
    { task_id: "t1" },
    { task_id: "任务" },
    { lease_id: "l1" },
    { duplicate_risk: "idempotent" },
    { peer_pubkey_b58: null, task_id: null, lease_id: null },
    { peer_pubkey_b58: KEY, task_id: "t1", lease_id: "l1", duplicate_risk: "idempotent" },
    { note: "x" } as CapabilityScope,
  ];
  for (const scope of admitted) {
    it(`admits with ${JSON.stringify(Object.keys(scope))}`, () => {
      assert.equal(scopeRefusal(scope, REQUEST), undefined);
    });
  }

  const refusedScopes: readonly (readonly [scope: CapabilityScope, words: RegExp])[] = [
    [{ peer_pubkey_b58: OTHER }, /peer_pubkey_b58/],
    [{ task_id: "t2" }, /for task_id "t2" only$/],
    [{ lease_id: "l2" }, /for lease_id "l2" only$/],
    [{ duplicate_risk: "operator_accepted" }, /duplicate_risk/],
    [{ peer_pubkey_b58: KEY, task_id: "t1", lease_id: "l1", duplicate_risk: "operator_accepted" }, /risk/],
  ];
  for (const [scope, words] of refusedScopes) {
    it(`refuses ${JSON.stringify(Object.keys(scope))} of other values`, () => {
      assert.match(scopeRefusal(scope, REQUEST) ?? "", words);
    });
  }

  it("of a lease or a risk refuses a request without one", () => {
    const bare = { ...REQUEST, leaseId: undefined, duplicateRisk: undefined };
    assert.match(scopeRefusal({ lease_id: "l1" }, bare) ?? "", /names no lease/);
    assert.match(scopeRefusal({ duplicate_risk: "idempotent" }, bare) ?? "", /duplicate_risk/);
  });
});

describe("a delegated capability", () => {
  const parent = { scope: { delegable: true, max_uses: 5, task_id: "t1" }, used: 2, expiresAtMs: 100 };
  const child = { scope: { max_uses: 3, task_id: "t1" }, expiresAtMs: 100 };

  it("may be as wide as its parent, or narrower", () => {
    assert.equal(usesLeft(parent), 3);
    assert.equal(widening(parent, child), undefined);
    const narrow = { ...child.scope, max_uses: 1, lease_id: "l1", peer_pubkey_b58: KEY, note: 1 };
    assert.equal(widening(parent, { scope: narrow, expiresAtMs: 1 }), undefined);
  });

  const wider: readonly (readonly [what: string, child: Parameters<typeof widening>[1]])[] = [
    ["another task", { ...child, scope: { ...child.scope, task_id: "t2" } }],
    ["no task", { ...child, scope: { max_uses: 3 } }],
    ["more uses than are left", { ...child, scope: { ...child.scope, max_uses: 4 } }],
    ["uses without end", { ...child, scope: { task_id: "t1" } }],
    ["a later end", { ...child, expiresAtMs: 101 }],
    ["no end", { ...child, expiresAtMs: null }],
    ["the right to pass it on", { ...child, scope: { ...child.scope, delegable: true } }],
  ];
  for (const [what, given] of wider) {
    it(`may not have ${what}`, () => assert.equal(typeof widening(parent, given), "string"));
  }

  it("keeps members that this relay does not understand", () => {
    const strange = {
      scope: { delegable: true, 地区: ["上海"] } as CapabilityScope,
      used: 0,
      expiresAtMs: null,
    };
    const kept = { scope: { 地区: ["上海"] } as CapabilityScope, expiresAtMs: null };
    assert.equal(widening(strange, kept), undefined);
    assert.match(widening(strange, { scope: {}, expiresAtMs: null }) ?? "", /地区 must stay/);
  });

  it("never admits what its parent refuses", () => {
    const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
      fc.option(arbitrary, { nil: undefined });
    const scopes = fc
      .record({
        peer_pubkey_b58: optional(fc.constantFrom(KEY, OTHER)),
        task_id: optional(fc.constantFrom("t1", "t2")),
        lease_id: optional(fc.constantFrom("l1", "l2")),
        duplicate_risk: optional(fc.constantFrom("idempotent", "operator_accepted")),
        max_uses: optional(fc.integer({ min: 1, max: 3 })),
        delegable: optional(fc.boolean()),
        note: optional(fc.constantFrom(1, 2)),
      })
      .map((members) => normalizeScope(members as CapabilityScope));
    const ends = fc.option(fc.integer({ min: 1, max: 3 }), { nil: null });
    const requests = fc.record({
      peers: fc.uniqueArray(fc.constantFrom(KEY, OTHER)),
      taskIds: fc.uniqueArray(fc.constantFrom("t1", "t2")),
      leaseId: optional(fc.constantFrom("l1", "l2")),
      duplicateRisk: optional(fc.constantFrom("idempotent" as const, "operator_accepted" as const)),
    });
    const held = fc.record({ scope: scopes, used: fc.integer({ min: 0, max: 3 }), expiresAtMs: ends });
    let admitted = 0;
    fc.assert(
      fc.property(held, scopes, ends, requests, (above, scope, expiresAtMs, request) => {
        // Mostly built from its parent, since two scopes that have nothing in common are never passed on.
        for (const asked of [scope, { ...above.scope, ...scope }, { ...scope, ...above.scope }]) {
          const below = { scope: { ...asked, delegable: false }, expiresAtMs };
          if (widening(above, below) !== undefined || scopeRefusal(below.scope, request) !== undefined)
            continue;
          admitted += 1;
          assert.equal(scopeRefusal(above.scope, request), undefined);
          assert.ok((usesLeft(above) ?? Infinity) >= (below.scope.max_uses ?? Infinity));
          assert.ok((above.expiresAtMs ?? Infinity) >= (expiresAtMs ?? Infinity));
        }
      }),
      { numRuns: 5_000 },
    );
    assert.ok(admitted > 100, `only ${admitted} were passed on and admitted anything`);
  });
});
