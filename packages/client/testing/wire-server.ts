import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { LoopbackServer } from "./loopback-server.ts";

/** A request as it came over a real socket. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborted when the client has closed the connection. */
  readonly signal: AbortSignal;
}

export type WireAnswer =
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly json: unknown }
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly text: string }
  | { readonly headers?: Record<string, string>; readonly stream: Stream }
  /** The connection ends without a word. */
  | "reset"
  /** The connection ends in the middle of the answer. */
  | "reset_midway"
  /** Nothing ever comes. */
  | "silence";

/** Writes server-sent events as it likes, and says how they end. */
export type Stream = (write: (text: string) => void) => StreamEnd | Promise<StreamEnd>;
export type StreamEnd = "end" | "reset" | "silence";

export type Respond = (request: WireRequest) => WireAnswer | Promise<WireAnswer>;

/** A real HTTP server on loopback whose every answer, and every fault, is up to the test. */
export class WireServer extends LoopbackServer {
  /** What came in so far, oldest first. */
  readonly requests: WireRequest[] = [];
  readonly #respond: Respond;
  readonly #watchers = new Set<(request: WireRequest) => void>();

  constructor(respond: Respond) {
    super();
    this.#respond = respond;
  }

  static async start(respond: Respond): Promise<WireServer> {
    const wire = new WireServer(respond);
    await wire.open();
    return wire;
  }

  /** The next request to come that fits. Ask before causing it. */
  next(fits: (request: WireRequest) => boolean): Promise<WireRequest> {
    return new Promise((resolve) => {
      const watch = (request: WireRequest): void => {
        if (!fits(request)) return;
        this.#watchers.delete(watch);
        resolve(request);
      };
      this.#watchers.add(watch);
    });
  }

  protected override createServer(): Server {
    return createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const request = await readRequest(incoming, gone.signal);
    this.requests.push(request);
    for (const watch of this.#watchers) watch(request);
    const answer = await this.#respond(request);
    if (answer === "silence") return;
    if (answer === "reset") {
      incoming.socket.destroy();
      return;
    }
    if (answer === "reset_midway") {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write('{"half": "an an', () => incoming.socket.destroy());
      return;
    }
    if ("stream" in answer) return streamTo(response, answer);
    const isJson = "json" in answer;
    response.writeHead(answer.status ?? 200, {
      "content-type": isJson ? "application/json" : "text/html",
      ...answer.headers,
    });
    response.end(isJson ? JSON.stringify(answer.json) : answer.text);
  }
}

async function streamTo(
  response: ServerResponse,
  { headers, stream }: Extract<WireAnswer, { readonly stream: Stream }>,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  response.flushHeaders();
  // What was written last has to leave before the connection breaks, or the test would not know how far it came.
  let left = Promise.resolve();
  const end = await stream((text) => {
    left = new Promise((resolve) => {
      response.write(text, () => resolve());
    });
  });
  await left;
  if (end === "end") response.end();
  if (end === "reset") response.socket?.destroySoon();
}

async function readRequest(incoming: IncomingMessage, signal: AbortSignal): Promise<WireRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const url = new URL(incoming.url ?? "/", "http://localhost");
  return {
    method: incoming.method ?? "",
    path: url.pathname,
    query: url.searchParams,
    headers: incoming.headers,
    body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
    signal,
  };
}
