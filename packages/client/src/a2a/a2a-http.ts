import { quote, RelayError } from "@a2a-relay/protocol";
import { onAbort, pause } from "../http/abort.ts";
import { type CallOptions, errorText } from "../http/http-exchange.ts";
import { isAway, parseRetryAfterMs, retryDelayMs } from "../http/retry.ts";
import type { FilledA2AClientOptions } from "./a2a-client-options.ts";
import { invalidAgentResponse } from "./agent-answer.ts";

export interface A2aHttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Whether a cache may answer; browsers have one. */
  readonly cache?: RequestCache | undefined;
  /** The request only reads, so it may be repeated. */
  readonly isRepeatable?: boolean | undefined;
}

export interface A2aHttpAnswer {
  readonly method: string;
  /** The address that answered, after all redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface A2aHttpStream {
  readonly method: string;
  readonly url: string;
  readonly body: ReadableStream<Uint8Array>;
}

/** These keep the method and the body of a request. */
const KEEPING_REDIRECTS = [307, 308];
const REDIRECTS = [301, 302, 303, ...KEEPING_REDIRECTS];
const REDIRECTS_MAX = 3;
/** A server or proxy that is unavailable for a moment. */
const UNAVAILABLE = [429, 502, 503, 504];

/** Requests to an agent over `fetch`: time limits, bounded answers, careful redirects, every failure a RelayError. */
export class A2aHttp {
  readonly #options: FilledA2AClientOptions;

  constructor(options: FilledA2AClientOptions) {
    this.#options = options;
  }

  /** The whole answer, with any status. */
  async ask(request: A2aHttpRequest, options: CallOptions): Promise<A2aHttpAnswer> {
    for (let attempt = 1; ; attempt += 1) {
      const isLast = request.isRepeatable !== true || attempt > this.#options.retries;
      let retryAfterMs = 0;
      try {
        const answer = await this.#try(request, options, (response, url) =>
          this.#readAnswer(request, response, url),
        );
        retryAfterMs = parseRetryAfterMs(answer.headers.get("retry-after")) ?? 0;
        const isPatient = retryAfterMs <= this.#options.delays.maxMs;
        if (isLast || !isPatient || !UNAVAILABLE.includes(answer.status)) return answer;
      } catch (reason) {
        options.signal?.throwIfAborted();
        if (isLast || !isAway(reason)) throw reason;
      }
      await pause(retryAfterMs + retryDelayMs(attempt, this.#options.delays), options);
    }
  }

  /** A stream of events, or the whole answer if it is no stream. One attempt. */
  open(request: A2aHttpRequest, options: CallOptions): Promise<A2aHttpAnswer | A2aHttpStream> {
    return this.#try(request, options, async (response, url) => {
      const { status, headers, body } = response;
      const isStream = headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
      if (status === 200 && isStream && body !== null) return { method: request.method, url, body };
      return this.#readAnswer(request, response, url);
    });
  }

  async #try<T>(
    request: A2aHttpRequest,
    { signal }: CallOptions,
    read: (response: Response, url: string) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const { timeoutMs } = this.#options;
    const controller = new AbortController();
    const unsubscribe = onAbort(signal, () => controller.abort(signal?.reason));
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, timeoutMs);
    try {
      const { response, url } = await this.#follow(request, controller.signal);
      return await read(response, url);
    } catch (reason) {
      signal?.throwIfAborted();
      if (timedOut) throw lateAnswer(request, timeoutMs);
      throw reason instanceof RelayError ? reason : unreachable(request, reason);
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }

  /** Follows redirects itself, so that no credential goes to another host and no POST becomes a GET. */
  async #follow(
    request: A2aHttpRequest,
    signal: AbortSignal,
  ): Promise<{ readonly response: Response; readonly url: string }> {
    const { method, body, cache } = request;
    const headers = { ...this.#options.headers, ...request.headers };
    let { url } = request;
    for (let hops = 0; ; hops += 1) {
      const response = await this.#options.fetch(url, {
        method,
        headers,
        signal,
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
        ...(cache === undefined ? {} : { cache }),
      });
      if (response.type !== "opaqueredirect" && !REDIRECTS.includes(response.status))
        return { response, url };
      await response.body?.cancel();
      url = this.#redirected(request, { from: url, response, hops });
    }
  }

  #redirected(
    { method }: A2aHttpRequest,
    { from, response, hops }: { readonly from: string; readonly response: Response; readonly hops: number },
  ): string {
    const location = response.headers.get("location");
    // Browsers hide the location.
    const to = location !== null && URL.canParse(location, from) ? new URL(location, from) : undefined;
    const refuse = (reason: string): Error => {
      const where = to === undefined ? "another address" : quote(to.href);
      const advice = "give that address itself if you trust it";
      return invalidAgentResponse(`${method} ${from} redirects to ${where}, ${reason}; ${advice}`);
    };
    if (to === undefined) throw refuse("which cannot be followed from here");
    if (hops >= REDIRECTS_MAX) throw refuse(`after ${REDIRECTS_MAX} redirects`);
    if (to.protocol !== "http:" && to.protocol !== "https:") throw refuse("which is no web address");
    if (to.origin !== new URL(from).origin && Object.keys(this.#options.headers).length > 0) {
      throw refuse("another host, to which your credentials are not shown");
    }
    if (method !== "GET" && !KEEPING_REDIRECTS.includes(response.status)) {
      throw refuse(`with ${response.status}, which would lose what is sent`);
    }
    return to.href;
  }

  async #readAnswer({ method }: A2aHttpRequest, response: Response, url: string): Promise<A2aHttpAnswer> {
    const text = await readBounded(response, url, this.#options.answerBytesMax);
    return { method, url, status: response.status, headers: response.headers, text };
  }
}

async function readBounded(response: Response, url: string, bytesMax: number): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > bytesMax) {
      reader.cancel().catch(() => undefined);
      const advice = "raise `answerBytesMax` if the agent is right to say so much";
      throw new RelayError("too_large", `${url} answers with more than ${bytesMax} bytes; ${advice}`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function lateAnswer({ method, url }: A2aHttpRequest, limitMs: number): RelayError {
  const advice = "raise `timeoutMs`, or send with `returnImmediately` and ask for the task later";
  return new RelayError("unavailable", `${method} ${url} got no answer within ${limitMs} ms; ${advice}`);
}

function unreachable({ method, url }: A2aHttpRequest, reason: unknown): RelayError {
  const cause = reason instanceof Error && reason.cause !== undefined ? reason.cause : reason;
  const advice = "is the agent running, and is this its address?";
  return new RelayError("unavailable", `${method} ${url} failed: ${errorText(cause)}; ${advice}`, {
    cause: reason,
  });
}
