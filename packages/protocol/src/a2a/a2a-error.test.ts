import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RELAY_ERROR_CODES, RelayError } from "../base/relay-error.ts";
import {
  A2A_ERROR_NAMES,
  A2A_ERRORS,
  A2aError,
  GRPC_STATUSES,
  grpcStatusOf,
  RELAY_ERRORS_ON_A2A,
} from "./a2a-error.ts";

describe("A2aError", () => {
  it("is the RelayError of its row", () => {
    const error = new A2aError("TaskNotFound", "no task t-1", { details: { task_id: "t-1" } });
    assert.ok(error instanceof RelayError);
    assert.equal(RelayError.from(error), error);
    assert.deepEqual([error.code, error.a2a, error.message], ["not_found", "TaskNotFound", "no task t-1"]);
    assert.deepEqual(error.details, { task_id: "t-1" });
  });

  it("has a code, a reason and a status of gRPC that are its own row's", () => {
    const codes = A2A_ERROR_NAMES.map((name) => A2A_ERRORS[name].code);
    assert.equal(new Set(codes).size, codes.length);
    const reasons = A2A_ERROR_NAMES.map((name) => A2A_ERRORS[name].reason);
    assert.equal(new Set(reasons).size, reasons.length);
    assert.deepEqual(
      [GRPC_STATUSES.NOT_FOUND, GRPC_STATUSES.FAILED_PRECONDITION, GRPC_STATUSES.UNAUTHENTICATED],
      [5, 9, 16],
    );
  });

  it("stands in the tables of specification 1.0.1", () => {
    const rows = A2A_ERROR_NAMES.map((name) => {
      const { code, httpStatus, grpc } = A2A_ERRORS[name];
      return [name, code, httpStatus, grpc];
    });
    assert.deepEqual(rows, [
      ["TaskNotFound", -32001, 404, "NOT_FOUND"],
      ["TaskNotCancelable", -32002, 400, "FAILED_PRECONDITION"],
      ["PushNotificationNotSupported", -32003, 400, "FAILED_PRECONDITION"],
      ["UnsupportedOperation", -32004, 400, "FAILED_PRECONDITION"],
      ["ContentTypeNotSupported", -32005, 400, "INVALID_ARGUMENT"],
      ["InvalidAgentResponse", -32006, 500, "INTERNAL"],
      ["ExtendedAgentCardNotConfigured", -32007, 400, "FAILED_PRECONDITION"],
      ["ExtensionSupportRequired", -32008, 400, "FAILED_PRECONDITION"],
      ["VersionNotSupported", -32009, 400, "FAILED_PRECONDITION"],
      ["ParseError", -32700, 400, "INVALID_ARGUMENT"],
      ["InvalidRequest", -32600, 400, "INVALID_ARGUMENT"],
      ["MethodNotFound", -32601, 404, "UNIMPLEMENTED"],
      ["InvalidParams", -32602, 400, "INVALID_ARGUMENT"],
      ["InternalError", -32603, 500, "INTERNAL"],
    ]);
  });

  it("has a status of gRPC, as every other error has", () => {
    assert.equal(grpcStatusOf(new A2aError("TaskNotCancelable", "done")), "FAILED_PRECONDITION");
    for (const code of RELAY_ERROR_CODES) {
      assert.equal(grpcStatusOf(new RelayError(code, "x")), RELAY_ERRORS_ON_A2A[code].grpc);
      assert.ok(RELAY_ERRORS_ON_A2A[code].grpc in GRPC_STATUSES);
    }
    assert.equal(grpcStatusOf(new RelayError("unauthenticated", "x")), "UNAUTHENTICATED");
    assert.equal(grpcStatusOf(new RelayError("mailbox_full", "x")), "RESOURCE_EXHAUSTED");
  });
});
