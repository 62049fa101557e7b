import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { errorInfoOf, GRPC_STATUSES, grpcStatusOf, type RelayError } from "@a2a-relay/protocol";
import type { Metadata, StatusObject } from "@grpc/grpc-js";
import { ErrorInfoSchema, StatusSchema } from "./google-rpc.ts";

const DETAILS = "grpc-status-details-bin";

/** An error in gRPC: status and sentence for people, and `google.rpc.Status` with its ErrorInfo for programs. */
export function toGrpcStatus(error: RelayError, metadata: Metadata): StatusObject {
  const code = GRPC_STATUSES[grpcStatusOf(error)];
  // The library encodes it as part of a URI, which fails for half a character.
  const details = error.message.toWellFormed();
  const { reason, domain, metadata: about = {} } = errorInfoOf(error);
  const info = anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain, metadata: about }));
  const status = create(StatusSchema, { code, message: details, details: [info] });
  metadata.set(DETAILS, Buffer.from(toBinary(StatusSchema, status)));
  return { code, details, metadata };
}
