import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  type ErrorInfo,
  errorInfoOf,
  GRPC_STATUSES,
  grpcStatusOf,
  type RelayError,
} from "@a2a-relay/protocol";
import type { Metadata, StatusObject } from "@grpc/grpc-js";

const DETAILS = "grpc-status-details-bin";

/** An error as gRPC says it: the status, the sentence, and `google.rpc.Status` with its ErrorInfo for programs. */
export function toGrpcStatus(error: RelayError, metadata: Metadata): StatusObject {
  const code = GRPC_STATUSES[grpcStatusOf(error)];
  // The library writes it as part of a URI, which fails for half a character.
  const details = error.message.toWellFormed();
  metadata.set(DETAILS, statusBytes(code, details, errorInfoOf(error)));
  return { code, details, metadata };
}

function statusBytes(code: number, message: string, info: ErrorInfo): Buffer {
  const writer = new BinaryWriter().uint32(field(1, VARINT)).int32(code);
  writer.uint32(field(2, LENGTH)).string(message);
  writer.uint32(field(3, LENGTH)).fork();
  writer.uint32(field(1, LENGTH)).string(info["@type"]);
  writer.uint32(field(2, LENGTH)).bytes(errorInfoBytes(info)).join();
  return Buffer.from(writer.finish());
}

function errorInfoBytes({ reason, domain, metadata = {} }: ErrorInfo): Uint8Array {
  const writer = new BinaryWriter().uint32(field(1, LENGTH)).string(reason);
  writer.uint32(field(2, LENGTH)).string(domain);
  for (const [key, value] of Object.entries(metadata)) {
    writer.uint32(field(3, LENGTH)).fork();
    writer.uint32(field(1, LENGTH)).string(key).uint32(field(2, LENGTH)).string(value).join();
  }
  return writer.finish();
}

const VARINT = 0;
const LENGTH = 2;

/** The tag of a field of a protocol buffer. */
function field(number: number, wireType: number): number {
  return number * 8 + wireType;
}
