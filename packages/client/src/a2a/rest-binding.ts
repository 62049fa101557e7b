import {
  A2A_DIALECTS,
  type A2aDialect,
  A2aError,
  type A2aOperation,
  fromRestError,
  quote,
  V03_REST_DIALECT,
} from "@a2a-relay/protocol";
import { toJson } from "../http-exchange.ts";
import type { ServerSentEvent } from "../sse-parser.ts";
import type { A2aHttp, A2aHttpAnswer, A2aHttpRequest } from "./a2a-http.ts";
import { asObject, foreignAnswer, invalidAgentResponse, parseObject } from "./agent-answer.ts";
import {
  type A2aCallOptions,
  type A2aEventSource,
  type A2aOpenOptions,
  type A2aParams,
  type AgentBinding,
  READING_OPERATIONS,
} from "./agent-binding.ts";
import type { AgentInterface } from "./agent-interface.ts";
import { readEvent, readResult } from "./agent-result.ts";
import { callHeaders, type StreamLimits } from "./call-headers.ts";
import { REST_ROUTES, restUrl } from "./rest-route.ts";
import { SingleEventSource, SseEventSource } from "./sse-event-source.ts";

/** A2A as HTTP+JSON: one address for each thing that can be asked. */
export class RestBinding implements AgentBinding {
  readonly #http: A2aHttp;
  readonly #interface: AgentInterface;
  readonly #dialect: A2aDialect;
  readonly #limits: StreamLimits;

  constructor(http: A2aHttp, agentInterface: AgentInterface, limits: StreamLimits) {
    this.#http = http;
    this.#interface = agentInterface;
    this.#dialect = agentInterface.version === "1.0" ? A2A_DIALECTS["1.0"] : V03_REST_DIALECT;
    this.#limits = limits;
  }

  async call(operation: A2aOperation, params: A2aParams, options: A2aCallOptions): Promise<A2aParams> {
    const isRepeatable = READING_OPERATIONS.includes(operation);
    const request = { ...this.#request(operation, params, options), isRepeatable };
    const answer = await this.#http.ask(request, options);
    return readResult(this.#dialect, operation, readAnswer(answer), answer.url);
  }

  async open(
    operation: "stream" | "subscribe",
    params: A2aParams,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource> {
    const request = this.#request(operation, params, options);
    const accept = "text/event-stream, application/a2a+json, application/json";
    let answer = await this.#http.open({ ...request, headers: { ...request.headers, accept } }, options);
    // The text of the specification says POST and its protocol buffers say GET; agents heed one or both.
    if (operation === "subscribe" && !("body" in answer) && isNoRoute(answer)) {
      const { url, headers } = request;
      answer = await this.#http.open({ method: "POST", url, headers: { ...headers, accept } }, options);
    }
    const { url } = answer;
    if ("body" in answer) {
      const readData = (event: ServerSentEvent): unknown => readEventData(event, url);
      return new SseEventSource(answer, this.#dialect, readData, { ...this.#limits, signal: options.signal });
    }
    return new SingleEventSource(readEvent(this.#dialect, readAnswer(answer), { url, id: "" }));
  }

  #request(operation: A2aOperation, params: A2aParams, options: A2aOpenOptions): A2aHttpRequest {
    const { version, url } = this.#interface;
    const { method, hasBody } = REST_ROUTES[operation];
    if (operation === "list" && version !== "1.0") {
      const message = `A2A ${version} over HTTP+JSON has no ${quote(operation)}, and ${url} speaks nothing newer`;
      throw new A2aError("UnsupportedOperation", message);
    }
    const body = hasBody ? toJson(asObject(this.#dialect.writeParams(operation, params)) ?? {}) : undefined;
    return {
      method,
      url: restUrl(this.#interface, operation, params),
      headers: {
        ...callHeaders(version, options),
        accept: "application/a2a+json, application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body,
    };
  }
}

function readAnswer(answer: A2aHttpAnswer): unknown {
  const body = parseObject(answer.text);
  if (answer.status < 200 || answer.status > 299) {
    if (body === undefined || !isRestError(body)) throw foreignAnswer(answer, "instead of A2A");
    throw fromRestError(answer.status, body);
  }
  if (answer.status === 204 || answer.text.trim() === "") return {};
  if (body === undefined) throw foreignAnswer(answer, "instead of A2A");
  return body;
}

/** 1.0 has `{"error":{…}}`, 0.3 the error itself. */
function isRestError(body: Readonly<Record<string, unknown>>): boolean {
  const error = asObject(body["error"]) ?? body;
  return error["code"] !== undefined && typeof error["message"] === "string";
}

function isNoRoute(answer: A2aHttpAnswer): boolean {
  if (answer.status !== 404 && answer.status !== 405) return false;
  const body = parseObject(answer.text);
  return answer.status === 405 || body === undefined || !isRestError(body);
}

function readEventData(event: ServerSentEvent, url: string): unknown {
  const data = parseObject(event.data);
  if (data === undefined) {
    throw invalidAgentResponse(`${url} sent the event ${quote(event.data)}, which is no JSON object`);
  }
  if ((event.event === "error" || asObject(data["error"]) !== undefined) && isRestError(data)) {
    const status = Number((asObject(data["error"]) ?? data)["code"]);
    throw fromRestError(status >= 400 && status <= 599 ? status : 500, data);
  }
  return data;
}
