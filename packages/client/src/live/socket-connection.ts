import { SOCKET_KEY_PREFIX, SOCKET_PROTOCOL, type SocketFrame } from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { WebSocketConstructor, WebSocketLike } from "../http/relay-client-options.ts";
import { onAbort } from "../http/abort.ts";

export interface SocketAddress {
  readonly WebSocket: WebSocketConstructor;
  /** `http:` or `https:`, as the relay's other addresses. */
  readonly url: string;
  readonly apiKey: string | undefined;
}

export interface SocketConnectionOptions extends CallOptions {
  readonly openMs: number;
  /** A socket that is silent for this time counts as broken. */
  readonly idleMs: number;
  readonly onFrame: (frame: SocketFrame) => void;
}

/** 1006 means that the connection broke without a close frame. */
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

const BROKEN: SocketEnd = { code: 1006, reason: "" };
const CLOSE_MS = 1_000;

/** Sent on a silent socket. The input is invalid, so the relay answers with an error at once. */
const PROBE = JSON.stringify({ id: "heartbeat", verb: "renew", input: {} });

/** One WebSocket, from its opening to its end. */
export class SocketConnection {
  /** Never rejects. */
  readonly ended: Promise<SocketEnd>;
  readonly #socket: WebSocketLike;
  readonly #idleMs: number;
  #end: (end: SocketEnd) => void = () => {};
  #isOver = false;
  #heardAtMs = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  private constructor(socket: WebSocketLike, options: SocketConnectionOptions) {
    this.#socket = socket;
    this.#idleMs = options.idleMs;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    socket.addEventListener("message", ({ data }) => {
      if (this.#isOver) return;
      this.#heardAtMs = performance.now();
      const frame = parseFrame(data);
      if (frame !== undefined) options.onFrame(frame);
    });
    // A close event always follows, and browsers say no more in the error event.
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code, reason }) =>
      this.#over({ code: code ?? 1006, reason: reason ?? "" }),
    );
  }

  /** Undefined when it could not be opened; browsers do not tell the reason. */
  static async open(
    { WebSocket, url, apiKey }: SocketAddress,
    options: SocketConnectionOptions,
  ): Promise<SocketConnection | undefined> {
    const { signal, openMs } = options;
    signal?.throwIfAborted();
    const socket = construct(WebSocket, url.replace(/^http/, "ws"), protocolsOf(apiKey));
    if (socket === undefined) return undefined;
    const connection = new SocketConnection(socket, options);
    const opened = new Promise<boolean>((resolve) => {
      socket.addEventListener("open", () => resolve(true));
      void connection.ended.then(() => resolve(false));
    });
    const unsubscribe = onAbort(signal, () => connection.breakOff());
    const timer = setTimeout(() => connection.breakOff(), openMs);
    try {
      const isOpen = await opened;
      signal?.throwIfAborted();
      if (isOpen) connection.#watch();
      return isOpen ? connection : undefined;
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  /** Waits at most a second for the close frame of the relay. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.breakOff(), CLOSE_MS);
    this.#hangUp();
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends at once, without waiting for the relay. */
  breakOff(): void {
    this.#over(BROKEN);
    this.#hangUp();
  }

  #hangUp(): void {
    try {
      this.#socket.close(1000);
    } catch {
      // Some implementations throw while the socket opens, and close it anyway.
    }
  }

  #over(end: SocketEnd): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#end(end);
  }

  /** Browsers do not expose pings, so the client probes a silent socket. */
  #watch(): void {
    if (this.#isOver) return;
    const silentMs = performance.now() - this.#heardAtMs;
    if (silentMs >= this.#idleMs) {
      this.breakOff();
      return;
    }
    if (silentMs >= this.#idleMs / 2) this.#socket.send(PROBE);
    this.#timer = setTimeout(() => this.#watch(), this.#idleMs / 4);
  }
}

/** Undefined where the page does not allow it. */
function construct(
  WebSocket: WebSocketConstructor,
  url: string,
  protocols: string[],
): WebSocketLike | undefined {
  try {
    return new WebSocket(url, protocols);
  } catch {
    return undefined;
  }
}

/** Browsers cannot set headers, so the key is a subprotocol. */
function protocolsOf(apiKey: string | undefined): string[] {
  if (apiKey === undefined) return [SOCKET_PROTOCOL];
  const key = btoa(apiKey).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return [SOCKET_PROTOCOL, SOCKET_KEY_PREFIX + key];
}

/** Undefined for binary frames and other input that is no frame. */
function parseFrame(data: unknown): SocketFrame | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const frame: unknown = JSON.parse(data);
    return typeof frame === "object" && frame !== null && "type" in frame
      ? (frame as SocketFrame)
      : undefined;
  } catch {
    return undefined;
  }
}
