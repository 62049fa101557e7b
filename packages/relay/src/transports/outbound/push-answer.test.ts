import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OUTBOUND_FAILURE_CODES, OutboundFailure } from "../egress/http-client.ts";
import { outcomeOfAnswer, reportOf } from "./push-answer.ts";

const { signal } = new AbortController();
const KINDS = { delivered: [200, 201, 202, 204, 299], gone: [410] } as const;
const REFUSED = [400, 401, 403, 404, 409, 411, 413, 415, 422, 451, 499];
const FAILED = [300, 301, 302, 303, 304, 307, 308, 408, 425, 429, 500, 502, 503, 599];

describe("what an answer to a push means", () => {
  for (const [kind, statuses] of Object.entries({ ...KINDS, refused: REFUSED, failed: FAILED })) {
    for (const status of statuses) {
      it(`${status} is ${kind}`, () => {
        const outcome = outcomeOfAnswer({ status, retryAfterMs: 0 });
        assert.equal(outcome.kind, kind);
        if (outcome.kind !== "delivered") assert.match(outcome.reason, new RegExp(String(status)));
      });
    }
  }

  it("says of a redirect that it is not followed, and keeps Retry-After", () => {
    const outcome = outcomeOfAnswer({ status: 302, retryAfterMs: 7_000 });
    assert.deepEqual(outcome, {
      kind: "failed",
      reason: "the endpoint answered 302; redirects are not followed, register the new address",
      retryAfterMs: 7_000,
    });
  });

  for (const code of OUTBOUND_FAILURE_CODES) {
    if (code === "blocked") continue;
    it(`none (${code}) is a failure, and only its agent and operators see the host`, async () => {
      const failure = new OutboundFailure(code, '"inside.example" fell silent');
      const report = await reportOf(Promise.reject(failure), signal);
      assert.deepEqual([report?.status, report?.error, report?.answer], [null, failure.message, null]);
      const { outcome } = report ?? assert.fail();
      assert.ok(outcome.kind === "failed");
      assert.match(outcome.reason, /the endpoint/);
      assert.doesNotMatch(outcome.reason, /inside\.example/);
    });
  }

  it("none, because the address is blocked, says what to do and does not name the address", async () => {
    const failure = new OutboundFailure("blocked", "url: http://10.0.0.1/?token=1 is …");
    const { outcome, error } = (await reportOf(Promise.reject(failure), signal)) ?? assert.fail();
    assert.ok(outcome.kind === "failed");
    for (const words of [outcome.reason, error ?? ""]) {
      assert.match(words, /does not call; .* A2A_RELAY_EGRESS_ALLOW/);
      assert.doesNotMatch(words, /token|10\.0\.0\.1/);
    }
  });
});
