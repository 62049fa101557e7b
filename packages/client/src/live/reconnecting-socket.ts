import { RelayError, SOCKET_CLOSE, type SocketFrame } from "@a2a-relay/protocol";
import { onAbort, pause } from "../http/abort.ts";
import { isAwayCode, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import { type SocketAddress, SocketConnection, type SocketEnd } from "./socket-connection.ts";

export interface ReconnectingSocketParts {
  /** Asked for each connection, since it names the cursor to go on from. */
  readonly address: () => SocketAddress;
  /** Finds out why a socket cannot be opened, which the socket itself does not tell. */
  readonly whyClosed: (options: { readonly signal: AbortSignal }) => Promise<RelayError>;
  readonly delays: RetryDelays;
  readonly openMs: number;
  readonly idleMs: number;
  readonly random: () => number;
  readonly onFrame: (frame: SocketFrame) => void;
  /** A connection ended; another one will follow, unless `onOver` is called. */
  readonly onEnd: (end: SocketEnd) => void;
  /** No other will follow. Without an error, because it was closed from this side. */
  readonly onOver: (error: RelayError | undefined) => void;
  readonly onAway: (error: RelayError) => void;
}

/** One socket after the other, for as long as trying again can help. */
export class ReconnectingSocket {
  readonly #parts: ReconnectingSocketParts;
  readonly #life = new AbortController();
  readonly #waiting = new Set<() => void>();
  #connection: SocketConnection | undefined;
  #error: RelayError | undefined;
  #failures = 0;
  /** The next connection is one that was asked for, not one to try again. */
  #isAskedFor = false;

  constructor(parts: ReconnectingSocketParts) {
    this.#parts = parts;
  }

  /** Rejects when the first connection cannot be made. */
  async open(): Promise<void> {
    const { signal } = this.#life;
    const first = await this.#connect();
    if (first === undefined) throw await this.#parts.whyClosed({ signal });
    this.#connection = first;
    void this.#run(first);
  }

  /** Opens it for as long as that takes; `onOver` hears where it is of no use. */
  start(): void {
    this.#isAskedFor = true;
    void this.#run();
  }

  /** The open connection, waiting for one at most `limitMs`. */
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

  /** Opens it anew, at the address as it is now. */
  reopen(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#isAskedFor = true;
    // At once, so that nobody is given one that is over.
    this.#connection = undefined;
    connection.breakOff();
  }

  /** Resolves when the other side has heard of it, or cannot be reached. */
  async close(): Promise<void> {
    const connection = this.#connection;
    if (!this.#life.signal.aborted) this.#life.abort(new RelayError("unavailable", "this socket was closed"));
    await connection?.close();
  }

  /** Never rejects. */
  async #run(first?: SocketConnection): Promise<void> {
    const { onEnd, onOver } = this.#parts;
    const { signal } = this.#life;
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
    const { signal } = this.#life;
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
    const { signal } = this.#life;
    if (!this.#isAskedFor) {
      this.#failures += 1;
      await pause(retryDelayMs(this.#failures, delays, random), { signal });
    }
    this.#isAskedFor = false;
  }

  #connect(): Promise<SocketConnection | undefined> {
    const { address, openMs, idleMs, onFrame } = this.#parts;
    return SocketConnection.open(address(), {
      signal: this.#life.signal,
      openMs,
      idleMs,
      onFrame: (frame) => {
        this.#failures = 0;
        onFrame(frame);
      },
    });
  }

  /** Resolves when it was opened or is over, or when the time is. */
  #change(signal: AbortSignal | undefined, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.#waiting.delete(settle);
        resolve();
      };
      const timer = setTimeout(settle, limitMs);
      const unsubscribe = onAbort(signal, settle);
      this.#waiting.add(settle);
    });
  }

  #changed(): void {
    for (const settle of this.#waiting) settle();
  }
}

/** A key that was revoked opens nothing the next time either. */
function assertMayComeBack({ code, reason }: SocketEnd): void {
  if (code === SOCKET_CLOSE.unauthenticated) throw new RelayError("unauthenticated", reason);
  if (code === SOCKET_CLOSE.refused) throw new RelayError("permission_denied", reason);
}
