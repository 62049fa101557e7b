import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GRPC_STATUSES, RelayError } from "@a2a-relay/protocol";
import { Metadata } from "@grpc/grpc-js";
import { toGrpcStatus } from "./grpc-status.ts";

describe("an error as gRPC says it", () => {
  it("is one that can be written into a header, though its sentence has half a character in it", () => {
    const half = "😀".slice(0, 1);
    const error = new RelayError("invalid_argument", `名字: "${half}" is not a name`);
    const { code, details } = toGrpcStatus(error, new Metadata());
    assert.equal(code, GRPC_STATUSES.INVALID_ARGUMENT);
    assert.equal(details, '名字: "\ufffd" is not a name');
    assert.equal(decodeURI(encodeURI(details)), details);
  });
});
