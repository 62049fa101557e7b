import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRelayErrorCode, RELAY_ERROR_CODES, RelayError, toErrorBody } from "./relay-error.ts";

describe("RelayError", () => {
  it("passes through RelayError.from unchanged", () => {
    const error = new RelayError("lease_lost", "gone", { details: { attempt: 2 } });
    assert.equal(RelayError.from(error), error);
    assert.deepEqual(error.details, { attempt: 2 });
  });

  it("hides the text of what it did not raise, and keeps it as the cause", () => {
    for (const reason of [new TypeError("secret path"), "secret path", undefined, null, { code: "EIO" }]) {
      const error = RelayError.from(reason);
      assert.equal(error.code, "internal");
      assert.doesNotMatch(error.message, /secret/);
      assert.equal(error.cause, reason);
    }
  });

  it("knows its codes and no others", () => {
    for (const code of RELAY_ERROR_CODES) assert.ok(isRelayErrorCode(code));
    for (const other of ["", "toString", "INTERNAL", undefined, 500]) assert.ok(!isRelayErrorCode(other));
    assert.equal(new Set(RELAY_ERROR_CODES).size, RELAY_ERROR_CODES.length);
  });
});

describe("an error body", () => {
  it("has details only when there are some, and never the cause", () => {
    const error = new RelayError("conflict", "taken", { cause: new Error("secret") });
    assert.deepEqual(toErrorBody(error), { error: { code: "conflict", message: "taken" } });
    const detailed = new RelayError("conflict", "taken", { details: { id: 1 } });
    assert.deepEqual(toErrorBody(detailed), {
      error: { code: "conflict", message: "taken", details: { id: 1 } },
    });
  });
});
