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
  /** How long opening may take. */
  readonly openMs: number;
  /** A socket on which nothing came for so long is dead. */
  readonly idleMs: number;
  readonly onFrame: (frame: SocketFrame) => void;
}

/** How a socket ended. 1006 is that of a connection that broke without a word. */
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

const BROKEN: SocketEnd = { code: 1006, reason: "" };
const CLOSE_MS = 1_000;

/**
 * Asked of a relay that has been silent for a while. It answers that something is missing, which is a sign of life, and
 * it looks for that before it looks at anything else.
 */
const SIGN_OF_LIFE = JSON.stringify({ id: "sign-of-life", verb: "renew", input: {} });

/** One WebSocket, from its opening to its end. */
export class SocketConnection {
  /** Resolves when it has ended, however. */
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
    // A browser says nothing about why, on purpose; the close event follows and says as much.
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code, reason }) =>
      this.#over({ code: code ?? 1006, reason: reason ?? "" }),
    );
  }

  /** Undefined where it could not be opened; a browser does not tell whether it was refused or nobody was there. */
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

  /** Says goodbye, and does not wait for long for the other side to do the same. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.breakOff(), CLOSE_MS);
    this.#hangUp();
    await this.ended;
    clearTimeout(timer);
  }

  /** Counts as ended from now on, whatever the other side says or does not say. */
  breakOff(): void {
    this.#over(BROKEN);
    this.#hangUp();
  }

  #hangUp(): void {
    try {
      this.#socket.close(1000);
    } catch {
      // Some complain about a socket that is still being opened; it is closed all the same.
    }
  }

  #over(end: SocketEnd): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#end(end);
  }

  /** Browsers keep the pings of the relay to themselves, so a silent socket is asked for a sign of life. */
  #watch(): void {
    if (this.#isOver) return;
    const silentMs = performance.now() - this.#heardAtMs;
    if (silentMs >= this.#idleMs) {
      this.breakOff();
      return;
    }
    if (silentMs >= this.#idleMs / 2) this.#socket.send(SIGN_OF_LIFE);
    this.#timer = setTimeout(() => this.#watch(), this.#idleMs / 4);
  }
}

/** Undefined where the page it runs in does not allow it. */
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

/** A browser cannot send a key in a header; as a subprotocol it can. */
function protocolsOf(apiKey: string | undefined): string[] {
  if (apiKey === undefined) return [SOCKET_PROTOCOL];
  const key = btoa(apiKey).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return [SOCKET_PROTOCOL, SOCKET_KEY_PREFIX + key];
}

/** Undefined for what is none: binary frames, and what a newer relay may say one day. */
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
