import { quote } from "@a2a-relay/protocol";
import { HOW_TO_ALLOW } from "../../core/rules/egress-policy.ts";
import { OutboundFailure } from "./http-client.ts";

/** Error codes of OpenSSL and Node for a bad certificate or handshake. */
const TLS_CODE =
  /^(?:EPROTO$|ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO_|ERROR_IN_C|HOSTNAME_MISMATCH|INVALID_|PATH_LENGTH_|SELF_SIGNED_|UNABLE_TO_)/;

const TIMEOUT_CODES = ["ETIMEDOUT", "ETIMEOUT", "ERR_SOCKET_CONNECTION_TIMEOUT"];
const STOPPED_CODES = ["UND_ERR_DESTROYED", "UND_ERR_CLOSED", "UND_ERR_ABORTED"];

/** Omits the address: a caller that chooses a name must not learn where it leads inside. */
export function blocked(host: string): OutboundFailure {
  return new OutboundFailure(
    "blocked",
    `${quote(host)} is at an address that the relay does not call; ${HOW_TO_ALLOW}`,
  );
}

export function noAddress(host: string): OutboundFailure {
  return new OutboundFailure("unreachable", `${quote(host)} has no address`);
}

export function stopping(sent = { mayHaveArrived: false }): OutboundFailure {
  return new OutboundFailure("aborted", "the relay is stopping", sent);
}

/** A failure to connect: nothing was sent. */
export function connectFailure(host: string, reason: unknown): OutboundFailure {
  if (reason instanceof OutboundFailure) return reason;
  const code = codeOf(reason);
  const options = { cause: reason };
  if (TLS_CODE.test(code)) {
    return new OutboundFailure("tls", `TLS with ${quote(host)} failed (${code})`, options);
  }
  if (TIMEOUT_CODES.includes(code)) {
    return new OutboundFailure("timeout", `no connection to ${quote(host)} in time`, options);
  }
  return new OutboundFailure("unreachable", `no connection to ${quote(host)} (${code})`, options);
}

/** A failure on an open connection: the request may have arrived. */
export function exchangeFailure(
  host: string,
  reason: unknown,
  sent: { readonly mayHaveArrived: boolean },
): OutboundFailure {
  if (reason instanceof OutboundFailure) return reason;
  const code = codeOf(reason);
  const options = { cause: reason, ...sent };
  if (STOPPED_CODES.includes(code)) return stopping(sent);
  if (TIMEOUT_CODES.includes(code)) {
    return new OutboundFailure("timeout", `${quote(host)} fell silent`, options);
  }
  return new OutboundFailure("protocol", `${quote(host)} gave no whole HTTP answer (${code})`, options);
}

function codeOf(reason: unknown): string {
  const code: unknown = reason instanceof Error && "code" in reason ? reason.code : undefined;
  return typeof code === "string" ? code : "no code";
}
