import { isRelayErrorCode, RelayError, type RelayErrorCode } from "../base/relay-error.ts";
import type { A2aVersion } from "./a2a-dialect.ts";
import {
  A2A_ERROR_DOMAIN,
  A2A_ERROR_NAMES,
  A2A_ERRORS,
  A2aError,
  type A2aErrorName,
  type GrpcStatus,
  grpcStatusOf,
  RELAY_ERROR_DOMAIN,
  RELAY_ERRORS_ON_A2A,
} from "./a2a-error.ts";
import { isJsonObject, type JsonObject } from "./json-members.ts";

const ERROR_INFO_TYPE = "type.googleapis.com/google.rpc.ErrorInfo";

/** `google.rpc.ErrorInfo`, the part of an error that programs read. */
export interface ErrorInfo {
  readonly "@type": typeof ERROR_INFO_TYPE;
  readonly reason: string;
  readonly domain: string;
  /** Values must be strings; others are JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface JsonRpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: readonly ErrorInfo[];
}

export interface RestErrorBody {
  readonly error: {
    readonly code: number;
    readonly status: GrpcStatus;
    readonly message: string;
    readonly details: readonly ErrorInfo[];
  };
}

/** Errors that a dialect does not have, and the nearest one that it has. */
const UNKNOWN_BEFORE: Readonly<Record<A2aVersion, Partial<Record<A2aErrorName, A2aErrorName>>>> = {
  "1.0": {},
  "0.3": { ExtensionSupportRequired: "InvalidRequest", VersionNotSupported: "InvalidRequest" },
  "0.2": {
    ExtensionSupportRequired: "InvalidRequest",
    VersionNotSupported: "InvalidRequest",
    ExtendedAgentCardNotConfigured: "UnsupportedOperation",
  },
  "0.1": {
    ExtensionSupportRequired: "InvalidRequest",
    VersionNotSupported: "InvalidRequest",
    ExtendedAgentCardNotConfigured: "UnsupportedOperation",
    InvalidAgentResponse: "InternalError",
  },
};

/** The `error` of a JSON-RPC response; REST of 0.3 uses it as the whole body. */
export function toJsonRpcError(error: RelayError, version: A2aVersion): JsonRpcErrorBody {
  if (version === "1.0") {
    return { code: codeOf(error, version), message: error.message, data: [errorInfoOf(error)] };
  }
  return { code: codeOf(error, version), message: error.message };
}

/** REST of 1.0, by AIP-193. */
export function toRestError(error: RelayError, httpStatus: number): RestErrorBody {
  const { message } = error;
  return {
    error: { code: httpStatus, status: grpcStatusOf(error), message, details: [errorInfoOf(error)] },
  };
}

export function errorInfoOf(error: RelayError): ErrorInfo {
  const [reason, domain] =
    error instanceof A2aError
      ? [A2A_ERRORS[error.a2a].reason, A2A_ERROR_DOMAIN]
      : [error.code.toUpperCase(), RELAY_ERROR_DOMAIN];
  const metadata = Object.entries(error.details ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  return {
    "@type": ERROR_INFO_TYPE,
    reason,
    domain,
    ...(metadata.length === 0 ? {} : { metadata: Object.fromEntries(metadata) as Record<string, string> }),
  };
}

/** Reads the `error` of a JSON-RPC response, or the whole response. */
export function fromJsonRpcError(body: unknown): RelayError {
  const error = isJsonObject(body) && isJsonObject(body["error"]) ? body["error"] : body;
  if (!isJsonObject(error)) return unreadable("an error without a body");
  const message = messageOf(error);
  const name = nameOfCode(error["code"]);
  return (
    fromErrorInfo(error["data"], message) ??
    (name === undefined
      ? new RelayError("internal", `the agent answered with error ${String(error["code"])}: ${message}`)
      : new A2aError(name, message))
  );
}

/** Reads a failed REST response of 1.0 or 0.3, or of a proxy that only sets a status. */
export function fromRestError(status: number, body: unknown): RelayError {
  const error = isJsonObject(body) && isJsonObject(body["error"]) ? body["error"] : body;
  const code = relayCodeOfStatus(status);
  if (!isJsonObject(error)) return new RelayError(code, `the agent answered with HTTP status ${status}`);
  const message = messageOf(error);
  const said = error["code"];
  if (isRelayErrorCode(said)) return new RelayError(said, message, detailsOf(error["details"]));
  const name = nameOfCode(said);
  return (
    fromErrorInfo(error["details"], message) ??
    (name === undefined ? new RelayError(code, message) : new A2aError(name, message))
  );
}

function codeOf(error: RelayError, version: A2aVersion): number {
  if (!(error instanceof A2aError)) return RELAY_ERRORS_ON_A2A[error.code].code;
  return A2A_ERRORS[UNKNOWN_BEFORE[version][error.a2a] ?? error.a2a].code;
}

function fromErrorInfo(details: unknown, message: string): RelayError | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const info of (details as readonly unknown[]).filter(isJsonObject)) {
    const { reason, domain, metadata } = info;
    if (typeof reason !== "string") continue;
    const name = A2A_ERROR_NAMES.find((one) => A2A_ERRORS[one].reason === reason);
    if (domain === A2A_ERROR_DOMAIN && name !== undefined)
      return new A2aError(name, message, detailsOf(metadata));
    const code = reason.toLowerCase();
    if (domain === RELAY_ERROR_DOMAIN && isRelayErrorCode(code)) {
      return new RelayError(code, message, detailsOf(metadata));
    }
  }
  return undefined;
}

function nameOfCode(code: unknown): A2aErrorName | undefined {
  return A2A_ERROR_NAMES.find((name) => A2A_ERRORS[name].code === code);
}

function detailsOf(value: unknown): { readonly details?: JsonObject } {
  return isJsonObject(value) ? { details: value } : {};
}

function messageOf(error: JsonObject): string {
  const { message } = error;
  return typeof message === "string" && message !== "" ? message : "the agent gave no reason";
}

function unreadable(what: string): RelayError {
  return new A2aError("InvalidAgentResponse", `the agent answered with ${what}`);
}

const CODE_OF_STATUS: ReadonlyMap<number, RelayErrorCode> = new Map([
  [401, "unauthenticated"],
  [403, "permission_denied"],
  [404, "not_found"],
  [409, "conflict"],
  [413, "too_large"],
  [415, "unsupported_media_type"],
  [429, "resource_exhausted"],
  [502, "unavailable"],
  [503, "unavailable"],
  [504, "unavailable"],
  [507, "storage_full"],
]);

function relayCodeOfStatus(status: number): RelayErrorCode {
  return CODE_OF_STATUS.get(status) ?? (status >= 400 && status < 500 ? "invalid_argument" : "internal");
}
