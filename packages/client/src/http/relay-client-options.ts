import { quote, RelayError } from "@a2a-relay/protocol";

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** The part of a WebSocket event that the client reads. */
export interface WebSocketEvent {
  readonly type: string;
  readonly data?: unknown;
  readonly code?: number;
  readonly reason?: string;
}

/** The part of a WebSocket that the client uses: of browsers, of Node, or of the `ws` package. */
export interface WebSocketLike {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(
    type: "open" | "message" | "close" | "error",
    listener: (event: WebSocketEvent) => void,
  ): void;
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

export interface RelayClientOptions {
  /** The relay's address, e.g. `http://127.0.0.1:8080`. A path is kept: `https://example.org/relay`. */
  readonly url: string;
  /** Sent as a bearer token. Absent: no credential, which a relay on this machine accepts by default. */
  readonly apiKey?: string | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** Replaces the global `WebSocket`; required where there is none, as in Node 20. */
  readonly webSocket?: WebSocketConstructor | undefined;
  /**
   * The time limit of one attempt, in milliseconds; a long poll adds its `wait_ms`.
   * Default 15,000: well above what a busy relay needs, well below what a person waits for.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How often the client repeats a request after a failure, where that is safe. 0 is never.
   * Default 4: with the delays below that bridges the restart of a relay, about two seconds.
   */
  readonly retries?: number | undefined;
  /** The ceiling of the first delay between attempts, in milliseconds; it doubles. Default 200. */
  readonly retryDelayMs?: number | undefined;
  /** The ceiling of every delay, and the longest `Retry-After` that the client honours. Default 10,000. */
  readonly retryDelayMsMax?: number | undefined;
}

export interface FilledClientOptions {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly fetch: Fetch;
  /** Undefined where the runtime has none. */
  readonly webSocket: () => WebSocketConstructor | undefined;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly retryDelayMsMax: number;
}

export function fillClientOptions(options: RelayClientOptions): FilledClientOptions {
  const filled = {
    url: parseRelayUrl(options.url),
    apiKey: parseApiKey(options.apiKey),
    // Read at each call, because instrumentation replaces the global one after modules are loaded.
    fetch: options.fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init)),
    webSocket: () => options.webSocket ?? globalThis.WebSocket,
    timeoutMs: parseInteger("timeoutMs", options.timeoutMs ?? 15_000, { min: 1, max: 3_600_000 }),
    retries: parseInteger("retries", options.retries ?? 4, { min: 0, max: 100 }),
    retryDelayMs: parseInteger("retryDelayMs", options.retryDelayMs ?? 200, { min: 0, max: 600_000 }),
    retryDelayMsMax: parseInteger("retryDelayMsMax", options.retryDelayMsMax ?? 10_000, {
      min: 0,
      max: 600_000,
    }),
  };
  if (filled.retryDelayMs > filled.retryDelayMsMax) {
    throw new RelayError(
      "invalid_argument",
      `retryDelayMs: ${filled.retryDelayMs} is more than retryDelayMsMax, ${filled.retryDelayMsMax}`,
    );
  }
  return Object.freeze(filled);
}

export function parseInteger(
  name: string,
  value: unknown,
  range: { readonly min: number; readonly max: number },
): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= range.min && value <= range.max) {
    return value;
  }
  throw new RelayError(
    "invalid_argument",
    `${name}: expected a whole number from ${range.min} to ${range.max}, got ${quote(value)}`,
  );
}

function parseRelayUrl(input: unknown): string {
  const expected = "expected the relay's address, such as http://127.0.0.1:8080";
  if (typeof input !== "string" || !URL.canParse(input)) {
    throw new RelayError("invalid_argument", `url: ${expected}, got ${quote(input)}`);
  }
  const url = new URL(input);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new RelayError("invalid_argument", `url: ${expected}, got ${quote(input)}`);
  }
  // The error does not show the value: it may hold a password.
  if (url.username !== "" || url.password !== "") {
    throw new RelayError("invalid_argument", "url: must not hold a user or password; give `apiKey` instead");
  }
  if (url.search !== "" || url.hash !== "") {
    throw new RelayError("invalid_argument", `url: must not hold a query or fragment, got ${quote(input)}`);
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function parseApiKey(input: unknown): string | undefined {
  if (input === undefined) return undefined;
  if (typeof input === "string" && /^[\x21-\x7e]+$/.test(input)) return input;
  // The error does not show the value: error texts end up in logs.
  throw new RelayError(
    "invalid_argument",
    "apiKey: expected printable ASCII without blanks; is there a line break at its end?",
  );
}
