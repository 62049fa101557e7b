import { RelayError, SOCKET_CLOSE, type SocketFrame } from "@a2a-relay/protocol";
import { onAbort, pause } from "../http/abort.ts";
import { isAwayCode, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import { type SocketAddress, SocketConnection, type SocketEnd } from "./socket-connection.ts";

export interface ReconnectingSocketParts {
  /** Called for each connection, since it contains the cursor to resume from. */
  readonly address: () => SocketAddress;
  /** Finds out why a socket cannot be opened; the socket does not tell. */
  readonly whyClosed: (options: { readonly signal: AbortSignal }) => Promise<RelayError>;
  readonly delays: RetryDelays;
  readonly openMs: number;
  readonly idleMs: number;
  readonly random: () => number;
  readonly onFrame: (frame: SocketFrame) => void;
  /** A connection ended; another one follows, unless `onOver` is called. */
  readonly onEnd: (end: SocketEnd) => void;
  /** No other connection follows. Without an error when this side closed it. */
  readonly onOver: (error: RelayError | undefined) => void;
  readonly onAway: (error: RelayError) => void;
}

/** Opens one socket after the other, until an error that a retry cannot fix. */
export class ReconnectingSocket {
  readonly #parts: ReconnectingSocketParts;
  readonly #closing = new AbortController();
  readonly #onChange = new Set<() => void>();
  #connection: SocketConnection | undefined;
  #error: RelayError | undefined;
  #failures = 0;
  /** The next connection is no retry, so it needs no delay. */
  #skipsDelay = false;

  constructor(parts: ReconnectingSocketParts) {
    this.#parts = parts;
  }

  /** Rejects when the first connection cannot be made. */
  async open(): Promise<void> {
    const { signal } = this.#closing;
    const first = await this.#connect();
    if (first === undefined) throw await this.#parts.whyClosed({ signal });
    this.#connection = first;
    void this.#run(first);
  }

  /** Retries until it is open; `onOver` reports an error that a retry cannot fix. */
  start(): void {
    this.#skipsDelay = true;
    void this.#run();
  }

  /** Waits at most `limitMs` for an open connection. */
  async connected(options: {
    readonly signal?: AbortSignal | undefined;
    readonly limitMs: number;
  }): Promise<SocketConnection> {
    const { signal, limitMs } = options;
    signal?.throwIfAborted();
    if (this.#connection === undefined && this.#error === undefined) await this.#change(signal, limitMs);
    signal?.throwIfAborted();
    if (this.#error !== undefined) throw this.#error;
    if (this.#connection !== undefined) return this.#connection;
    throw new RelayError(
      "unavailable",
      `the socket to the relay could not be opened again within ${limitMs} ms`,
    );
  }

  /** Opens it again, at the current address. */
  reopen(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#skipsDelay = true;
    // At once, so that no caller gets a connection that is over.
    this.#connection = undefined;
    connection.breakOff();
  }

  /** Resolves when the relay has closed too, or cannot be reached. */
  async close(): Promise<void> {
    const connection = this.#connection;
    if (!this.#closing.signal.aborted)
      this.#closing.abort(new RelayError("unavailable", "this socket was closed"));
    await connection?.close();
  }

  /** Never rejects. */
  async #run(first?: SocketConnection): Promise<void> {
    const { onEnd, onOver } = this.#parts;
    const { signal } = this.#closing;
    try {
      for (let connection = first; ; connection = undefined) {
        connection ??= await this.#reconnect();
        this.#connection = connection;
        this.#changed();
        const end = await connection.ended;
        this.#connection = undefined;
        onEnd(end);
        signal.throwIfAborted();
        assertMayComeBack(end);
      }
    } catch (reason) {
      this.#error = RelayError.from(reason);
      this.#changed();
      onOver(signal.aborted ? undefined : this.#error);
    }
  }

  async #reconnect(): Promise<SocketConnection> {
    const { whyClosed, onAway } = this.#parts;
    const { signal } = this.#closing;
    for (;;) {
      await this.#pause();
      const connection = await this.#connect();
      if (connection !== undefined) return connection;
      const error = await whyClosed({ signal });
      if (!isAwayCode(error.code)) throw error;
      onAway(error);
    }
  }

  async #pause(): Promise<void> {
    const { delays, random } = this.#parts;
    const { signal } = this.#closing;
    if (!this.#skipsDelay) {
      this.#failures += 1;
      await pause(retryDelayMs(this.#failures, delays, random), { signal });
    }
    this.#skipsDelay = false;
  }

  #connect(): Promise<SocketConnection | undefined> {
    const { address, openMs, idleMs, onFrame } = this.#parts;
    return SocketConnection.open(address(), {
      signal: this.#closing.signal,
      openMs,
      idleMs,
      onFrame: (frame) => {
        this.#failures = 0;
        onFrame(frame);
      },
    });
  }

  /** Resolves when a connection opens, on the final error, or after `limitMs`. */
  #change(signal: AbortSignal | undefined, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.#onChange.delete(settle);
        resolve();
      };
      const timer = setTimeout(settle, limitMs);
      const unsubscribe = onAbort(signal, settle);
      this.#onChange.add(settle);
    });
  }

  #changed(): void {
    for (const settle of this.#onChange) settle();
  }
}

/** A revoked key stays revoked. */
function assertMayComeBack({ code, reason }: SocketEnd): void {
  if (code === SOCKET_CLOSE.unauthenticated) throw new RelayError("unauthenticated", reason);
  if (code === SOCKET_CLOSE.refused) throw new RelayError("permission_denied", reason);
}
