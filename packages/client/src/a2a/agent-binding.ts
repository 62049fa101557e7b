import {
  type A2aAnswer,
  type A2aCall,
  type A2aOperation,
  type A2aRequest,
  a2aRequest,
  type AgentInterface,
  type JsonObject,
  readA2aAnswer,
} from "@a2a-relay/protocol";
import { type CallOptions, toJson } from "../http/http-exchange.ts";
import { createIdempotencyKey } from "../http/idempotency.ts";
import type { A2aHttp, A2aHttpAnswer, A2aHttpRequest } from "./a2a-http.ts";
import { foreignAnswer, valueOf } from "./agent-answer.ts";
import { SseEventSource } from "./sse-event-source.ts";
import { type A2aEventSource, SingleEventSource } from "./stream-event.ts";

export interface A2aCallOptions extends CallOptions {
  /** Makes a repeated send harmless if the agent supports it. */
  readonly idempotencyKey?: string | undefined;
}

export interface A2aOpenOptions extends A2aCallOptions {
  /** Resume after this event, if the agent numbers its events. */
  readonly lastEventId?: string | undefined;
}

export interface StreamLimits {
  readonly idleMs: number;
  readonly charsMax: number;
}

/** Operations that may safely be repeated. */
const READING_OPERATIONS: readonly A2aOperation[] = ["get", "list", "push-get", "push-list", "extended-card"];

/** Calls an agent over one of its interfaces. Params and results are 1.0. */
export class AgentBinding {
  readonly #http: A2aHttp;
  readonly #interface: AgentInterface;
  readonly #limits: StreamLimits;

  constructor(http: A2aHttp, agentInterface: AgentInterface, limits: StreamLimits) {
    this.#http = http;
    this.#interface = agentInterface;
    this.#limits = limits;
  }

  async call(operation: A2aOperation, params: JsonObject, options: A2aCallOptions): Promise<JsonObject> {
    const call = callOf(operation, params, options);
    const isRepeatable = READING_OPERATIONS.includes(operation);
    const request = { ...written(a2aRequest(this.#interface, call)), isRepeatable };
    const answer = await this.#http.ask(request, options);
    return resultOf(readA2aAnswer(this.#interface, call, answer), answer);
  }

  /** One attempt to open a stream. */
  async open(
    operation: "stream" | "subscribe",
    params: JsonObject,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource> {
    const call = callOf(operation, params, options);
    const request = written(a2aRequest(this.#interface, call));
    const answer = await this.#http.open(request, options);
    if ("body" in answer) return this.#events(answer, options);
    const read = readA2aAnswer(this.#interface, call, answer);
    // Agents support one of the two methods, or both.
    if (request.method !== "GET" || !isNoRoute(answer, read)) return single(read, answer);
    const other = await this.#http.open({ ...request, method: "POST" }, options);
    if ("body" in other) return this.#events(other, options);
    return single(readA2aAnswer(this.#interface, call, other), other);
  }

  #events(stream: ConstructorParameters<typeof SseEventSource>[0], { signal }: CallOptions): SseEventSource {
    return new SseEventSource(stream, this.#interface, { ...this.#limits, signal });
  }
}

function callOf(operation: A2aOperation, params: JsonObject, options: A2aOpenOptions): A2aCall {
  const { idempotencyKey, lastEventId } = options;
  return { operation, params, id: createIdempotencyKey(), idempotencyKey, lastEventId };
}

function written({ body, ...request }: A2aRequest): A2aHttpRequest {
  return { ...request, body: body === undefined ? undefined : toJson(body) };
}

function resultOf(read: A2aAnswer, answer: A2aHttpAnswer): JsonObject {
  if ("unreadable" in read) throw foreignAnswer(answer, "instead of A2A");
  return valueOf(read, answer.url).result;
}

/** The answer of an agent that does not stream. */
function single(read: A2aAnswer, answer: A2aHttpAnswer): SingleEventSource {
  return new SingleEventSource(resultOf(read, answer));
}

function isNoRoute({ status }: A2aHttpAnswer, read: A2aAnswer): boolean {
  return status === 405 || (status === 404 && "unreadable" in read);
}
