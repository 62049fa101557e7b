import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RELAY_ERROR_CODES, RelayError } from "@a2a-relay/protocol";
import { fromServerError, HTTP_STATUS, RETRY_AFTER_S, statusOf, toWireAnswer } from "./http-error.ts";

describe("the table of statuses", () => {
  it("is the one that programs rely on", () => {
    assert.deepEqual(HTTP_STATUS, {
      invalid_argument: 400,
      unauthenticated: 401,
      permission_denied: 403,
      not_found: 404,
      unknown_agent: 404,
      ambiguous_agent: 409,
      conflict: 409,
      lease_required: 409,
      lease_lost: 409,
      task_canceled: 409,
      task_finished: 409,
      wrong_state: 409,
      too_large: 413,
      unsupported_media_type: 415,
      mailbox_full: 429,
      resource_exhausted: 429,
      storage_full: 507,
      unavailable: 503,
      internal: 500,
    });
    for (const code of RELAY_ERROR_CODES)
      assert.equal(statusOf(new RelayError(code, "x")), HTTP_STATUS[code]);
  });

  it("has a Retry-After exactly where a retry may help", () => {
    const later = RELAY_ERROR_CODES.filter((code) => [429, 503, 507].includes(HTTP_STATUS[code]));
    assert.deepEqual(Object.keys(RETRY_AFTER_S).toSorted(), [...later].toSorted());
  });
});

describe("errors of Fastify", () => {
  const complaints: readonly [reason: object, code: string][] = [
    [{ code: "FST_ERR_CTP_INVALID_MEDIA_TYPE", statusCode: 415, message: "x" }, "unsupported_media_type"],
    [{ code: "FST_ERR_MAX_PARAM_LENGTH", statusCode: 414, message: "x" }, "too_large"],
    [{ code: "FST_ERR_BAD_URL", statusCode: 400, message: "bad url" }, "invalid_argument"],
    [{ statusCode: 400 }, "invalid_argument"],
    [{ statusCode: 503, message: "secret" }, "internal"],
    [new TypeError("secret"), "internal"],
    [new RelayError("lease_lost", "x"), "lease_lost"],
  ];
  for (const [reason, code] of complaints) {
    it(`${JSON.stringify(reason)} is ${code} in our words`, () => {
      const error = fromServerError(reason);
      assert.equal(error.code, code);
      assert.doesNotMatch(error.message, /secret/);
    });
  }
});

describe("the answer to bytes that are no request", () => {
  it("is HTTP with an error of the usual shape, for a connection that ends", () => {
    const reasons: readonly [code: string | undefined, status: number][] = [
      ["HPE_HEADER_OVERFLOW", 413],
      ["ERR_HTTP_REQUEST_TIMEOUT", 400],
      ["HPE_INVALID_METHOD", 400],
      [undefined, 400],
    ];
    for (const [code, status] of reasons) {
      const [head = "", body = ""] = toWireAnswer(code === undefined ? {} : { code }).split("\r\n\r\n");
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} \\S`));
      assert.match(head, /^connection: close$/m);
      assert.match(head, new RegExp(`^content-length: ${Buffer.byteLength(body)}$`, "m"));
      assert.ok("error" in (JSON.parse(body) as object));
    }
  });
});
