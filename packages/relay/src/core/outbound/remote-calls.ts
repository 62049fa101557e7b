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
import {
  foreignFailure,
  RemoteFailure,
  saidFailure,
  statusFailure,
  unansweredFailure,
} from "./remote-failure.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";
import { type RemoteOperation, restRoute } from "./remote-route.ts";

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
