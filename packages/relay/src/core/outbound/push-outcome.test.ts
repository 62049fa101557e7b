import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OUTBOUND_FAILURE_CODES, OutboundFailure } from "../ports/outbound-http.ts";
import { errorOfFailure, outcomeOfAnswer, outcomeOfFailure } from "./push-outcome.ts";

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

  it("says of a redirect that it is not followed, and hands on how long to wait", () => {
    const headers = { location: "http://169.254.169.254/", "retry-after": "7" };
    const outcome = outcomeOfAnswer({ status: 302, headers, text: "" });
    assert.deepEqual(outcome, {
      kind: "failed",
      reason: "the endpoint answered 302; redirects are not followed, register the new address",
      retryAfter: "7",
    });
  });

  for (const code of OUTBOUND_FAILURE_CODES) {
    if (code === "blocked") continue;
    it(`none at all (${code}) is a failure, and only its agent and operators hear of which host`, () => {
      const failure = new OutboundFailure(code, '"inside.example" fell silent');
      const { kind, reason, retryAfter } = outcomeOfFailure(failure);
      assert.deepEqual([kind, retryAfter], ["failed", undefined]);
      assert.match(reason, /the endpoint/);
      assert.doesNotMatch(reason, /inside\.example/);
      assert.equal(errorOfFailure(failure), failure.message);
    });
  }

  it("none at all, because the address may not be called, says what to do and not which address it is", () => {
    const failure = new OutboundFailure("blocked", "url: http://10.0.0.1/?token=1 is …");
    for (const words of [outcomeOfFailure(failure).reason, errorOfFailure(failure)]) {
      assert.match(words, /does not call; .* A2A_RELAY_EGRESS_ALLOW/);
      assert.doesNotMatch(words, /token|10\.0\.0\.1/);
    }
  });
});
