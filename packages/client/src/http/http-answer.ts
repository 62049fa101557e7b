import { isRelayErrorCode, quote, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { parseRetryAfterMs } from "./retry.ts";

/**
 * When a failed try may be followed by another: `always` for what may happen twice without harm,
 * `if_not_done` for what may not, `never` for questions about this very moment.
 */
export type Repeat = "always" | "if_not_done" | "never";

/**
 * Why a try gave no result, and whether the relay acted on it:
 * - `refused`: it answered, and would answer the same again;
 * - `not_done`: it certainly did nothing, so anything may be tried again;
 * - `unknown`: the reply got lost, so only what may safely happen twice is tried again.
 */
export class Failure {
  readonly error: RelayError;
  readonly outcome: "refused" | "not_done" | "unknown";
  readonly retryAfterMs: number;

  constructor(error: RelayError, outcome: Failure["outcome"], retryAfterMs = 0) {
    this.error = error;
    this.outcome = outcome;
    this.retryAfterMs = retryAfterMs;
  }

  allows(repeat: Repeat): boolean {
    return (
      (repeat === "always" && this.outcome !== "refused") ||
      (repeat === "if_not_done" && this.outcome === "not_done")
    );
  }
}

export interface HttpAnswer {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The JSON object of an answer that should hold the named member, or why it is not one. */
export function readJson(answer: HttpAnswer, member: string): Readonly<Record<string, unknown>> | Failure {
  if (!isSuccess(answer)) return readFailure(answer);
  const body = parseObject(answer.text);
  if (body !== undefined && Object.hasOwn(body, member)) return body;
  return new Failure(foreignAnswer(answer, `without the expected ${quote(member)}`), "refused");
}

export function readText(answer: HttpAnswer): string | Failure {
  return isSuccess(answer) ? answer.text : readFailure(answer);
}

/** Why there is no stream. It is tried again whatever the relay's own fault may be, but not what the caller did. */
export function readStreamFailure(answer: HttpAnswer): Failure {
  const error = relayError(answer);
  if (error === undefined && answer.status < 500) return foreignStream(answer);
  const failure = readFailure(answer);
  const isItsFault = answer.status >= 500 && failure.outcome === "refused";
  return isItsFault ? new Failure(failure.error, "not_done", failure.retryAfterMs) : failure;
}

/** Somebody who is no relay answers for it here, and perhaps only here. */
function foreignStream(answer: HttpAnswer): Failure {
  const error = foreignAnswer(answer, "instead of a stream of events");
  const isBlocked = error.code === "unavailable";
  return new Failure(
    isBlocked ? new TransportBlocked(error.message) : error,
    outcomeOf(answer.status, error.code),
  );
}

function isSuccess(answer: HttpAnswer): boolean {
  return answer.status >= 200 && answer.status < 300;
}

function readFailure(answer: HttpAnswer): Failure {
  const error = relayError(answer) ?? foreignAnswer(answer, "instead of the relay's JSON");
  const retryAfterMs = parseRetryAfterMs(answer.headers.get("retry-after"));
  return new Failure(error, outcomeOf(answer.status, error.code), retryAfterMs);
}

/** A full mailbox stays full for longer than anybody waits in a call; the sender should hear of it. */
function outcomeOf(status: number, code: RelayErrorCode): Failure["outcome"] {
  if (status === 503 || (status === 429 && code !== "mailbox_full")) return "not_done";
  // A gateway that lost the relay does not know what the relay did.
  if (status === 502 || status === 504) return "unknown";
  return "refused";
}

function relayError(answer: HttpAnswer): RelayError | undefined {
  const body = parseObject(answer.text);
  // Below /a2a/ an error is the body itself.
  const error = body?.["kind"] === "error" ? body : asObject(body?.["error"]);
  if (error === undefined || typeof error["code"] !== "string") return undefined;
  return readError(error, codeOfStatus(answer.status));
}

/** A newer relay may know codes that this client does not; `family` is what else is known of them. */
export function readError(
  error: Readonly<Record<string, unknown>>,
  family: RelayErrorCode | undefined,
): RelayError {
  const code = String(error["code"]);
  const message = typeof error["message"] === "string" ? error["message"] : `the relay answered ${code}`;
  const details = asObject(error["details"]);
  if (isRelayErrorCode(code)) return new RelayError(code, message, { details });
  return new RelayError(family ?? "internal", message, { details: { ...details, code } });
}

function foreignAnswer(answer: HttpAnswer, how: string): RelayError {
  const type = answer.headers.get("content-type") ?? "no content type";
  const location = answer.headers.get("location");
  const what =
    location === null
      ? `answered ${answer.status} with ${type} ${quote(answer.text.slice(0, 100).trim())} ${how}`
      : `answered ${answer.status}, a redirect to ${quote(location)}, ${how}`;
  const advice = "is this address really an a2a-relay, or does a proxy stand in between?";
  return new RelayError(codeOfStatus(answer.status) ?? "unavailable", `${answer.url} ${what}; ${advice}`, {
    details: { status: answer.status },
  });
}

/**
 * Only what a proxy in front of a relay means in the same way. Its 404, for example, says nothing about
 * agents or messages.
 */
function codeOfStatus(status: number): RelayErrorCode | undefined {
  switch (status) {
    case 401:
      return "unauthenticated";
    case 403:
      return "permission_denied";
    case 413:
      return "too_large";
    case 429:
      return "resource_exhausted";
    default:
      return undefined;
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Readonly<Record<string, unknown>>;
}

/**
 * The relay answers, but not in this way: an older relay, or a proxy that knows no WebSocket or holds streams back.
 * Another way may be open.
 */
export class TransportBlocked extends RelayError {
  constructor(message: string, options: ErrorOptions = {}) {
    super("unavailable", message, options);
  }
}
