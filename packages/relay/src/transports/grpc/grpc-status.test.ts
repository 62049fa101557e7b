import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { GRPC_STATUSES, RelayError } from "@a2a-relay/protocol";
import { Metadata } from "@grpc/grpc-js";
import { ErrorInfoSchema, StatusSchema } from "./google-rpc.ts";
import { toGrpcStatus } from "./grpc-status.ts";

describe("a gRPC status", () => {
  it("can be written into a header, though its sentence contains half a character", () => {
    const half = "😀".slice(0, 1);
    const error = new RelayError("invalid_argument", `名字: "${half}" is not a name`);
    const { code, details } = toGrpcStatus(error, new Metadata());
    assert.equal(code, GRPC_STATUSES.INVALID_ARGUMENT);
    assert.equal(details, '名字: "\ufffd" is not a name');
    assert.equal(decodeURI(encodeURI(details)), details);
  });

  it("carries google.rpc.Status with an ErrorInfo", () => {
    const error = new RelayError("too_large", "body: 太长", { details: { limit: 10 } });
    const { metadata } = toGrpcStatus(error, new Metadata());
    const [bytes] = metadata.get("grpc-status-details-bin");
    assert.ok(Buffer.isBuffer(bytes));
    const { code, message, details } = fromBinary(StatusSchema, bytes);
    assert.deepEqual([code, message, details.length], [GRPC_STATUSES.INVALID_ARGUMENT, "body: 太长", 1]);
    const info = details[0] && anyUnpack(details[0], ErrorInfoSchema);
    assert.deepEqual(
      [info?.reason, info?.domain, info?.metadata],
      ["TOO_LARGE", "a2a-relay", { limit: "10" }],
    );
  });
});
