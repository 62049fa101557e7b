import { RelayError, type RelayErrorCode, type RelayErrorOptions } from "../base/relay-error.ts";

export const A2A_ERROR_DOMAIN = "a2a-protocol.org";
/** The domain of errors that A2A has no name for. */
export const RELAY_ERROR_DOMAIN = "a2a-relay";

/** The gRPC statuses that we use; the REST binding writes the same names. */
export const GRPC_STATUSES = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;
export type GrpcStatus = keyof typeof GRPC_STATUSES;

interface A2aErrorRow {
  /** JSON-RPC. */
  readonly code: number;
  /** As in 1.0.1. */
  readonly httpStatus: number;
  readonly grpc: GrpcStatus;
  readonly reason: string;
  /** The code on our other wires. */
  readonly relayCode: RelayErrorCode;
}

function row(
  code: number,
  httpStatus: number,
  grpc: GrpcStatus,
  reason: string,
  relayCode: RelayErrorCode,
): A2aErrorRow {
  return { code, httpStatus, grpc, reason, relayCode };
}

/** The errors that A2A names, and those of JSON-RPC below it. */
export const A2A_ERRORS = {
  TaskNotFound: row(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND", "not_found"),
  TaskNotCancelable: row(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE", "task_finished"),
  PushNotificationNotSupported: row(
    -32003,
    400,
    "FAILED_PRECONDITION",
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "invalid_argument",
  ),
  UnsupportedOperation: row(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION", "wrong_state"),
  ContentTypeNotSupported: row(
    -32005,
    400,
    "INVALID_ARGUMENT",
    "CONTENT_TYPE_NOT_SUPPORTED",
    "unsupported_media_type",
  ),
  InvalidAgentResponse: row(-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE", "internal"),
  ExtendedAgentCardNotConfigured: row(
    -32007,
    400,
    "FAILED_PRECONDITION",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    "invalid_argument",
  ),
  ExtensionSupportRequired: row(
    -32008,
    400,
    "FAILED_PRECONDITION",
    "EXTENSION_SUPPORT_REQUIRED",
    "invalid_argument",
  ),
  VersionNotSupported: row(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED", "invalid_argument"),
  ParseError: row(-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR", "invalid_argument"),
  InvalidRequest: row(-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST", "invalid_argument"),
  MethodNotFound: row(-32601, 404, "UNIMPLEMENTED", "METHOD_NOT_FOUND", "not_found"),
  InvalidParams: row(-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS", "invalid_argument"),
  InternalError: row(-32603, 500, "INTERNAL", "INTERNAL_ERROR", "internal"),
} as const satisfies Record<string, A2aErrorRow>;
export type A2aErrorName = keyof typeof A2A_ERRORS;
export const A2A_ERROR_NAMES = Object.keys(A2A_ERRORS) as readonly A2aErrorName[];

/** An error that A2A has a name for. Other wires use its code. */
export class A2aError extends RelayError {
  override readonly name: string = "A2aError";
  readonly a2a: A2aErrorName;

  constructor(a2a: A2aErrorName, message: string, options: RelayErrorOptions = {}) {
    super(A2A_ERRORS[a2a].relayCode, message, options);
    this.a2a = a2a;
  }
}

/** JSON-RPC reserves this code for servers. */
export const SERVER_ERROR_CODE = -32000;

/** Our error codes on A2A, where A2A has no name for them. */
export const RELAY_ERRORS_ON_A2A = {
  invalid_argument: { code: A2A_ERRORS.InvalidParams.code, grpc: "INVALID_ARGUMENT" },
  unauthenticated: { code: SERVER_ERROR_CODE, grpc: "UNAUTHENTICATED" },
  permission_denied: { code: SERVER_ERROR_CODE, grpc: "PERMISSION_DENIED" },
  not_found: { code: SERVER_ERROR_CODE, grpc: "NOT_FOUND" },
  unknown_agent: { code: SERVER_ERROR_CODE, grpc: "NOT_FOUND" },
  ambiguous_agent: { code: SERVER_ERROR_CODE, grpc: "FAILED_PRECONDITION" },
  conflict: { code: SERVER_ERROR_CODE, grpc: "ALREADY_EXISTS" },
  lease_required: { code: SERVER_ERROR_CODE, grpc: "FAILED_PRECONDITION" },
  lease_lost: { code: SERVER_ERROR_CODE, grpc: "ABORTED" },
  task_canceled: { code: SERVER_ERROR_CODE, grpc: "FAILED_PRECONDITION" },
  task_finished: { code: SERVER_ERROR_CODE, grpc: "FAILED_PRECONDITION" },
  wrong_state: { code: SERVER_ERROR_CODE, grpc: "FAILED_PRECONDITION" },
  too_large: { code: SERVER_ERROR_CODE, grpc: "INVALID_ARGUMENT" },
  unsupported_media_type: { code: SERVER_ERROR_CODE, grpc: "INVALID_ARGUMENT" },
  mailbox_full: { code: SERVER_ERROR_CODE, grpc: "RESOURCE_EXHAUSTED" },
  resource_exhausted: { code: SERVER_ERROR_CODE, grpc: "RESOURCE_EXHAUSTED" },
  storage_full: { code: SERVER_ERROR_CODE, grpc: "RESOURCE_EXHAUSTED" },
  unavailable: { code: SERVER_ERROR_CODE, grpc: "UNAVAILABLE" },
  internal: { code: A2A_ERRORS.InternalError.code, grpc: "INTERNAL" },
} as const satisfies Record<RelayErrorCode, { readonly code: number; readonly grpc: GrpcStatus }>;

export function grpcStatusOf(error: RelayError): GrpcStatus {
  return error instanceof A2aError ? A2A_ERRORS[error.a2a].grpc : RELAY_ERRORS_ON_A2A[error.code].grpc;
}
