import type { WebSocket } from "@fastify/websocket";
import { LIMITS } from "@a2a-relay/protocol";

export interface SocketWriterListener {
  /** A frame has left. */
  onLeft(): void;
  /** Frames wait, and none of them has left for the stall time. */
  onStall(): void;
}

/** All that is sent over one socket, and how long it takes to leave. */
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

  /** The reader does not take its answers, so it should be asked nothing more. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > LIMITS.socketBufferBytesMax;
  }

  /** Resolves once the frame has left, or can no longer leave: then to false. */
  send(text: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waits();
    this.#socket.send(text, (failure) => {
      this.#left();
      resolve(failure == null);
    });
    return promise;
  }

  /** Not waited for: it comes so often that idle sockets would hold a timer each, and its pong is looked after. */
  ping(): void {
    this.#socket.ping();
  }

  pong(data: Buffer): void {
    this.#waits();
    this.#socket.pong(data, undefined, () => this.#left());
  }

  /** Nothing is waited for any more, also not for what is still answered to a socket that has closed. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #waits(): void {
    if (this.#unsent === 0) this.#movedAtMs = performance.now();
    this.#unsent += 1;
    if (!this.#isStopped) this.#timer ??= setTimeout(() => this.#look(), this.#stallMs);
  }

  #left(): void {
    this.#unsent -= 1;
    this.#movedAtMs = performance.now();
    this.#listener.onLeft();
  }

  /** The timer is not set anew for each frame, because most of them leave at once. */
  #look(): void {
    this.#timer = undefined;
    if (this.#unsent === 0) return;
    const leftMs = this.#movedAtMs + this.#stallMs - performance.now();
    if (leftMs <= 0) this.#listener.onStall();
    else this.#timer = setTimeout(() => this.#look(), leftMs);
  }
}
