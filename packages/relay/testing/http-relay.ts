import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AgentCard,
  type AgentsResponse,
  type AgentView,
  type ErrorBody,
  type EventView,
  isRelayErrorCode,
  type KeyRotated,
  type KeysResponse,
  type LeaseView,
  type MailboxItem,
  type MessageResponse,
  type QueueResponse,
  type Receipt,
  type RegisterResponse,
  type RelayErrorCode,
  type RepairResponse,
  type RetryStaleResponse,
  type SendResponse,
  type TasksResponse,
  type TaskTreeView,
  type TaskView,
  type TenantsResponse,
  type ThreadsResponse,
} from "@a2a-relay/protocol";
import { loadConfig } from "../src/config/load-config.ts";
import { type RelayOverrides, startRelay } from "../src/server/start-relay.ts";
import { HTTP_STATUS } from "../src/transports/http/http-error.ts";
import { storeFlags } from "./chosen-store.ts";

export const LULU = "lulu@kamac";
export const ZHIWEI = "zhiwei@known-blocks1";

/** The members of all answers; a test reads those of its route. */
export interface AnswerBody
  extends
    Omit<AgentView, "agent_card" | "push">,
    Required<AgentsResponse>,
    Omit<RegisterResponse, "agent">,
    Required<Omit<MessageResponse, "push" | "task_id">>,
    Omit<QueueResponse, "entries">,
    Omit<RepairResponse, "task_id">,
    Omit<RetryStaleResponse, "skipped">,
    Pick<KeyRotated, "key" | "key_id" | "old_key_id" | "tenant" | "verbs">,
    Pick<KeysResponse, "keys">,
    Pick<TenantsResponse, "tenants">,
    Pick<TasksResponse, "tasks">,
    Pick<ThreadsResponse, "threads"> {
  readonly error: ErrorBody["error"];
  readonly agent: AgentView & { readonly agent_card: AgentCard };
  readonly receipt: Receipt & { readonly task_id: string };
  readonly messages: readonly (MailboxItem & { readonly lease: LeaseView })[];
  readonly cursor: string;
  readonly results: readonly (Partial<SendResponse> & {
    readonly status: number;
    readonly message_id: string;
    readonly ok: boolean;
    readonly lease?: LeaseView;
    readonly error?: ErrorBody["error"];
  })[];
  readonly acknowledged: number;
  readonly renewed: number;
  readonly released: number;
  readonly task: TaskView;
  readonly task_id: string;
  readonly tree: TaskTreeView;
  readonly events: readonly EventView[];
  readonly has_more: boolean;
  readonly entries: QueueResponse["entries"];
  readonly skipped: RetryStaleResponse["skipped"];
  readonly ok: boolean;
  readonly name: string;
  readonly status: string;
}

/** `json` is an empty object where the body is not JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: AnswerBody;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A relay on a free port, with two agents, called over real sockets. */
export interface HttpRelay extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly dataDirectory: string;
  /**
   * Sends the path unchanged, and a string or Buffer as body too. For a stream it returns the first chunk and
   * disconnects.
   */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<HttpAnswer>;
  get(path: string, options?: CallOptions): Promise<HttpAnswer>;
  post(path: string, body?: unknown, options?: CallOptions): Promise<HttpAnswer>;
  /** Asserts that the call is refused, with this code, its status and the common error shape. */
  refused(answer: Promise<HttpAnswer>, code: RelayErrorCode, words?: RegExp): Promise<ErrorBody["error"]>;
  /** Sends a message from lulu to zhiwei and returns its receipt. */
  send(message?: object): Promise<AnswerBody["receipt"]>;
  lease(request?: object): Promise<{ readonly message_id: string; readonly lease_id: string }>;
  /** Sends bytes over a new connection; returns all that came back until the relay closed it. */
  bytes(...chunks: readonly (string | Buffer)[]): Promise<string>;
}

export interface HttpRelayOptions extends RelayOverrides {
  readonly flags?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Sent with every call unless it says otherwise. */
  readonly headers?: Readonly<Record<string, string>>;
}

export async function openHttpRelay(options: HttpRelayOptions = {}): Promise<HttpRelay> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "http-relay-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const dataDirectory = join(directory, "data");
  const flags = {
    port: "0",
    data: dataDirectory,
    "log-level": "silent",
    ...(await storeFlags(options.flags?.["data"] ?? dataDirectory)),
    ...options.flags,
  };
  const config = loadConfig({ flags, env: options.env ?? {}, dotenv: {} });
  const relay = stack.use(await startRelay(config, options));
  const wire = new Wire(relay.url, options.headers ?? {});
  for (const [agent_id, alias] of [
    [LULU, "lulu"],
    [ZHIWEI, "zhiwei"],
  ]) {
    const answer = await wire.call("POST", "/agents/register", { agent_id, aliases: [alias] });
    assert.equal(answer.status, 201, answer.text);
  }
  const running = stack.move();
  return {
    url: relay.url,
    port: wire.port,
    dataDirectory,
    call: (...call) => wire.call(...call),
    get: (path, call) => wire.call("GET", path, undefined, call),
    post: (path, body, call) => wire.call("POST", path, body, call),
    refused,
    send: async (message = {}) => {
      const answer = await wire.call("POST", "/messages", {
        from: LULU,
        to: ZHIWEI,
        body: "知微你好",
        ...message,
      });
      assert.equal(answer.status, 201, answer.text);
      return answer.json.receipt;
    },
    lease: async (lease = {}) => {
      const { json } = await wire.call("POST", `/mailbox/${ZHIWEI}/lease`, lease);
      const [item] = json.messages;
      assert.ok(item, "no message to lease");
      return { message_id: item.message_id, lease_id: item.lease.id };
    },
    bytes: (...chunks) => wire.bytes(chunks),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function refused(
  answer: Promise<HttpAnswer>,
  code: RelayErrorCode,
  words?: RegExp,
): Promise<ErrorBody["error"]> {
  const { status, json, text } = await answer;
  const error = errorIn(json);
  assert.ok(error, `not refused: ${status} ${text.slice(0, 500)}`);
  assert.equal(error.code, code, `${status}: ${text.slice(0, 500)}`);
  assert.equal(status, HTTP_STATUS[code]);
  if (words !== undefined) assert.match(error.message, words);
  return error;
}

/** The task-queue wire has its own shape for the same codes. */
function errorIn(json: AnswerBody): ErrorBody["error"] | undefined {
  const flat = json as unknown as ErrorBody["error"] & { readonly kind?: string };
  return flat.kind === "error" ? flat : json.error;
}

class Wire {
  readonly port: number;
  readonly #hostname: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>>) {
    const { port, hostname } = new URL(url);
    this.port = Number(port);
    this.#hostname = hostname;
    this.#headers = headers;
  }

  async call(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<HttpAnswer> {
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const payload = isRaw || body === undefined ? body : JSON.stringify(body);
    const headers = {
      ...(payload === undefined ? {} : { "content-type": "application/json" }),
      ...this.#headers,
      ...options.headers,
    };
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    const { signal } = options;
    const sent = request(
      {
        host: this.#hostname,
        port: this.port,
        method,
        path,
        headers,
        agent: false,
        ...(signal ? { signal } : {}),
      },
      (answer) => {
        const chunks: Buffer[] = [];
        const done = (): void => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, json: readJson(text) });
        };
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", done);
        if (answer.headers["content-type"]?.startsWith("text/event-stream") !== true) return;
        answer.once("data", () => {
          done();
          sent.destroy();
        });
      },
    );
    sent.on("error", reject);
    sent.end(payload);
    const answer = await promise;
    if (method !== "HEAD") assertAnswer(answer);
    return answer;
  }

  bytes(chunks: readonly (string | Buffer)[]): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const received: Buffer[] = [];
    const socket = connect({ host: this.#hostname, port: this.port });
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.on("close", () => resolve(Buffer.concat(received).toString()));
    socket.on("error", (reason) => {
      if (received.length === 0) reject(reason);
    });
    for (const chunk of chunks) socket.write(chunk);
    return promise;
  }
}

/** In every test: errors have one shape, and none is internal. */
function assertAnswer({ status, json, text }: HttpAnswer): void {
  if (status < 400) return;
  if (isA2aError(json, status)) return;
  const error = errorIn(json);
  const code: unknown = error?.code;
  assert.ok(isRelayErrorCode(code), `not an error of ours: ${status} ${text.slice(0, 500)}`);
  assert.equal(typeof error?.message, "string");
  assert.equal(HTTP_STATUS[code], status);
  assert.notEqual(status, 500, text);
}

/** A2A has its own shapes, over JSON-RPC and over REST. */
function isA2aError(json: AnswerBody, status: number): boolean {
  const { jsonrpc, error } = json as unknown as {
    readonly jsonrpc?: string;
    readonly error?: { readonly code?: unknown; readonly status?: unknown; readonly message?: unknown };
  };
  if (typeof error?.message !== "string" || status === 500) return false;
  if (jsonrpc === "2.0") return Number.isInteger(error.code);
  return error.code === status && typeof error.status === "string";
}

function readJson(text: string): AnswerBody {
  try {
    return JSON.parse(text) as AnswerBody;
  } catch {
    return {} as AnswerBody;
  }
}
