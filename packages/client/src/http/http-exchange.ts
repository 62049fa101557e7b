import {
  type AnswerOf,
  HEARTBEAT_HEADER,
  type Operation,
  operations,
  pathOf,
  quote,
  RelayError,
  type Repeat,
  repeatOf,
  type RequestOf,
} from "@a2a-relay/protocol";
import { onAbort, pause } from "./abort.ts";
import { Failure, type HttpAnswer, readBody, readStreamFailure, TransportBlocked } from "./http-answer.ts";
import type { FilledClientOptions } from "./relay-client-options.ts";
import { retryDelayMs } from "./retry.ts";

/** The last argument of every call. An abort rejects with the signal's own reason. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What a request puts into the address of its operation. */
export interface AddressParts {
  /** Before encoding: an id may hold any character. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly query?: object | undefined;
}

interface Call extends AddressParts {
  readonly body?: object | undefined;
  /** Instead of the operation's own. */
  readonly repeat?: Repeat | undefined;
}

/** One attempt to open a stream. */
export interface StreamCall extends AddressParts {
  readonly operation: Operation;
  /** How long the first byte may take. */
  readonly limitMs: number;
}

/** Requests and answers over `fetch`: time limits, retries, and every failure as a RelayError. */
export class HttpExchange {
  readonly #options: FilledClientOptions;

  constructor(options: FilledClientOptions) {
    this.#options = options;
  }

  /** The relay's address without a slash at the end. */
  get url(): string {
    return this.#options.url;
  }

  /** One request of the table, with all its attempts. */
  async call<Entry extends Operation>(
    operation: Entry,
    request: RequestOf<Entry> & Pick<Call, "repeat">,
    options: CallOptions,
  ): Promise<AnswerOf<Entry>> {
    // The client trusts the relay's answers to have the declared shape.
    return (await this.#exchange(operation, request, options)) as AnswerOf<Entry>;
  }

  /** Undefined when the relay says that the stream has ended for good. */
  async stream(call: StreamCall, options: CallOptions): Promise<StreamAnswer | Failure | undefined> {
    const { operation, limitMs } = call;
    const headers = { ...this.#headers(operation), accept: EVENT_STREAM };
    return this.#try(
      { method: "GET", url: this.urlOf(operation, call), headers, limitMs },
      options,
      readStream,
    );
  }

  urlOf(operation: Operation, { params = {}, query }: AddressParts): string {
    return this.#options.url + pathOf(operation, params, encodeSegment) + queryString(query);
  }

  async #exchange(operation: Operation, call: Call, options: CallOptions): Promise<unknown> {
    const body = call.body === undefined ? undefined : toJson(call.body);
    const sent = {
      method: operation.method,
      url: this.urlOf(operation, call),
      headers: this.#headers(operation, body),
      body,
      limitMs: this.#options.timeoutMs + waitMsOf(operation, call),
    };
    const repeat = call.repeat ?? repeatOf(operation, call.body);
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#try(sent, options, readAnswer);
      const result = answer instanceof Failure ? answer : readBody(answer, operation);
      if (!(result instanceof Failure)) return result;
      const delayMs = this.#delayAfter(attempt, repeat, result);
      if (delayMs === undefined) throw result.error;
      await pause(delayMs, options);
    }
  }

  #delayAfter(attempt: number, repeat: Repeat, failure: Failure): number | undefined {
    const { retries, retryDelayMs: firstMs, retryDelayMsMax: maxMs } = this.#options;
    if (!failure.allows(repeat) || attempt > retries) return undefined;
    if (failure.retryAfterMs > maxMs) return undefined;
    return failure.retryAfterMs + retryDelayMs(attempt, { firstMs, maxMs });
  }

  async #try<T>(
    { url, method, headers, body, limitMs }: SentRequest,
    { signal }: CallOptions,
    read: (response: Response, url: string) => Promise<T>,
  ): Promise<T | Failure> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    // AbortSignal.any would leave one dead listener for each request on a long-lived signal.
    const unsubscribe = onAbort(signal, () => controller.abort(signal?.reason));
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, limitMs);
    try {
      const response = await this.#options.fetch(url, {
        method,
        headers,
        signal: controller.signal,
        // A followed redirect would turn a POST into a GET; the error names the new address instead.
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
      return await read(response, url);
    } catch (reason) {
      signal?.throwIfAborted();
      return timedOut
        ? timeoutFailure(`${method} ${url}`, limitMs)
        : networkFailure(this.#options.url, reason);
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }

  #headers({ isSigned = false }: Operation, body?: string): Record<string, string> {
    const { apiKey } = this.#options;
    return {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(apiKey === undefined || isSigned ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }
}

interface SentRequest {
  readonly method: Operation["method"];
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body?: string | undefined;
  readonly limitMs: number;
}

export interface StreamAnswer {
  readonly body: ReadableStream<Uint8Array>;
  /** The relay's heartbeat interval, if it announces one. */
  readonly heartbeatMs: number | undefined;
}

const EVENT_STREAM = "text/event-stream";
/** A timer of more digits would fire at once. */
const HEARTBEAT = /^\d{1,8}$/;

async function readAnswer(response: Response, url: string): Promise<HttpAnswer> {
  return { url, status: response.status, headers: response.headers, text: await response.text() };
}

async function readStream(response: Response, url: string): Promise<StreamAnswer | Failure | undefined> {
  const { status, headers, body } = response;
  if (status === 204) return undefined;
  const isStream = headers.get("content-type")?.startsWith(EVENT_STREAM) === true;
  if (status === 200 && isStream && body !== null) {
    const heartbeat = headers.get(HEARTBEAT_HEADER) ?? "";
    return { body, heartbeatMs: HEARTBEAT.test(heartbeat) ? Number(heartbeat) : undefined };
  }
  return readStreamFailure(await readAnswer(response, url));
}

/** How long the relay may wait before it answers. */
function waitMsOf({ waits = false, durationMsMax = 0 }: Operation, { query, body }: Call): number {
  const { wait_ms: waitMs = 0 }: { readonly wait_ms?: number } = { ...query, ...body };
  return waits ? waitMs : durationMsMax;
}

function encodeSegment(segment: string): string {
  // The URL parser resolves dots even after encoding, so they would silently call another route.
  if (typeof segment === "string" && segment.isWellFormed() && !["", ".", ".."].includes(segment)) {
    return encodeURIComponent(segment);
  }
  throw new RelayError("invalid_argument", `${quote(segment)} is not a usable id`);
}

function queryString(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? "" : `?${parameters}`;
}

export function toJson(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new RelayError("invalid_argument", `the request cannot be written as JSON: ${errorText(cause)}`, {
      cause,
    });
  }
}

function timeoutFailure(what: string, limitMs: number): Failure {
  const message = `${what} got no answer within ${limitMs} ms; the relay is overloaded, or something on the way holds the connection`;
  return new Failure(new LateAnswer(message), "unknown");
}

/** No answer came in time. */
export class LateAnswer extends RelayError {
  constructor(message: string) {
    super("unavailable", message);
  }
}

function networkFailure(relayUrl: string, reason: unknown): Failure {
  const cause = reason instanceof Error && reason.cause !== undefined ? reason.cause : reason;
  const message = `cannot reach the relay at ${relayUrl}: ${errorText(cause)}; is the relay running? Start it with \`a2a-relay serve\`, or give its right address`;
  const error = new RelayError("unavailable", message, { cause: reason });
  return new Failure(error, wasNeverConnected(cause) ? "not_done" : "unknown");
}

// Browsers hide the cause, so there every failure counts as unknown.
const NEVER_CONNECTED = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function wasNeverConnected(cause: unknown): boolean {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && NEVER_CONNECTED.has(code);
}

export function errorText(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  // An AggregateError over several addresses of one host has an empty message.
  if (reason.message !== "") return reason.message;
  return "code" in reason ? String(reason.code) : reason.name;
}

/**
 * Why a transport to a mailbox does not work: the error of a plain request for the mailbox, or TransportBlocked when
 * the plain request succeeds. A WebSocket does not tell why it was refused, and a 404 may come from a relay without
 * streams.
 */
export async function whyBlocked(
  exchange: HttpExchange,
  agentId: string,
  what: string,
  options: { readonly signal: AbortSignal },
): Promise<RelayError> {
  const params = { agent_id: agentId };
  const query = { peek: true, limit: 1 };
  try {
    await exchange.call(operations.mailboxes.read, { params, query, repeat: "never" }, options);
  } catch (reason) {
    options.signal.throwIfAborted();
    return RelayError.from(reason);
  }
  return new TransportBlocked(
    `the relay at ${exchange.url} answers, but ${what}; is there a proxy in between?`,
  );
}
