import {
  A2A_DIALECTS,
  type A2aDialect,
  A2aError,
  type A2aOperation,
  fromRestError,
  quote,
  RelayError,
  V03_REST_DIALECT,
} from "@a2a-relay/protocol";
import { toJson } from "../http/http-exchange.ts";
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

/** A2A over HTTP+JSON. */
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
    // The text of the specification says POST, its protocol buffers say GET, and agents support one or both.
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

interface RestRoute {
  readonly method: A2aHttpRequest["method"];
  /** Without the `/v1` of 0.3. `id` returns an encoded parameter. */
  readonly path: (id: (name: string) => string) => string;
  readonly hasBody: boolean;
}

const PUSH = (id: (name: string) => string): string => `/tasks/${id("taskId")}/pushNotificationConfigs`;

export const REST_ROUTES: Readonly<Record<A2aOperation, RestRoute>> = {
  send: { method: "POST", path: () => "/message:send", hasBody: true },
  stream: { method: "POST", path: () => "/message:stream", hasBody: true },
  get: { method: "GET", path: (id) => `/tasks/${id("id")}`, hasBody: false },
  list: { method: "GET", path: () => "/tasks", hasBody: false },
  cancel: { method: "POST", path: (id) => `/tasks/${id("id")}:cancel`, hasBody: true },
  subscribe: { method: "GET", path: (id) => `/tasks/${id("id")}:subscribe`, hasBody: false },
  "push-create": { method: "POST", path: PUSH, hasBody: true },
  "push-get": { method: "GET", path: (id) => `${PUSH(id)}/${id("id")}`, hasBody: false },
  "push-list": { method: "GET", path: PUSH, hasBody: false },
  "push-delete": { method: "DELETE", path: (id) => `${PUSH(id)}/${id("id")}`, hasBody: false },
  "extended-card": { method: "GET", path: () => "/extendedAgentCard", hasBody: false },
};

/** Parameters of the path, which the query must not repeat. */
const IN_PATH = ["id", "taskId", "tenant"];

export function restUrl(
  { url, version, tenant }: AgentInterface,
  operation: A2aOperation,
  params: A2aParams,
): string {
  const route = REST_ROUTES[operation];
  const address = new URL(url);
  const base = address.pathname.replace(/\/+$/, "");
  const id = (name: string): string => encodeId(params[name]);
  if (version === "1.0") {
    address.pathname = base + (tenant === undefined ? "" : `/${encodeId(tenant)}`) + route.path(id);
  } else {
    // Some cards of 0.3 have an address with /v1, some without.
    const path = operation === "extended-card" ? "/card" : route.path(id);
    address.pathname = (base.endsWith("/v1") ? base : `${base}/v1`) + path;
  }
  if (route.hasBody) return address.href;
  for (const [name, value] of Object.entries(params)) {
    if (IN_PATH.includes(name) || value === undefined) continue;
    address.searchParams.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return address.href;
}

function encodeId(id: unknown): string {
  // The URL parser resolves dots even after encoding, so they would silently call another route.
  if (typeof id === "string" && id.isWellFormed() && !["", ".", ".."].includes(id))
    return encodeURIComponent(id);
  throw new RelayError("invalid_argument", `${quote(id)} is not a usable id`);
}
