import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aNewPushEndpoint, TENANT, ZHIWEI } from "../../../testing/store-builders.ts";
import {
  endpointAfter,
  forgotten,
  isForgotten,
  isSameEndpoint,
  type PushWish,
  rotated,
  withoutDeadSecret,
} from "./push-endpoint.ts";
import type { PushEndpoint } from "../ports/pushes.ts";

const URL_A = "https://zhiwei.example/收信";
const URL_B = "https://new.example/";

function wish(said: Partial<PushWish> = {}): PushWish {
  return { tenant: TENANT, agentId: ZHIWEI, callbackUrl: URL_A, ...said };
}

const newSecret = (): string => "whsec_new";
const ACTIVE = aNewPushEndpoint({ url: URL_A, afterPosition: 7, version: 3 });
const GONE = { ...ACTIVE, state: "disabled", reason: "the endpoint answered 410: it is gone" } as const;

describe("the endpoint of an agent that registers", () => {
  it("is made with push, a secret, and a cursor before all open messages", () => {
    assert.deepEqual(
      endpointAfter(undefined, wish({ push: "webhook", push_ack: true }), newSecret),
      aNewPushEndpoint({ url: URL_A, secret: "whsec_new", acknowledges: true }),
    );
  });

  it("is not made by a callback URL alone", () => {
    assert.equal(endpointAfter(undefined, wish(), newSecret), undefined);
    assert.equal(endpointAfter(undefined, wish({ push: null, notice: false }), newSecret), undefined);
  });

  it("stays unchanged when the request does not mention it", () => {
    assert.deepEqual(endpointAfter(ACTIVE, wish(), newSecret), ACTIVE);
    assert.deepEqual(endpointAfter(GONE, wish(), newSecret), GONE);
  });

  it("keeps its secret and its cursor, follows the URL, and changes its options", () => {
    const changed = endpointAfter(ACTIVE, wish({ callbackUrl: URL_B, notice: true }), newSecret);
    assert.deepEqual(changed, { ...ACTIVE, url: URL_B, isNotice: true });
    assert.deepEqual(endpointAfter(changed, wish({ notice: false, callbackUrl: URL_A }), newSecret), ACTIVE);
  });

  it("is closed as a circuit by asking for push again", () => {
    const open = { ...ACTIVE, failures: 9, openUntilMs: 1_000 };
    assert.deepEqual(endpointAfter(open, wish({ push: "webhook" }), newSecret), ACTIVE);
    assert.deepEqual(endpointAfter(open, wish(), newSecret), open);
  });

  it("is enabled again by asking for push, with its cursor before all open messages", () => {
    assert.deepEqual(endpointAfter(GONE, wish({ push: "webhook" }), newSecret), {
      ...ACTIVE,
      afterPosition: 0,
    });
  });

  for (const [title, said] of [
    ["push: null", { push: null }],
    ["callback_url: null", { callbackUrl: null }],
  ] as const) {
    it(`is disabled by ${title}, and keeps the reason it was disabled for before`, () => {
      const off = endpointAfter({ ...ACTIVE, failures: 2 }, wish(said), newSecret);
      assert.deepEqual(off, { ...ACTIVE, state: "disabled", reason: "the agent switched push off" });
      assert.deepEqual(endpointAfter(GONE, wish(said), newSecret), GONE);
    });
  }

  for (const [words, before, said] of [
    [/push: "webhook" needs a callback_url/, undefined, { push: "webhook", callbackUrl: null }],
    [/push: "webhook" needs a callback_url/, ACTIVE, { push: "webhook", callbackUrl: null }],
    [/notice: .* needs push/, undefined, { notice: true }],
    [/push_ack: .* needs push/, undefined, { push_ack: true }],
    [/push: "a2a" needs a callback_url/, undefined, { push: "a2a", callbackUrl: null }],
    [/notice: with push: "a2a" the whole message is sent/, undefined, { push: "a2a", notice: true }],
    [/push_ack: with push: "a2a"/, undefined, { push: "a2a", push_ack: false }],
    [/push_ack: a notice does not bring/, undefined, { push: "webhook", notice: true, push_ack: true }],
    [/push_ack: a notice does not bring/, { ...ACTIVE, isNotice: true }, { push_ack: true }],
  ] as const) {
    it(`is refused with ${String(words)}: ${JSON.stringify(said)}`, () => {
      assert.throws(() => endpointAfter(before, wish(said), newSecret), {
        code: "invalid_argument",
        message: words,
      });
    });
  }

  it("that is called over A2A acknowledges, and has another secret than one that is posted to", () => {
    const posted = aNewPushEndpoint({ url: URL_A, isNotice: true, secret: "whsec_old", version: 3 });
    const called = endpointAfter(posted, wish({ push: "a2a" }), newSecret);
    const expected = { mode: "a2a", acknowledges: true, secret: "whsec_new", version: 3 } as const;
    assert.deepEqual(called, aNewPushEndpoint({ url: URL_A, ...expected }));
    assert.deepEqual(endpointAfter(called, wish({ push: "a2a", push_ack: true }), newSecret), called);
    const back = endpointAfter(called, wish({ push: "webhook" }), () => "whsec_newer");
    assert.deepEqual(back, aNewPushEndpoint({ url: URL_A, secret: "whsec_newer", version: 3 }));
  });

  it("leaves the next owner of the id nothing but its version", () => {
    const left = forgotten({ ...ACTIVE, oldSecret: "whsec_old", oldSecretUntilMs: 5, isNotice: true });
    assert.ok(isForgotten(left) && left.state === "disabled");
    assert.doesNotMatch(JSON.stringify(left), /whsec|example/);
    assert.equal(endpointAfter(left, wish(), newSecret), undefined);
    assert.deepEqual(
      endpointAfter(left, wish({ push: "webhook" }), newSecret),
      aNewPushEndpoint({ url: URL_A, secret: "whsec_new", version: 3 }),
    );
  });
});

describe("the secrets of an endpoint", () => {
  const ONE = { ...ACTIVE, secret: "whsec_1" };
  const rotate = (endpoint: PushEndpoint, secret: string, nowMs: number, overlapMs: number) =>
    rotated(endpoint, secret, { nowMs, overlapMs });
  const secretsOf = (endpoint: PushEndpoint) => [
    endpoint.secret,
    endpoint.oldSecret,
    endpoint.oldSecretUntilMs,
  ];

  it("are the new one and the last one after a rotation", () => {
    const once = rotate(ONE, "whsec_2", 50, 100);
    assert.deepEqual(secretsOf(once), ["whsec_2", "whsec_1", 150]);
    assert.deepEqual(secretsOf(rotate(once, "whsec_3", 150, 100)), ["whsec_3", "whsec_2", 250]);
  });

  it("keep the oldest when the owner rotates again during the overlap", () => {
    const once = rotate(ONE, "whsec_2", 50, 100);
    assert.deepEqual(secretsOf(rotate(once, "whsec_3", 149, 100)), ["whsec_3", "whsec_1", 249]);
    assert.deepEqual(secretsOf(rotate(once, "whsec_3", 60, 10)), ["whsec_3", "whsec_1", 150]);
  });

  it("are the new one alone after a rotation without an overlap, and once the time of the old one is over", () => {
    const once = rotate(ONE, "whsec_2", 50, 100);
    assert.deepEqual(secretsOf(rotate(once, "whsec_3", 60, 0)), ["whsec_3", null, null]);
    assert.equal(withoutDeadSecret(once, 149), once);
    assert.deepEqual(secretsOf(withoutDeadSecret(once, 150)), ["whsec_2", null, null]);
    assert.equal(withoutDeadSecret(ONE, 150), ONE);
  });

  it("tell with the address whether it is still the endpoint that a request was sent to", () => {
    assert.ok(isSameEndpoint({ ...ONE, failures: 3, afterPosition: 9, version: 8 }, ONE));
    assert.ok(isSameEndpoint(rotate(ONE, "whsec_2", 50, 100), ONE));
    assert.ok(!isSameEndpoint({ ...ONE, url: URL_B }, ONE));
    assert.ok(!isSameEndpoint({ ...ONE, secret: "whsec_of_another_owner" }, ONE));
    assert.ok(!isSameEndpoint(forgotten(ONE), ONE));
  });
});
