import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RELAY_ERROR_CODES, RelayError } from "../base/relay-error.ts";
import { fromJsonRpcError, fromRestError, toJsonRpcError, toRestError } from "./a2a-error-body.ts";
import { A2A_ERROR_NAMES, A2A_ERRORS, A2aError } from "./a2a-error.ts";

const TYPE = "type.googleapis.com/google.rpc.ErrorInfo";

describe("an error over JSON-RPC", () => {
  it("carries in 1.0 what programs read", () => {
    const error = new A2aError("TaskNotFound", "没有任务 t-1", { details: { task_id: "t-1", tries: 2 } });
    assert.deepEqual(toJsonRpcError(error, "1.0"), {
      code: -32001,
      message: "没有任务 t-1",
      data: [
        {
          "@type": TYPE,
          reason: "TASK_NOT_FOUND",
          domain: "a2a-protocol.org",
          metadata: { task_id: "t-1", tries: "2" },
        },
      ],
    });
    assert.deepEqual(toJsonRpcError(new RelayError("mailbox_full", "full"), "1.0"), {
      code: -32000,
      message: "full",
      data: [{ "@type": TYPE, reason: "MAILBOX_FULL", domain: "a2a-relay" }],
    });
    assert.equal(toJsonRpcError(new RelayError("invalid_argument", "x"), "1.0").code, -32602);
    assert.equal(toJsonRpcError(new RelayError("internal", "x"), "1.0").code, -32603);
  });

  it("is plain in older dialects, with a code that they know", () => {
    const version = new A2aError("VersionNotSupported", "9.9");
    assert.deepEqual(toJsonRpcError(version, "0.3"), { code: -32600, message: "9.9" });
    const card = new A2aError("ExtendedAgentCardNotConfigured", "none");
    assert.deepEqual(
      (["0.3", "0.2", "0.1"] as const).map((name) => toJsonRpcError(card, name).code),
      [-32007, -32004, -32004],
    );
    assert.equal(toJsonRpcError(new A2aError("InvalidAgentResponse", "x"), "0.1").code, -32603);
    assert.deepEqual(toJsonRpcError(new RelayError("not_found", "x", { details: { a: 1 } }), "0.3"), {
      code: -32000,
      message: "x",
    });
  });

  it("comes back as what it was", () => {
    for (const name of A2A_ERROR_NAMES) {
      const back = fromJsonRpcError(toJsonRpcError(new A2aError(name, "why"), "1.0"));
      assert.ok(back instanceof A2aError);
      assert.deepEqual([back.a2a, back.message], [name, "why"]);
    }
    for (const code of RELAY_ERROR_CODES) {
      const error = new RelayError(code, "why", { details: { id: "一" } });
      const back = fromJsonRpcError({ jsonrpc: "2.0", id: 1, error: toJsonRpcError(error, "1.0") });
      assert.deepEqual([back.code, back.message, back.details], [code, "why", { id: "一" }]);
      assert.ok(!(back instanceof A2aError));
    }
  });

  it("of an agent that gives no more than a code is told by that", () => {
    const known = fromJsonRpcError({ code: -32002, message: "too late", data: null });
    assert.ok(known instanceof A2aError);
    assert.deepEqual([known.a2a, known.code], ["TaskNotCancelable", "task_finished"]);
    const strange = fromJsonRpcError({ code: -32042, message: "坏了" });
    assert.deepEqual(
      [strange.code, strange.message],
      ["internal", "the agent answered with error -32042: 坏了"],
    );
  });

  it("that is no error at all is the agent's fault", () => {
    for (const body of [undefined, null, "oops", []]) {
      const error = fromJsonRpcError(body);
      assert.ok(error instanceof A2aError);
      assert.equal(error.a2a, "InvalidAgentResponse");
    }
    assert.equal(fromJsonRpcError({}).code, "internal");
  });

  it("is not taken for another by a reason of another domain", () => {
    const data = [{ "@type": TYPE, reason: "TASK_NOT_FOUND", domain: "example.com" }];
    const error = fromJsonRpcError({ code: -32602, message: "x", data });
    assert.ok(error instanceof A2aError);
    assert.equal(error.a2a, "InvalidParams");
  });
});

describe("an error over REST", () => {
  it("has the shape of AIP-193", () => {
    const error = new A2aError("UnsupportedOperation", "task t-1 is finished");
    assert.deepEqual(toRestError(error, 400), {
      error: {
        code: 400,
        status: "FAILED_PRECONDITION",
        message: "task t-1 is finished",
        details: [{ "@type": TYPE, reason: "UNSUPPORTED_OPERATION", domain: "a2a-protocol.org" }],
      },
    });
  });

  it("comes back as what it was", () => {
    for (const name of A2A_ERROR_NAMES) {
      const { httpStatus } = A2A_ERRORS[name];
      const back = fromRestError(httpStatus, toRestError(new A2aError(name, "why"), httpStatus));
      assert.ok(back instanceof A2aError);
      assert.equal(back.a2a, name);
    }
    const back = fromRestError(429, toRestError(new RelayError("mailbox_full", "full"), 429));
    assert.equal(back.code, "mailbox_full");
  });

  it("is read as 0.3 writes it, and as the relay's own routes do", () => {
    const older = fromRestError(404, { code: -32001, message: "none" });
    assert.ok(older instanceof A2aError);
    assert.equal(older.a2a, "TaskNotFound");
    const own = fromRestError(409, {
      error: { code: "lease_lost", message: "gone", details: { attempt: 2 } },
    });
    assert.deepEqual([own.code, own.details], ["lease_lost", { attempt: 2 }]);
  });

  it("is told by its status where there is nothing else", () => {
    const statuses = [400, 401, 403, 404, 409, 413, 415, 418, 429, 500, 502, 503, 504, 507];
    assert.deepEqual(
      statuses.map((status) => fromRestError(status, "<html>").code),
      [
        "invalid_argument",
        "unauthenticated",
        "permission_denied",
        "not_found",
        "conflict",
        "too_large",
        "unsupported_media_type",
        "invalid_argument",
        "resource_exhausted",
        "internal",
        "unavailable",
        "unavailable",
        "unavailable",
        "storage_full",
      ],
    );
    const bare = fromRestError(404, { error: { code: 404, status: "NOT_FOUND", message: "没有" } });
    assert.deepEqual([bare.code, bare.message], ["not_found", "没有"]);
  });
});
