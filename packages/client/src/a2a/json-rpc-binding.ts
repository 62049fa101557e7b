import {
  A2A_DIALECTS,
  type A2aDialect,
  A2aError,
  type A2aOperation,
  fromJsonRpcError,
  quote,
} from "@a2a-relay/protocol";
import { toJson } from "../http/http-exchange.ts";
import { createIdempotencyKey } from "../http/idempotency.ts";
import type { ServerSentEvent } from "../http/sse-parser.ts";
import type { A2aHttp, A2aHttpAnswer, A2aHttpRequest } from "./a2a-http.ts";
import { foreignAnswer, invalidAgentResponse, readEvent, readResult } from "./agent-answer.ts";
import { asObject, parseObject } from "../http/http-answer.ts";
import {
  type A2aCallOptions,
  type A2aOpenOptions,
  type A2aParams,
  type AgentBinding,
  callHeaders,
  READING_OPERATIONS,
  type StreamLimits,
} from "./agent-binding.ts";
import { type A2aEventSource, SingleEventSource } from "./stream-event.ts";
import type { AgentInterface } from "./agent-interface.ts";
import { SseEventSource } from "./sse-event-source.ts";

/** A2A over JSON-RPC 2.0. */
export class JsonRpcBinding implements AgentBinding {
  readonly #http: A2aHttp;
  readonly #interface: AgentInterface;
  readonly #dialect: A2aDialect;
  readonly #limits: StreamLimits;

  constructor(http: A2aHttp, agentInterface: AgentInterface, limits: StreamLimits) {
    this.#http = http;
    this.#interface = agentInterface;
    this.#dialect = A2A_DIALECTS[agentInterface.version];
    this.#limits = limits;
  }

  async call(operation: A2aOperation, params: A2aParams, options: A2aCallOptions): Promise<A2aParams> {
    const id = createIdempotencyKey();
    const isRepeatable = READING_OPERATIONS.includes(operation);
    const request = { ...this.#request(operation, params, { id, options }), isRepeatable };
    const answer = await this.#http.ask(request, options);
    return readResult(this.#dialect, operation, readAnswer(answer, id), answer.url);
  }

  async open(
    operation: "stream" | "subscribe",
    params: A2aParams,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource> {
    const id = createIdempotencyKey();
    const request = this.#request(operation, params, { id, options, isStream: true });
    const answer = await this.#http.open(request, options);
    if ("body" in answer) {
      const readData = (event: ServerSentEvent): unknown => readEnvelope(event, answer.url);
      return new SseEventSource(answer, this.#dialect, readData, { ...this.#limits, signal: options.signal });
    }
    const result = readAnswer(answer, id);
    return new SingleEventSource(readEvent(this.#dialect, result, { url: answer.url, id: "" }));
  }

  #request(
    operation: A2aOperation,
    params: A2aParams,
    {
      id,
      options,
      isStream = false,
    }: { readonly id: string; readonly options: A2aOpenOptions; readonly isStream?: boolean },
  ): A2aHttpRequest {
    const { url, version, tenant } = this.#interface;
    const method = this.#dialect.methods[operation];
    if (method === undefined) {
      const message = `A2A ${version} over JSON-RPC has no ${quote(operation)}, and ${url} speaks nothing newer`;
      throw new A2aError("UnsupportedOperation", message);
    }
    const asked = {
      ...params,
      ...(tenant === undefined ? {} : { tenant }),
      // In 0.1 the caller names the task.
      ...(version === "0.1" && params["message"] !== undefined ? { clientTaskId: id } : {}),
    };
    return {
      method: "POST",
      url,
      headers: {
        ...callHeaders(version, options),
        accept: isStream ? "text/event-stream, application/json" : "application/json",
        "content-type": "application/json",
      },
      body: toJson({ jsonrpc: "2.0", id, method, params: this.#dialect.writeParams(operation, asked) }),
    };
  }
}

/** JSON-RPC errors come with 200 or any other status. */
function readAnswer(answer: A2aHttpAnswer, id: string): unknown {
  const envelope = parseObject(answer.text);
  const error = asObject(envelope?.["error"]);
  if (error !== undefined && typeof error["code"] === "number") throw fromJsonRpcError(error);
  const isSuccess = answer.status >= 200 && answer.status < 300;
  if (!isSuccess || envelope === undefined || !Object.hasOwn(envelope, "result")) {
    throw foreignAnswer(answer, "instead of an answer of JSON-RPC");
  }
  // Detects answers that a cache or proxy mixed up. Not all agents return the id.
  const answered = envelope["id"];
  if (answered != null && answered !== id) {
    throw invalidAgentResponse(
      `${answer.url} answered another request: id ${quote(answered)}, asked with ${quote(id)}`,
    );
  }
  return envelope["result"];
}

function readEnvelope({ data }: ServerSentEvent, url: string): unknown {
  const envelope = parseObject(data);
  const error = asObject(envelope?.["error"]);
  if (error !== undefined) throw fromJsonRpcError(error);
  if (envelope !== undefined && Object.hasOwn(envelope, "result")) return envelope["result"];
  throw invalidAgentResponse(`${url} sent the event ${quote(data)}, which is no answer of JSON-RPC`);
}
