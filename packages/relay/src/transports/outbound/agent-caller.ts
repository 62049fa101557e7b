import {
  type A2aCall,
  A2aError,
  type A2aRequest,
  a2aRequest,
  type AgentInterface,
  assertCleanJson,
  type JsonObject,
  LIMITS,
  quote,
  readA2aAnswer,
  RelayError,
} from "@a2a-relay/protocol";
import {
  type AttemptRecord,
  RemoteFailure,
  type RemoteFailureKind,
  type RemoteFailureOptions,
} from "../../core/ports/outbound.ts";
import { OutboundFailure } from "../egress/http-client.ts";
import type { OutboundExchange, TimedAnswer } from "./outbound-exchange.ts";
import { errorOfFailure, isRefusal, REASONS, TEMPORARY_STATUSES } from "./push-answer.ts";

/** An agent's answer, in A2A 1.0 and as it is recorded. */
export interface AgentResult {
  readonly result: JsonObject;
  readonly recorded: AttemptRecord;
}

/** HTTP matches answers to requests, so the id needs not be unique. */
const REQUEST_ID = "1";
/** The only 5xx that says that the agent did nothing. The others may come during or after the work. */
const UNAVAILABLE = 503;
const SERVER_ERRORS = 500;
const NOT_FOUND = 404;

/** Errors of another relay after which a retry may succeed. */
const TEMPORARY_CODES = new Set(["unavailable", "resource_exhausted", "mailbox_full", "storage_full"]);
/** They say no more than the status: a proxy before the agent sends them too. */
const UNSPECIFIC_CODES = new Set(["internal", "unavailable"]);
const ERROR_CHARS_MAX = 500;
const QUOTED_CHARS_MAX = 60;

/** Calls remote agents as an A2A client, each in its own dialect. Throws `RemoteFailure`. */
export class AgentCaller {
  readonly #exchange: OutboundExchange;

  constructor(exchange: OutboundExchange) {
    this.#exchange = exchange;
  }

  async call(at: AgentInterface, asked: Omit<A2aCall, "id">, signal: AbortSignal): Promise<AgentResult> {
    const call = { ...asked, id: REQUEST_ID };
    const answer = await this.fetch(requestOf(at, call), LIMITS.remoteAnswerBytesMax, signal);
    const read = readA2aAnswer(at, call, answer);
    if ("error" in read) throw namedFailure(read.error, answer);
    if ("unreadable" in read)
      throw read.unreadable === "status" ? statusFailure(answer) : foreignFailure(answer);
    if ("invalid" in read) {
      throw answeredFailure("refused", `the agent ${read.invalid}`, answer, { cause: read.cause });
    }
    try {
      assertCleanJson(read.result, "answer");
      return { result: read.result, recorded: recordOf(answer) };
    } catch (cause) {
      const { message } = RelayError.from(cause);
      throw answeredFailure("refused", `the agent's answer cannot be read: ${message}`, answer, { cause });
    }
  }

  /** Resolves with any status. */
  async fetch(
    { body, ...request }: A2aRequest,
    answerBytesMax: number,
    signal: AbortSignal,
  ): Promise<TimedAnswer> {
    try {
      const written = body === undefined ? {} : { body: JSON.stringify(body) };
      return await this.#exchange.request({ ...request, ...written, answerBytesMax, signal });
    } catch (reason) {
      if (!(reason instanceof OutboundFailure)) throw reason;
      throw unansweredFailure(reason, signal);
    }
  }
}

/** For a status that alone says that the request failed. */
export function statusFailure(answer: TimedAnswer): RemoteFailure {
  const { status } = answer;
  const reason = `the agent answered ${status}`;
  if (isBroken(answer)) return answeredFailure("unknown", reason, answer);
  if (status >= 300 && status < 400) {
    return answeredFailure("failed", `${reason}; redirects are not followed, use the new address`, answer);
  }
  return answeredFailure(isRefusal(status) ? "refused" : "failed", reason, answer);
}

export function answeredFailure(
  kind: RemoteFailureKind,
  reason: string,
  answer: TimedAnswer,
  more: RemoteFailureOptions = {},
): RemoteFailure {
  const { error } = more;
  const isNotFound =
    error instanceof A2aError
      ? error.a2a === "TaskNotFound"
      : error?.code === "not_found" || answer.status === NOT_FOUND;
  const { retryAfterMs } = answer;
  return new RemoteFailure(kind, reason, { ...more, recorded: recordOf(answer), retryAfterMs, isNotFound });
}

/** An id that no address can hold came from the agent. */
function requestOf(at: AgentInterface, call: A2aCall): A2aRequest {
  try {
    return a2aRequest(at, call);
  } catch (reason) {
    if (!(reason instanceof RelayError)) throw reason;
    throw new RemoteFailure("refused", reason.message);
  }
}

function unansweredFailure(failure: OutboundFailure, signal: AbortSignal): RemoteFailure {
  const { code, mayHaveArrived } = failure;
  const isStopped = code === "aborted" && signal.aborted;
  const kind = isStopped ? "stopped" : "failed";
  return new RemoteFailure(mayHaveArrived ? "unknown" : kind, REASONS[code], {
    recorded: { status: null, error: errorOfFailure(failure), answer: null },
    cause: failure,
  });
}

/** For an error that the agent named. */
function namedFailure(error: RelayError, answer: TimedAnswer): RemoteFailure {
  // The reason is kept, and a store may be unable to keep U+0000.
  const text = error.message.slice(0, ERROR_CHARS_MAX).toWellFormed().replaceAll("\0", "\uFFFD");
  const reason = `the agent answered: ${text}`;
  const { status } = answer;
  if (isBroken(answer) && UNSPECIFIC_CODES.has(error.code)) {
    return answeredFailure("unknown", reason, answer, { error });
  }
  const isTemporary =
    TEMPORARY_CODES.has(error.code) || TEMPORARY_STATUSES.has(status) || status === UNAVAILABLE;
  if (isTemporary) return answeredFailure("failed", reason, answer, { error });
  return answeredFailure("refused", `the agent refused it: ${text}`, answer, { error });
}

function isBroken({ status }: TimedAnswer): boolean {
  return status >= SERVER_ERRORS && status !== UNAVAILABLE;
}

/** For an answer that is not A2A. */
function foreignFailure(answer: TimedAnswer): RemoteFailure {
  const { status, text } = answer;
  const isCut = Buffer.byteLength(text) >= LIMITS.remoteAnswerBytesMax - 4;
  const what = isCut
    ? `more than ${LIMITS.remoteAnswerBytesMax} bytes`
    : quote(text.slice(0, QUOTED_CHARS_MAX));
  const reason = `the agent answered ${status} with ${what}, which is not A2A; is this an agent's address?`;
  return answeredFailure("refused", reason, answer);
}

function recordOf({ status, text }: TimedAnswer): AttemptRecord {
  const bytes = Buffer.from(text.slice(0, LIMITS.pushAnswerBytesMax)).subarray(0, LIMITS.pushAnswerBytesMax);
  // `stream` makes the decoder leave out a character that is cut.
  return { status, error: null, answer: new TextDecoder().decode(bytes, { stream: true }) };
}
