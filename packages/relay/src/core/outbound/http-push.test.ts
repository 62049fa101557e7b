import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { OUTBOUND_FAILURE_CODES, OutboundFailure } from "../ports/outbound-http.ts";
import { errorOfFailure, outcomeOfAnswer, outcomeOfFailure, readRetryAfter } from "./http-push.ts";

const KINDS = { delivered: [200, 201, 202, 204, 299], gone: [410] } as const;
const REFUSED = [400, 401, 403, 404, 409, 411, 413, 415, 422, 451, 499];
const FAILED = [300, 301, 302, 303, 304, 307, 308, 408, 425, 429, 500, 502, 503, 599];

describe("what an answer to a push means", () => {
  for (const [kind, statuses] of Object.entries({ ...KINDS, refused: REFUSED, failed: FAILED })) {
    for (const status of statuses) {
      it(`${status} is ${kind}`, () => {
        const outcome = outcomeOfAnswer({ status, headers: {}, text: "随便" });
        assert.equal(outcome.kind, kind);
        if (outcome.kind !== "delivered") assert.match(outcome.reason, new RegExp(String(status)));
      });
    }
  }

  it("says of a redirect that it is not followed, and keeps Retry-After", () => {
    const headers = { location: "http://169.254.169.254/", "retry-after": "7" };
    const outcome = outcomeOfAnswer({ status: 302, headers, text: "" });
    assert.deepEqual(outcome, {
      kind: "failed",
      reason: "the endpoint answered 302; redirects are not followed, register the new address",
      retryAfter: { waitMs: 7_000 },
    });
  });

  for (const code of OUTBOUND_FAILURE_CODES) {
    if (code === "blocked") continue;
    it(`none (${code}) is a failure, and only its agent and operators see the host`, () => {
      const failure = new OutboundFailure(code, '"inside.example" fell silent');
      const { kind, reason, retryAfter } = outcomeOfFailure(failure);
      assert.deepEqual([kind, retryAfter], ["failed", undefined]);
      assert.match(reason, /the endpoint/);
      assert.doesNotMatch(reason, /inside\.example/);
      assert.equal(errorOfFailure(failure), failure.message);
    });
  }

  it("none, because the address is blocked, says what to do and does not name the address", () => {
    const failure = new OutboundFailure("blocked", "url: http://10.0.0.1/?token=1 is …");
    for (const words of [outcomeOfFailure(failure).reason, errorOfFailure(failure)]) {
      assert.match(words, /does not call; .* A2A_RELAY_EGRESS_ALLOW/);
      assert.doesNotMatch(words, /token|10\.0\.0\.1/);
    }
  });
});

describe("Retry-After", () => {
  for (const [text, retryAfter] of [
    [undefined, undefined],
    ["", undefined],
    ["0", { waitMs: 0 }],
    [" 7 ", { waitMs: 7_000 }],
    ["-7", undefined],
    ["1.5", undefined],
    ["1e9", undefined],
    ["9".repeat(400), { waitMs: Infinity }],
    ["Fri, 08 May 2026 12:00:30 GMT", { untilMs: NOON_MS + 30_000 }],
    ["Friday, 08-May-26 12:00:30 GMT", { untilMs: NOON_MS + 30_000 }],
    ["Fri May  8 12:00:30 2026", { untilMs: NOON_MS + 30_000 }],
    ["2026", { waitMs: 2_026_000 }],
    ["2026-05-08T12:00:30Z", undefined],
    ["Soon, very soon GMT", undefined],
    ["whenever", undefined],
  ] as const) {
    it(`${JSON.stringify(text)?.slice(0, 40)} means ${JSON.stringify(retryAfter) ?? "nothing"}`, () => {
      assert.deepEqual(readRetryAfter(text), retryAfter);
    });
  }
});
