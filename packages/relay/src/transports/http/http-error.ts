import { STATUS_CODES } from "node:http";
import { LIMITS, RelayError, type RelayErrorCode, toErrorBody } from "@a2a-relay/protocol";

/** `satisfies` makes a new code without a status a compile error. */
export const HTTP_STATUS = {
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
} as const satisfies Record<RelayErrorCode, number>;

/** Codes after which the same call may succeed later, with the delay in seconds. */
export const RETRY_AFTER_S: Partial<Record<RelayErrorCode, number>> = {
  mailbox_full: 5,
  resource_exhausted: 1,
  storage_full: 30,
  unavailable: 1,
};

export function statusOf(error: RelayError): number {
  return HTTP_STATUS[error.code];
}

/** Fastify's own errors as ours. */
export function fromServerError(reason: unknown): RelayError {
  if (reason instanceof RelayError) return reason;
  const { code, statusCode, message } = reason as {
    readonly code?: string;
    readonly statusCode?: number;
    readonly message?: string;
  };
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    return new RelayError("unsupported_media_type", "send JSON with Content-Type: application/json");
  }
  if (code === "FST_ERR_MAX_PARAM_LENGTH") {
    return new RelayError("too_large", `path: an id has at most ${LIMITS.idCharsMax} characters`);
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new RelayError("invalid_argument", message ?? "the request is not valid", { cause: reason });
  }
  return RelayError.from(reason);
}

/** The raw answer to bytes that are no HTTP request; the connection closes after it. */
export function toWireAnswer(reason: { readonly code?: string }): string {
  const error = notARequest(reason.code);
  const status = statusOf(error);
  const body = JSON.stringify(toErrorBody(error));
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}

function notARequest(code: string | undefined): RelayError {
  if (code === "HPE_HEADER_OVERFLOW")
    return new RelayError("too_large", "the request's headers are too large");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new RelayError("invalid_argument", "the request did not arrive in time");
  }
  if (code === "HPE_INVALID_URL") {
    return new RelayError(
      "invalid_argument",
      "the request's path or query has a character that no URL may have; percent-encode it: 昨天 is %E6%98%A8%E5%A4%A9",
    );
  }
  return new RelayError("invalid_argument", "this is not an HTTP request that can be read");
}
