import assert from "node:assert/strict";
import { once } from "node:events";
import type {
  AnswerOf,
  ErrorBody,
  MailboxItem,
  MailboxNotice,
  SocketOperations,
  SocketVerb,
} from "@a2a-relay/protocol";
import { type ClientOptions, WebSocket } from "ws";

export interface SocketOptions extends ClientOptions {
  readonly subprotocols?: readonly string[];
}

export interface SocketClosed {
  readonly code: number;
  readonly reason: string;
}

/** All that a relay may say, with every member that some frame has. */
export interface AnyFrame {
  readonly type: string;
  readonly id?: string;
  readonly messages?: readonly MailboxItem[];
  readonly notices?: readonly MailboxNotice[];
  readonly cursor?: string;
  readonly body?: unknown;
  readonly error?: ErrorBody["error"];
}

/** One socket, as a program would use it: answers by their id, everything else in the order it came. */
export class SocketClient implements AsyncDisposable {
  readonly ws: WebSocket;
  readonly closed: Promise<SocketClosed>;
  readonly #asked = new Map<string, (frame: AnyFrame) => void>();
  readonly #came: AnyFrame[] = [];
  #wake: (() => void) | undefined;
  #count = 0;

  private constructor(ws: WebSocket) {
    this.ws = ws;
    this.closed = once(ws, "close").then((values) => {
      const [code, reason] = values as [number, Buffer];
      this.#wake?.();
      return { code, reason: reason.toString() };
    });
    ws.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as AnyFrame;
      const answered = this.#asked.get(frame.id ?? "");
      if (answered === undefined) this.#came.push(frame);
      else answered(frame);
      this.#wake?.();
    });
  }

  static async open(url: string, path: string, options: SocketOptions = {}): Promise<SocketClient> {
    const { subprotocols = [], ...more } = options;
    const ws = new WebSocket(url.replace(/^http/, "ws") + path, [...subprotocols], more);
    const client = new SocketClient(ws);
    await once(ws, "open");
    return client;
  }

  /** The answer must be a refusal of the handshake; its status and body. */
  static async refused(url: string, path: string, options: SocketOptions = {}): Promise<[number, AnyFrame]> {
    const { subprotocols = [], ...more } = options;
    const ws = new WebSocket(url.replace(/^http/, "ws") + path, [...subprotocols], more);
    const [, answer] = (await once(ws, "unexpected-response")) as [
      unknown,
      AsyncIterable<Buffer> & { readonly statusCode: number },
    ];
    let text = "";
    for await (const chunk of answer) text += chunk.toString();
    return [answer.statusCode, JSON.parse(text) as AnyFrame];
  }

  /** The whole frame of the answer. */
  request(verb: string, input?: unknown): Promise<AnyFrame> {
    this.#count += 1;
    const id = `r${this.#count}`;
    const { promise, resolve } = Promise.withResolvers<AnyFrame>();
    this.#asked.set(id, resolve);
    this.ws.send(JSON.stringify({ id, verb, ...(input === undefined ? {} : { input }) }));
    return promise;
  }

  async ask<Verb extends SocketVerb>(verb: Verb, input?: unknown): Promise<AnswerOf<SocketOperations[Verb]>> {
    const { body, error } = await this.request(verb, input);
    assert.equal(error, undefined, JSON.stringify(error));
    return body as AnswerOf<SocketOperations[Verb]>;
  }

  /** The next frame that answers nothing. */
  async next(): Promise<AnyFrame> {
    for (;;) {
      const frame = this.#came.shift();
      if (frame !== undefined) return frame;
      assert.equal(this.ws.readyState, WebSocket.OPEN, "the socket closed before a frame came");
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  /** Messages, from as many frames as it takes. */
  async messages(count: number): Promise<readonly MailboxItem[]> {
    const items: MailboxItem[] = [];
    while (items.length < count) items.push(...((await this.next()).messages ?? []));
    assert.equal(items.length, count);
    return items;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.ws.readyState === WebSocket.CLOSED) return;
    this.ws.terminate();
    await this.closed;
  }
}
