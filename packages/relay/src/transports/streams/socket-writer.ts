import type { WebSocket } from "@fastify/websocket";
import { LIMITS } from "@a2a-relay/protocol";

export interface SocketWriterListener {
  /** A frame has left. */
  onLeft(): void;
  /** Frames are queued, and none of them has left for the stall time. */
  onStall(): void;
}

/** Sends the frames of one socket and watches for a reader that takes none. */
export class SocketWriter {
  readonly #socket: WebSocket;
  readonly #stallMs: number;
  readonly #listener: SocketWriterListener;
  /** Frames that have not left yet. */
  #unsent = 0;
  #movedAtMs = 0;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket, stallMs: number, listener: SocketWriterListener) {
    this.#socket = socket;
    this.#stallMs = stallMs;
    this.#listener = listener;
  }

  /** The reader takes its answers too slowly; read no more requests from it. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > LIMITS.socketBufferBytesMax;
  }

  /** Resolves to true once the frame has left, to false when it cannot leave any more. */
  send(text: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#startWrite();
    this.#socket.send(text, (failure) => {
      this.#endWrite();
      resolve(failure == null);
    });
    return promise;
  }

  /** Starts no stall timer: idle sockets would hold one each, and the session watches for the pong. */
  ping(): void {
    this.#socket.ping();
  }

  pong(data: Buffer): void {
    this.#startWrite();
    this.#socket.pong(data, undefined, () => this.#endWrite());
  }

  /** After this no frame starts a stall timer, not even an answer to a closed socket. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #startWrite(): void {
    if (this.#unsent === 0) this.#movedAtMs = performance.now();
    this.#unsent += 1;
    if (!this.#isStopped) this.#timer ??= setTimeout(() => this.#checkStall(), this.#stallMs);
  }

  #endWrite(): void {
    this.#unsent -= 1;
    this.#movedAtMs = performance.now();
    this.#listener.onLeft();
  }

  /** One timer serves many frames, because most of them leave at once. */
  #checkStall(): void {
    this.#timer = undefined;
    if (this.#unsent === 0) return;
    const leftMs = this.#movedAtMs + this.#stallMs - performance.now();
    if (leftMs <= 0) this.#listener.onStall();
    else this.#timer = setTimeout(() => this.#checkStall(), leftMs);
  }
}
