import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OUTBOUND_FAILURE_CODES, OutboundFailure } from "../environment/outbound.ts";
import { outcomeOfAnswer, outcomeOfFailure } from "./push-outcome.ts";

const KINDS = { delivered: [200, 201, 202, 204, 299], gone: [410] } as const;
const FAILED = [300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 409, 413, 429, 500, 502, 503, 599];

describe("what an answer to a push means", () => {
  for (const [kind, statuses] of Object.entries({ ...KINDS, failed: FAILED })) {
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
    it(`none at all (${code}) is a failure in the words of the way out`, () => {
      const failure = new OutboundFailure(code, "it fell silent");
      const expected = { kind: "failed", reason: "it fell silent", retryAfter: undefined };
      assert.deepEqual(outcomeOfFailure(failure), expected);
    });
  }

  it("none at all, because the address may not be called, says what to do and not which address it is", () => {
    const { reason } = outcomeOfFailure(new OutboundFailure("blocked", "url: http://10.0.0.1/?token=1 is …"));
    assert.match(reason, /does not call; .* A2A_RELAY_EGRESS_ALLOW/);
    assert.doesNotMatch(reason, /token|10\.0\.0\.1/);
  });
});
