import { type A2aBindingName, type A2aVersion, type AgentCard, quote, RelayError } from "@a2a-relay/protocol";
import { type Fetch, parseInteger } from "../http/relay-client-options.ts";
import type { RetryDelays } from "../http/retry.ts";

export interface A2AClientOptions {
  /**
   * The agent's base address, below which the client searches its card, or the address of the card. With `dialect`, and
   * if there is no card, it is the endpoint.
   */
  readonly url?: string | undefined;
  /** The agent's card; then the client does not request one. */
  readonly card?: AgentCard | undefined;
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined;
  /** Sent with every request, such as `{"X-API-Key": "…"}`. They count as credentials. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** Use only this version. Absent: the newest that the card and this client have. */
  readonly dialect?: A2aVersion | undefined;
  /** Use only this binding. Absent: JSON-RPC, or HTTP+JSON if the card does not have it. */
  readonly binding?: A2aBindingName | undefined;
  /**
   * The time limit of an answer, or of the first byte of a stream, in milliseconds. Default 60,000: some agents work
   * before they answer.
   */
  readonly timeoutMs?: number | undefined;
  /** The client reconnects a stream without a byte for this time. Default 300,000: few agents send heartbeats. */
  readonly idleMs?: number | undefined;
  /** How often the client repeats read requests and resumes a broken stream. 0 is never. Default 4. */
  readonly retries?: number | undefined;
  /** The ceiling of the first delay between attempts, in milliseconds; it doubles. Default 200. */
  readonly retryDelayMs?: number | undefined;
  /** The ceiling of every delay, and the longest `Retry-After` that the client honours. Default 10,000. */
  readonly retryDelayMsMax?: number | undefined;
  /** The time between two polls of an agent without streams; it grows to ten times that. Default 1,000. */
  readonly pollMs?: number | undefined;
  /** The largest answer, and the largest event of a stream. Default 16 MiB, twice the artifacts of a task. */
  readonly answerBytesMax?: number | undefined;
}

export interface FilledA2AClientOptions {
  readonly url: string | undefined;
  readonly card: AgentCard | undefined;
  /** With the bearer token. */
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
  readonly dialect: A2aVersion | undefined;
  readonly binding: A2aBindingName | undefined;
  readonly timeoutMs: number;
  readonly idleMs: number;
  readonly retries: number;
  readonly delays: RetryDelays;
  readonly pollMs: number;
  readonly answerBytesMax: number;
}

const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;

export function fillA2AClientOptions(input: string | A2AClientOptions): FilledA2AClientOptions {
  const options: A2AClientOptions = typeof input === "string" ? { url: input } : input;
  if (options.url === undefined && options.card === undefined) {
    throw new RelayError("invalid_argument", "give the `url` of the agent, or its `card`");
  }
  const delays = {
    firstMs: parseInteger("retryDelayMs", options.retryDelayMs ?? 200, { min: 0, max: 600_000 }),
    maxMs: parseInteger("retryDelayMsMax", options.retryDelayMsMax ?? 10_000, { min: 0, max: 600_000 }),
  };
  return Object.freeze({
    url: options.url === undefined ? undefined : parseAgentUrl(options.url),
    card: options.card,
    headers: parseHeaders(options),
    // Read at each call, because instrumentation replaces the global one after modules are loaded.
    fetch: options.fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init)),
    dialect: options.dialect,
    binding: options.binding,
    timeoutMs: parseInteger("timeoutMs", options.timeoutMs ?? 60_000, { min: 1, max: 24 * HOUR_MS }),
    idleMs: parseInteger("idleMs", options.idleMs ?? 300_000, { min: 1, max: 24 * HOUR_MS }),
    retries: parseInteger("retries", options.retries ?? 4, { min: 0, max: 100 }),
    delays,
    pollMs: parseInteger("pollMs", options.pollMs ?? 1_000, { min: 1, max: HOUR_MS }),
    answerBytesMax: parseInteger("answerBytesMax", options.answerBytesMax ?? 16 * MIB, {
      min: 1,
      max: 1024 * MIB,
    }),
  });
}

function parseAgentUrl(input: unknown): string {
  const url = typeof input === "string" && URL.canParse(input) ? new URL(input) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new RelayError(
      "invalid_argument",
      `url: expected an address such as https://agent.example.org, got ${quote(input)}`,
    );
  }
  // The error does not show the value: it may hold a password.
  if (url.username !== "" || url.password !== "") {
    const advice = "give `apiKey` or `headers` instead";
    throw new RelayError("invalid_argument", `url: must not hold a user or password; ${advice}`);
  }
  url.hash = "";
  return url.href;
}

function parseHeaders({ apiKey, headers }: A2AClientOptions): Readonly<Record<string, string>> {
  const given = { ...headers, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
  try {
    return Object.fromEntries(new Headers(given));
  } catch (cause) {
    // The error does not show the values: error texts end up in logs.
    const advice = "expected printable ASCII; is there a line break at the end of one?";
    throw new RelayError("invalid_argument", `apiKey, headers: ${advice}`, { cause });
  }
}
