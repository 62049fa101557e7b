import { quote, RelayError } from "@a2a-relay/protocol";
import { Failure, type HttpAnswer, readJson, readText } from "./http-answer.ts";
import { onAbort } from "./on-abort.ts";
import { pause } from "./pause.ts";
import type { FilledClientOptions } from "./relay-client-options.ts";
import { retryDelayMs } from "./retry-delay.ts";

/** The last argument of everything that waits. An abort rejects with the signal's own reason. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The segments of a path, as they are before encoding: an id may hold anything. */
export type Path = readonly string[];

/** One request, whatever the number of tries it takes. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: Path;
  readonly query?: object | undefined;
  readonly body?: object | undefined;
  /**
   * When a failed try may be followed by another: `always` for what may happen twice without harm,
   * `if_not_done` for what may not, `never` for questions about this very moment.
   */
  readonly repeat: "always" | "if_not_done" | "never";
  /** How long the relay itself may hold the answer back. */
  readonly waitMs?: number | undefined;
}

/** Requests and answers over `fetch`: time limits, tries, and every failure as one RelayError. */
export class HttpExchange {
  readonly #options: FilledClientOptions;

  constructor(options: FilledClientOptions) {
    this.#options = options;
  }

  /** `member` is one that a true answer has; it tells the relay from whatever else listens at an address. */
  async json<T>(call: Call, member: string, options: CallOptions): Promise<T> {
    // The relay's answers are trusted to have the shape that the protocol package declares.
    return (await this.#exchange(call, options, (answer) => readJson(answer, member))) as T;
  }

  text(call: Call, options: CallOptions): Promise<string> {
    return this.#exchange(call, options, readText);
  }

  async #exchange<T>(
    call: Call,
    options: CallOptions,
    read: (answer: HttpAnswer) => T | Failure,
  ): Promise<T> {
    const url = this.#options.url + encodePath(call.path) + queryString(call.query);
    const body = call.body === undefined ? undefined : toJson(call.body);
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#try(call, options, url, body);
      const result = answer instanceof Failure ? answer : read(answer);
      if (!(result instanceof Failure)) return result;
      const delayMs = this.#delayAfter(attempt, call, result);
      if (delayMs === undefined) throw result.error;
      await pause(delayMs, options);
    }
  }

  #delayAfter(attempt: number, call: Call, failure: Failure): number | undefined {
    const { retries, retryDelayMs: firstMs, retryDelayMsMax: maxMs } = this.#options;
    const allowed =
      (call.repeat === "always" && failure.outcome !== "refused") ||
      (call.repeat === "if_not_done" && failure.outcome === "not_done");
    if (!allowed || attempt > retries) return undefined;
    if (failure.retryAfterMs > maxMs) return undefined;
    return failure.retryAfterMs + retryDelayMs(attempt, { firstMs, maxMs });
  }

  async #try(
    call: Call,
    { signal }: CallOptions,
    url: string,
    body: string | undefined,
  ): Promise<HttpAnswer | Failure> {
    signal?.throwIfAborted();
    const limitMs = this.#options.timeoutMs + (call.waitMs ?? 0);
    const controller = new AbortController();
    // AbortSignal.any would keep one dead listener for each request on a signal that lives for weeks.
    const unsubscribe = onAbort(signal, () => controller.abort(signal?.reason));
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, limitMs);
    try {
      const response = await this.#options.fetch(url, {
        method: call.method,
        headers: this.#headers(body !== undefined),
        signal: controller.signal,
        // A followed redirect would turn a POST into a GET; the caller is told the new address instead.
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
      });
      return { url, status: response.status, headers: response.headers, text: await response.text() };
    } catch (reason) {
      signal?.throwIfAborted();
      return timedOut ? timeoutFailure(call, url, limitMs) : networkFailure(this.#options.url, reason);
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }

  #headers(hasBody: boolean): Record<string, string> {
    const { apiKey } = this.#options;
    return {
      accept: "application/json",
      ...(hasBody ? { "content-type": "application/json" } : {}),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }
}

function encodePath(path: Path): string {
  return path.map((segment) => `/${encodeSegment(segment)}`).join("");
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

function toJson(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new RelayError("invalid_argument", `the request cannot be written as JSON: ${textOf(cause)}`, {
      cause,
    });
  }
}

function timeoutFailure(call: Call, url: string, limitMs: number): Failure {
  const message = `${call.method} ${url} got no answer within ${limitMs} ms; the relay is overloaded, or something on the way holds the connection`;
  return new Failure(new RelayError("unavailable", message), "unknown");
}

function networkFailure(relayUrl: string, reason: unknown): Failure {
  const cause = reason instanceof Error && reason.cause !== undefined ? reason.cause : reason;
  const message = `cannot reach the relay at ${relayUrl}: ${textOf(cause)}; is the relay running? Start it with \`a2a-relay serve\`, or give its right address`;
  const error = new RelayError("unavailable", message, { cause: reason });
  return new Failure(error, wasNeverConnected(cause) ? "not_done" : "unknown");
}

// Node names the cause in a code; browsers hide it on purpose, and there every failure counts as unknown.
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

function textOf(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  // An AggregateError over several addresses of one host has an empty message; its code says enough.
  if (reason.message !== "") return reason.message;
  return "code" in reason ? String(reason.code) : reason.name;
}
