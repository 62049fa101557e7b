import { assertCleanJson, LIMITS, quote, RelayError } from "@a2a-relay/protocol";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { type Outbound, type OutboundAnswer, OutboundFailure } from "../ports/outbound-http.ts";
import type { PushOutcome } from "../ports/pushes.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";
import { errorOfFailure, readRetryAfter, REASONS } from "./http-push.ts";
import {
  readEnvelope,
  readResult,
  type RemoteOperation,
  type RemoteRequest,
  remoteRequest,
} from "./remote-interface.ts";

export interface RemoteSettings {
  readonly userAgent: string;
  /** Time for the whole answer. */
  readonly pushTimeoutMs: number;
}

export interface RemoteCallOptions {
  /** The same for every attempt. */
  readonly idempotencyKey?: string;
  readonly signal: AbortSignal;
}

/** An agent's answer, in A2A 1.0 and raw. */
export interface RemoteResult {
  readonly result: Members;
  readonly answer: OutboundAnswer;
}

type Members = Readonly<Record<string, unknown>>;

/** Calls remote agents as an A2A client, each in its own dialect. Throws `RemoteFailure`. */
export class RemoteCalls {
  readonly #outbound: Outbound;
  readonly #settings: RemoteSettings;

  constructor(outbound: Outbound, settings: RemoteSettings) {
    this.#outbound = outbound;
    this.#settings = settings;
  }

  async call(
    at: RemoteInterface,
    operation: RemoteOperation,
    params: Members,
    { idempotencyKey, signal }: RemoteCallOptions,
  ): Promise<RemoteResult> {
    const request = requestOf(at, operation, params);
    const key = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const headers = { ...request.headers, ...key };
    const answer = await this.fetch({ ...request, headers }, LIMITS.remoteAnswerBytesMax, signal);
    const body = bodyOf(at, answer);
    try {
      assertCleanJson(body, "answer");
      return { result: readResult(at, operation, body), answer };
    } catch (reason) {
      const { message } = RelayError.from(reason);
      throw new RemoteFailure("refused", `the agent's answer cannot be read: ${message}`, {
        answer,
        cause: reason,
      });
    }
  }

  /** Resolves with any status. */
  async fetch(request: RemoteRequest, answerBytesMax: number, signal: AbortSignal): Promise<OutboundAnswer> {
    try {
      return await this.#outbound.request({
        ...request,
        headers: { "user-agent": this.#settings.userAgent, ...request.headers },
        timeoutMs: this.#settings.pushTimeoutMs,
        answerBytesMax,
        signal,
      });
    } catch (reason) {
      if (!(reason instanceof OutboundFailure)) throw reason;
      throw unansweredFailure(reason, signal);
    }
  }
}

/**
 * `stopped`: the relay ended the request. `failed`: a retry may succeed. `unknown`: it may have arrived. `refused`: a
 * retry would be refused too.
 */
export type RemoteFailureKind = "stopped" | "failed" | "unknown" | "refused";

/** A remote agent gave no usable answer. Every reader may see `reason`; `message` may name the host. */
export class RemoteFailure extends Error {
  override readonly name: string = "RemoteFailure";
  readonly kind: RemoteFailureKind;
  readonly reason: string;
  readonly answer: OutboundAnswer | undefined;
  /** The error that the agent named. */
  readonly error: RelayError | undefined;

  constructor(
    kind: RemoteFailureKind,
    reason: string,
    more: {
      readonly answer?: OutboundAnswer | undefined;
      readonly error?: RelayError | undefined;
      readonly message?: string;
      readonly cause?: unknown;
    } = {},
  ) {
    super(more.message ?? reason, { cause: more.cause });
    this.kind = kind;
    this.reason = reason;
    this.answer = more.answer;
    this.error = more.error;
  }
}

/** The outcome for a message that the agent did not take. */
export function outcomeOf(
  { kind, reason, answer }: RemoteFailure,
  { duplicateSafety }: Pick<DeliveryRecord, "duplicateSafety">,
): PushOutcome {
  const retryAfter = readRetryAfter(answer?.headers["retry-after"]);
  if (kind === "refused") return { kind: "refused", reason, retryAfter, isFinal: true };
  if (kind === "unknown" && duplicateSafety !== "idempotent") {
    return { kind: "unknown", reason: unknownReason(reason) };
  }
  return { kind: "failed", reason, retryAfter };
}

export function unknownReason(reason: string): string {
  return `${reason}; it may have arrived, and is not sent again by itself, as its sender did not call it idempotent`;
}

/** For a status that alone says that the request failed. */
export function statusFailure(answer: OutboundAnswer): RemoteFailure {
  const { status } = answer;
  const reason = `the agent answered ${status}`;
  if (isBroken(answer)) return new RemoteFailure("unknown", reason, { answer });
  if (status >= 300 && status < 400) {
    return new RemoteFailure("failed", `${reason}; redirects are not followed, use the new address`, {
      answer,
    });
  }
  const isRefused = status >= 400 && status < 500 && !TEMPORARY_STATUSES.has(status);
  return new RemoteFailure(isRefused ? "refused" : "failed", reason, { answer });
}

/** The 4xx that are about the agent's state, not about the request. */
const TEMPORARY_STATUSES = new Set([408, 425, 429]);
/** The only 5xx that says that the agent did nothing. The others may come during or after the work. */
const UNAVAILABLE = 503;
const SERVER_ERRORS = 500;

/** Errors of another relay after which a retry may succeed. */
const TEMPORARY_CODES = new Set(["unavailable", "resource_exhausted", "mailbox_full", "storage_full"]);
/** They say no more than the status: a proxy before the agent sends them too. */
const UNSPECIFIC_CODES = new Set(["internal", "unavailable"]);
const ERROR_CHARS_MAX = 500;
const QUOTED_CHARS_MAX = 60;

function requestOf(at: RemoteInterface, operation: RemoteOperation, params: Members): RemoteRequest {
  try {
    return remoteRequest(at, operation, params);
  } catch (reason) {
    if (!(reason instanceof RelayError)) throw reason;
    throw new RemoteFailure("refused", reason.message);
  }
}

function bodyOf(at: RemoteInterface, answer: OutboundAnswer): unknown {
  const envelope = readEnvelope(at, answer);
  if ("body" in envelope) return envelope.body;
  if ("error" in envelope) throw namedFailure(envelope.error, answer);
  throw envelope.unreadable === "status" ? statusFailure(answer) : foreignFailure(answer);
}

function unansweredFailure(failure: OutboundFailure, signal: AbortSignal): RemoteFailure {
  const { code, mayHaveArrived } = failure;
  const isStopped = code === "aborted" && signal.aborted;
  const kind = isStopped ? "stopped" : "failed";
  return new RemoteFailure(mayHaveArrived ? "unknown" : kind, REASONS[code], {
    message: errorOfFailure(failure),
    cause: failure,
  });
}

/** For an error that the agent named. */
function namedFailure(error: RelayError, answer: OutboundAnswer): RemoteFailure {
  const text = error.message.slice(0, ERROR_CHARS_MAX).toWellFormed();
  const reason = `the agent answered: ${text}`;
  if (isBroken(answer) && UNSPECIFIC_CODES.has(error.code)) {
    return new RemoteFailure("unknown", reason, { answer, error });
  }
  const isTemporary =
    TEMPORARY_CODES.has(error.code) || TEMPORARY_STATUSES.has(answer.status) || answer.status === UNAVAILABLE;
  if (isTemporary) return new RemoteFailure("failed", reason, { answer, error });
  return new RemoteFailure("refused", `the agent refused it: ${text}`, { answer, error });
}

function isBroken({ status }: OutboundAnswer): boolean {
  return status >= SERVER_ERRORS && status !== UNAVAILABLE;
}

/** For an answer that is not A2A. */
function foreignFailure(answer: OutboundAnswer): RemoteFailure {
  const { status, text } = answer;
  const isCut = Buffer.byteLength(text) >= LIMITS.remoteAnswerBytesMax - 4;
  const what = isCut
    ? `more than ${LIMITS.remoteAnswerBytesMax} bytes`
    : quote(text.slice(0, QUOTED_CHARS_MAX));
  const reason = `the agent answered ${status} with ${what}, which is not A2A; is this an agent's address?`;
  return new RemoteFailure("refused", reason, { answer });
}
