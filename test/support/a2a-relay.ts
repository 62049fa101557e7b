import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, type RelayOverrides, startRelay } from "a2a-relay";

type RunningRelay = Awaited<ReturnType<typeof startRelay>>;

export interface A2aRelayOptions extends RelayOverrides {
  readonly env?: Readonly<Record<string, string>>;
  /** Sent with every call unless it says otherwise. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where the body is not JSON. */
  readonly json: unknown;
}

/** A new relay with all three bindings of A2A, on free ports of loopback. */
export class A2aRelay implements AsyncDisposable {
  readonly #directory: string;
  readonly #options: A2aRelayOptions;
  #running: RunningRelay;

  private constructor(directory: string, options: A2aRelayOptions, running: RunningRelay) {
    this.#directory = directory;
    this.#options = options;
    this.#running = running;
  }

  static async open(options: A2aRelayOptions = {}): Promise<A2aRelay> {
    const directory = await mkdtemp(join(tmpdir(), "a2a-front-"));
    return new A2aRelay(directory, options, await start(directory, options));
  }

  get url(): string {
    return this.#running.url;
  }

  /** What every call says unless it says otherwise. */
  get headers(): Readonly<Record<string, string>> {
    return this.#options.headers ?? {};
  }

  get grpcAddress(): string {
    return `127.0.0.1:${this.#running.grpcPort}`;
  }

  /** Stops it in order and starts it on what it wrote, on other ports. */
  async restart(): Promise<void> {
    await this.#running[Symbol.asyncDispose]();
    this.#running = await start(this.#directory, this.#options);
  }

  /** A string as body goes onto the wire as it is. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WireAnswer> {
    const payload = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...this.#options.headers,
        ...headers,
      },
      ...(body === undefined ? {} : { body: payload }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: jsonIn(text) };
  }

  /** The body of an answer that must not be an error. */
  async ok(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const answer = await this.call(method, path, body, headers);
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  async register(agentId: string, more: object = {}): Promise<void> {
    await this.ok("POST", "/agents/register", { agent_id: agentId, ...more });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

function start(directory: string, { env = {}, ...overrides }: A2aRelayOptions): Promise<RunningRelay> {
  const flags = { port: "0", data: join(directory, "data"), "log-level": "silent", "grpc-port": "0" };
  return startRelay(loadConfig({ flags, env, dotenv: {} }), overrides);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
