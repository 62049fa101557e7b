import {
  isRelayErrorCode,
  type Operation,
  quote,
  RelayError,
  type RelayErrorCode,
  type Repeat,
} from "@a2a-relay/protocol";
import { parseRetryAfterMs } from "./retry.ts";

/**
 * Why an attempt failed, and whether the relay acted on it:
 * - `refused`: it answered, and would answer the same again;
 * - `not_done`: it did nothing, so any call may be repeated;
 * - `unknown`: the reply got lost, so only a call that may safely happen twice may be repeated.
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
    if (repeat === "never") return false;
    return this.outcome === "not_done" || (this.outcome === "unknown" && repeat !== "if_not_done");
  }
}

export interface HttpAnswer {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The body as the operation describes it, or a Failure. */
export function readBody(answer: HttpAnswer, { answers }: Operation): unknown {
  if (!isSuccess(answer)) return readFailure(answer);
  const { schema, mediaType } = answers[answer.status] ?? Object.values(answers)[0] ?? {};
  if (mediaType !== undefined) return answer.text;
  const body = parseObject(answer.text);
  const { required = [] } = (schema ?? {}) as { readonly required?: readonly string[] };
  const missing = required.find((member) => body === undefined || !Object.hasOwn(body, member));
  if (body !== undefined && missing === undefined) return body;
  const lack =
    missing === undefined ? "instead of the relay's JSON" : `without the expected ${quote(missing)}`;
  return new Failure(foreignAnswer(answer, lack), "refused");
}

/** Why there is no stream. Errors of the relay (5xx) may be repeated, errors of the caller may not. */
export function readStreamFailure(answer: HttpAnswer): Failure {
  const error = relayError(answer);
  if (error === undefined && answer.status < 500) return foreignStream(answer);
  const failure = readFailure(answer);
  const isRelayFault = answer.status >= 500 && failure.outcome === "refused";
  return isRelayFault ? new Failure(failure.error, "not_done", failure.retryAfterMs) : failure;
}

/** A proxy answered instead of the relay, perhaps only for streams. */
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

/** A full mailbox stays full for longer than a call lasts, so `mailbox_full` counts as refused. */
function outcomeOf(status: number, code: RelayErrorCode): Failure["outcome"] {
  if (status === 503 || (status === 429 && code !== "mailbox_full")) return "not_done";
  // A gateway does not know what the relay did.
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

/** A newer relay may send codes that this client does not know; `family` is the code for those. */
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
 * Only statuses that a proxy in front of a relay uses with the same meaning. Its 404, for example, says nothing about
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

export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Readonly<Record<string, unknown>>;
}

/**
 * The relay answers, but not over this transport: it is older, or a proxy refuses WebSockets or buffers streams.
 * Another transport may work.
 */
export class TransportBlocked extends RelayError {
  constructor(message: string, options: ErrorOptions = {}) {
    super("unavailable", message, options);
  }
}
