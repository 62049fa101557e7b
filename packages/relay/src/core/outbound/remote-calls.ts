import {
  A2A_DIALECTS,
  type A2aDialect,
  assertCleanJson,
  fromJsonRpcError,
  fromRestError,
  LIMITS,
  quote,
  RelayError,
  V03_REST_DIALECT,
} from "@a2a-relay/protocol";
import {
  type Outbound,
  type OutboundAnswer,
  OutboundFailure,
  type OutboundRequest,
} from "../ports/outbound-http.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";
import { type RemoteOperation, restRoute } from "./remote-interface.ts";
import { errorOfFailure, type PushOutcome, REASONS } from "./push-outcome.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";

export interface RemoteSettings {
  readonly userAgent: string;
  /** How long an agent may take to answer. */
  readonly pushTimeoutMs: number;
}

export interface RemoteCallOptions {
  /** The same for every attempt, for agents that heed it. */
  readonly idempotencyKey?: string;
  readonly signal: AbortSignal;
}

/** What an agent answered: in A2A 1.0, and as it came. */
export interface RemoteResult {
  readonly result: Members;
  readonly answer: OutboundAnswer;
}

type Members = Readonly<Record<string, unknown>>;
type Request = Pick<OutboundRequest, "method" | "url" | "headers" | "body">;

/** Asks agents elsewhere as any A2A client would, each in its own dialect. Throws `RemoteFailure`. */
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
    options: RemoteCallOptions,
  ): Promise<RemoteResult> {
    const dialect = dialectOf(at);
    const request =
      at.binding === "JSONRPC"
        ? rpcRequest(at, dialect, operation, params)
        : restRequest(at, dialect, operation, params);
    const headers = {
      ...request.headers,
      ...(at.dialect === "1.0" ? { "a2a-version": "1.0" } : {}),
      ...(options.idempotencyKey === undefined ? {} : { "idempotency-key": options.idempotencyKey }),
    };
    const answer = await this.fetch({ ...request, headers }, LIMITS.remoteAnswerBytesMax, options.signal);
    const body = at.binding === "JSONRPC" ? readRpc(answer) : readRest(answer);
    try {
      assertCleanJson(body, "answer");
      return { result: dialect.readResult(operation, body), answer };
    } catch (reason) {
      const { message } = RelayError.from(reason);
      throw new RemoteFailure("refused", `the agent's answer cannot be read: ${message}`, {
        answer,
        cause: reason,
      });
    }
  }

  /** Any status is an answer. */
  async fetch(request: Request, answerBytesMax: number, signal: AbortSignal): Promise<OutboundAnswer> {
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

function dialectOf({ binding, dialect }: RemoteInterface): A2aDialect {
  return binding === "HTTP+JSON" && dialect !== "1.0" ? V03_REST_DIALECT : A2A_DIALECTS[dialect];
}

function rpcRequest(
  at: RemoteInterface,
  dialect: A2aDialect,
  operation: RemoteOperation,
  params: Members,
): Request {
  const asked = at.a2aTenant === null ? params : { ...params, tenant: at.a2aTenant };
  const method = dialect.methods[operation];
  const call = { jsonrpc: "2.0", id: "1", method, params: dialect.writeParams(operation, asked) };
  const headers = { accept: "application/json", "content-type": "application/json" };
  return { method: "POST", url: at.url, headers, body: JSON.stringify(call) };
}

function restRequest(
  at: RemoteInterface,
  dialect: A2aDialect,
  operation: RemoteOperation,
  params: Members,
): Request {
  const route = restRoute(at, operation, params);
  const accept = { accept: "application/a2a+json, application/json" };
  if (route.method === "GET") return { ...route, headers: accept };
  const body = JSON.stringify(dialect.writeParams(operation, params));
  return { ...route, headers: { ...accept, "content-type": "application/json" }, body };
}

/** Errors of JSON-RPC come with 200 or with any other status. */
function readRpc(answer: OutboundAnswer): unknown {
  const envelope = parseMembers(answer.text);
  const error = envelope?.["error"];
  if (isMembers(error) && typeof error["code"] === "number")
    throw saidFailure(fromJsonRpcError(error), answer);
  if (!isSuccess(answer)) throw statusFailure(answer);
  if (envelope !== undefined && Object.hasOwn(envelope, "result")) return envelope["result"];
  throw foreignFailure(answer, whatCame(answer));
}

/** Errors of 1.0 are in `error`, those of 0.3 are the body. */
function readRest(answer: OutboundAnswer): unknown {
  const body = parseMembers(answer.text);
  if (!isSuccess(answer)) {
    const error = isMembers(body?.["error"]) ? body["error"] : body;
    if (typeof error?.["message"] !== "string") throw statusFailure(answer);
    throw saidFailure(fromRestError(answer.status, body), answer);
  }
  if (body !== undefined) return body;
  throw foreignFailure(answer, whatCame(answer));
}

function isSuccess({ status }: OutboundAnswer): boolean {
  return status >= 200 && status < 300;
}

const SHOWN_CHARS = 60;

function whatCame({ text }: OutboundAnswer): string {
  const isCut = Buffer.byteLength(text) >= LIMITS.remoteAnswerBytesMax - 4;
  return isCut ? `more than ${LIMITS.remoteAnswerBytesMax} bytes` : quote(text.slice(0, SHOWN_CHARS));
}

export function parseMembers(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isMembers(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * `stopped`: we gave it up ourselves. `failed`: it was not taken, and may be some other time. `unknown`: it may have
 * been taken. `refused`: it was not taken, and will not be.
 */
export type RemoteFailureKind = "stopped" | "failed" | "unknown" | "refused";

/** An agent elsewhere did not answer as it should. `reason` is for everybody, `message` may name the host. */
export class RemoteFailure extends Error {
  override readonly name: string = "RemoteFailure";
  readonly kind: RemoteFailureKind;
  readonly reason: string;
  /** Undefined where there was none. */
  readonly answer: OutboundAnswer | undefined;
  /** What the agent itself named, in its own words. */
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

/** There was no answer. */
export function unansweredFailure(failure: OutboundFailure, signal: AbortSignal): RemoteFailure {
  const { code, mayHaveArrived } = failure;
  const isStopped = code === "aborted" && signal.aborted;
  const kind = isStopped ? "stopped" : "failed";
  return new RemoteFailure(mayHaveArrived ? "unknown" : kind, REASONS[code], {
    message: errorOfFailure(failure),
    cause: failure,
  });
}

/** Of 4xx, those that are about the agent and its time, and not about what it was sent. */
const TROUBLED = new Set([408, 425, 429]);
/** Of 5xx, the one that says that nothing was begun. All others may come from the middle of the work, or after it. */
const UNAVAILABLE = 503;
const SERVER_ERRORS = 500;

/** An answer that says by its status alone that it is none. */
export function statusFailure(answer: OutboundAnswer): RemoteFailure {
  const { status } = answer;
  const reason = `the agent answered ${status}`;
  if (isBroken(answer)) return new RemoteFailure("unknown", reason, { answer });
  if (status >= 300 && status < 400) {
    return new RemoteFailure("failed", `${reason}; redirects are not followed, use the new address`, {
      answer,
    });
  }
  const isRefused = status >= 400 && status < 500 && !TROUBLED.has(status);
  return new RemoteFailure(isRefused ? "refused" : "failed", reason, { answer });
}

/** What passes, as another relay says it. */
const PASSING = new Set(["unavailable", "resource_exhausted", "mailbox_full", "storage_full"]);
/** No more than the status says too: whoever is in front of the agent has such words as well. */
const SAYS_NOTHING = new Set(["internal", "unavailable"]);
const WORDS_CHARS = 500;

/** An error that the agent itself has put into words. */
export function saidFailure(error: RelayError, answer: OutboundAnswer): RemoteFailure {
  const words = error.message.slice(0, WORDS_CHARS).toWellFormed();
  const said = `the agent answered: ${words}`;
  if (isBroken(answer) && SAYS_NOTHING.has(error.code)) {
    return new RemoteFailure("unknown", said, { answer, error });
  }
  const isPassing = PASSING.has(error.code) || TROUBLED.has(answer.status) || answer.status === UNAVAILABLE;
  if (isPassing) return new RemoteFailure("failed", said, { answer, error });
  return new RemoteFailure("refused", `the agent refused it: ${words}`, { answer, error });
}

function isBroken({ status }: OutboundAnswer): boolean {
  return status >= SERVER_ERRORS && status !== UNAVAILABLE;
}

/** Somebody answered, and not as an agent does. It is asked nothing more. */
export function foreignFailure(answer: OutboundAnswer, what: string): RemoteFailure {
  const reason = `the agent answered ${answer.status} with ${what}, which is not A2A; is this an agent's address?`;
  return new RemoteFailure("refused", reason, { answer });
}

/** What becomes of a message that an agent elsewhere did not answer as it should. */
export function outcomeOf(
  { kind, reason, answer }: RemoteFailure,
  { duplicateSafety }: Pick<DeliveryRecord, "duplicateSafety">,
): PushOutcome {
  const retryAfter = answer?.headers["retry-after"];
  if (kind === "refused") return { kind: "refused", reason, retryAfter, isFinal: true };
  if (kind === "unknown" && duplicateSafety !== "idempotent") {
    return { kind: "unknown", reason: unknownReason(reason) };
  }
  return { kind: "failed", reason, retryAfter };
}

export function unknownReason(reason: string): string {
  return `${reason}; it may have arrived, and is not sent again by itself, as its sender did not call it idempotent`;
}
