import { connect, type Socket } from "node:net";
import type { InboxItem } from "./mailbox-item.ts";

export interface StreamAddress {
  readonly port: number;
  readonly agent: string;
  /** The cursor after which to go on. */
  readonly since: string | undefined;
  /** The address on this machine to come from; any, if undefined. */
  readonly localAddress: string | undefined;
}

export interface StreamListener {
  onOpen(): void;
  /** `at` is when the last byte of it was there. */
  onMessages(items: readonly InboxItem[], cursor: string, at: number): void;
  /** Called once, also for a stream that never opened. */
  onClose(reason: Error): void;
}

/** Opens a stream of one kind. */
export type StreamOpener = (address: StreamAddress, listener: StreamListener) => MailboxStream;

/** One connection that pushes the messages of one agent. Sibling kinds differ only in their bytes. */
export abstract class MailboxStream implements Disposable {
  protected readonly listener: StreamListener;
  readonly #socket: Socket;
  #reason = new Error("the server closed the stream");

  constructor({ port, localAddress }: StreamAddress, request: Buffer, listener: StreamListener) {
    this.listener = listener;
    const from = localAddress === undefined ? {} : { localAddress };
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true, ...from });
    this.#socket.once("connect", () => this.#socket.write(request));
    this.#socket.on("data", (bytes) => this.#take(bytes));
    this.#socket.on("error", (error) => (this.#reason = error));
    this.#socket.once("close", () => listener.onClose(this.#reason));
  }

  /** How long the server asks to wait before coming back. */
  get retryMs(): number {
    return 0;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  /** Throws for what it cannot read, which ends the stream. */
  protected abstract read(bytes: Buffer, at: number): void;

  protected write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  #take(bytes: Buffer): void {
    const at = performance.now();
    try {
      this.read(bytes, at);
    } catch (reason) {
      this.#socket.destroy(reason instanceof Error ? reason : new Error(String(reason)));
    }
  }
}

export function streamPath(way: "stream" | "ws", { agent, since }: StreamAddress): string {
  return `/mailbox/${agent}/${way}${since === undefined ? "" : `?since=${since}`}`;
}
