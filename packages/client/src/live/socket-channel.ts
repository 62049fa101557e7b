import {
  type AckRequest,
  type AckResponse,
  type AnswerOf,
  type BatchRequest,
  type BatchResponse,
  type DeliveryView,
  type FailRequest,
  type LeaseRequest,
  type LeaseResponse,
  type MailboxSocketQuery,
  type MessageInput,
  operations,
  type RelayError,
  type ReleaseRequest,
  type ReleaseResponse,
  type RenewRequest,
  type RenewResponse,
  repeatOf,
  type SendResponse,
  type SocketFrame,
  socketOperations,
  type SocketOperations,
  type SocketVerb,
} from "@a2a-relay/protocol";
import { onAbort, pause } from "../http/abort.ts";
import { Failure, TransportBlocked } from "../http/http-answer.ts";
import { type CallOptions, type HttpExchange, whyBlocked } from "../http/http-exchange.ts";
import { withIdempotencyKey } from "../http/idempotency.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import { retryDelayMs, type RetryDelays } from "../http/retry.ts";
import { IDLE_MS } from "../http/sse-reader.ts";
import { type InboxFrame, InboxFrames } from "./inbox-frames.ts";
import { ReconnectingSocket, type ReconnectingSocketParts } from "./reconnecting-socket.ts";
import type { SocketAddress } from "./socket-connection.ts";
import { SocketRequests } from "./socket-requests.ts";

export interface SocketChannelParts {
  readonly exchange: HttpExchange;
  readonly options: FilledClientOptions;
  readonly agentId: string;
  readonly idleMs?: number | undefined;
  readonly random?: (() => number) | undefined;
}

/**
 * An agent's mailbox over one WebSocket: it answers requests and delivers messages. After a break it reconnects and
 * resumes after the last message.
 *
 * Requests that were open at a break are repeated where that is safe, as over HTTP. A lease request is not: the relay
 * may have leased messages already, and a second request would leave them under a lease that no worker knows.
 *
 * When the reader of the messages falls behind, they move to a second socket. The channel closes that one while its
 * buffer is full, so that the relay sends nothing in vain and requests on the first socket continue.
 */
export class SocketChannel {
  readonly #parts: SocketChannelParts;
  /** The query of the socket that delivers messages. */
  readonly #query: MailboxSocketQuery;
  readonly #socket: ReconnectingSocket;
  readonly #requests = new SocketRequests();
  readonly #frames: InboxFrames;
  readonly #delays: RetryDelays;
  readonly #random: () => number;
  readonly #openMs: number;
  readonly #onAway: (error: RelayError) => void;
  /** Messages come over a second socket, which is open while the buffer has room. */
  #isApart = false;
  #mailboxSocket: ReconnectingSocket | undefined;
  /** The first socket was opened without messages. */
  #isQuiet = false;

  private constructor(parts: SocketChannelParts, options: SocketOptions) {
    const { since, openMs, onAway, signal: _, ...query } = options;
    const { timeoutMs, retryDelayMs: firstMs, retryDelayMsMax: maxMs } = parts.options;
    this.#parts = parts;
    this.#delays = { firstMs, maxMs };
    this.#random = parts.random ?? Math.random;
    this.#query = query;
    this.#openMs = openMs ?? timeoutMs;
    this.#onAway = onAway ?? (() => {});
    this.#frames = new InboxFrames({
      since,
      onBehind: () => this.#closeDeliveries(),
      onRoom: () => this.#openDeliveries(),
    });
    this.#socket = this.#createSocket({
      address: () => this.#address(),
      onFrame: (frame) => this.#onFrame(frame),
      onEnd: (end) => this.#requests.broke(end),
      onOver: (error) => this.#over(error),
    });
  }

  /** Rejects when the first socket cannot be opened. */
  static async open(parts: SocketChannelParts, options: SocketOptions): Promise<SocketChannel> {
    const { signal } = options;
    signal?.throwIfAborted();
    const channel = new SocketChannel(parts, options);
    const unsubscribe = onAbort(signal, () => void channel.close());
    try {
      await channel.#socket.open();
      return channel;
    } catch (reason) {
      signal?.throwIfAborted();
      throw reason;
    } finally {
      unsubscribe();
    }
  }

  /** The cursor after the last message. */
  get cursor(): string | undefined {
    return this.#frames.cursor;
  }

  /** Messages or notices as they arrive, a page at a time, for one reader. Ends when the channel is closed. */
  frames(): AsyncIterable<InboxFrame> {
    return this.#frames;
  }

  /** As `RelayClient.send`. */
  send(message: MessageInput, options: CallOptions = {}): Promise<SendResponse> {
    return this.#ask("send", withIdempotencyKey(message), options);
  }

  sendBatch(request: BatchRequest, options: CallOptions = {}): Promise<BatchResponse> {
    return this.#ask(
      "send_batch",
      { ...request, messages: request.messages.map(withIdempotencyKey) },
      options,
    );
  }

  /** Messages that are leased after the caller has aborted the signal are released. */
  lease(request: LeaseRequest = {}, options: CallOptions = {}): Promise<LeaseResponse> {
    return this.#ask("lease", request, options, request.wait_ms);
  }

  renew(request: RenewRequest, options: CallOptions = {}): Promise<RenewResponse> {
    return this.#ask("renew", request, options);
  }

  release(request: ReleaseRequest, options: CallOptions = {}): Promise<ReleaseResponse> {
    return this.#ask("release", request, options);
  }

  ack(request: AckRequest, options: CallOptions = {}): Promise<AckResponse> {
    return this.#ask("ack", request, options);
  }

  async fail(request: FailRequest, options: CallOptions = {}): Promise<DeliveryView> {
    return (await this.#ask("fail", request, options)).delivery;
  }

  /** Open requests reject. */
  async close(): Promise<void> {
    await Promise.all([this.#socket.close(), this.#mailboxSocket?.close()]);
  }

  async #ask<Verb extends SocketVerb>(
    verb: Verb,
    input: object,
    { signal }: CallOptions,
    waitMs = 0,
  ): Promise<AnswerOf<SocketOperations[Verb]>> {
    const { timeoutMs, retries } = this.#parts.options;
    const repeat = repeatOf(socketOperations[verb], input);
    const limitMs = timeoutMs + waitMs;
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#socket.connected({ signal, limitMs: timeoutMs });
      const result = await this.#requests.ask(connection, { verb, input, limitMs, signal });
      // The client trusts the relay's answers to have the declared shape.
      if (!(result instanceof Failure)) return result as AnswerOf<SocketOperations[Verb]>;
      if (!result.allows(repeat) || attempt > retries) throw result.error;
      await pause(retryDelayMs(attempt, this.#delays, this.#random), { signal });
    }
  }

  #onFrame(frame: SocketFrame): void {
    if (frame.type === "answer") {
      this.#requests.answered(frame);
      this.#quieten();
    } else if (!this.#isApart) this.#show(frame);
  }

  #show(frame: SocketFrame): void {
    if (frame.type === "mail" || frame.type === "notice") this.#frames.add(frame);
  }

  #over(error: RelayError | undefined): void {
    this.#frames.end(error);
    void this.#mailboxSocket?.close();
  }

  #closeDeliveries(): void {
    this.#isApart = true;
    void this.#mailboxSocket?.close();
    this.#mailboxSocket = undefined;
    this.#quieten();
  }

  #openDeliveries(): void {
    const socket = this.#createSocket({
      address: () => this.#addressOf({ ...this.#query, since: this.cursor }),
      onFrame: (frame) => {
        // A replaced socket may still deliver a frame; the new one delivers it again.
        if (socket === this.#mailboxSocket) this.#show(frame);
      },
      onEnd: () => {},
      onOver: (error) => {
        if (error !== undefined) this.#frames.end(error);
      },
    });
    this.#mailboxSocket = socket;
    socket.start();
  }

  /** Reopens the first socket without messages, once it has no open requests. */
  #quieten(): void {
    if (this.#isApart && !this.#isQuiet && this.#requests.isIdle) this.#socket.reopen();
  }

  #createSocket(
    own: Pick<ReconnectingSocketParts, "address" | "onFrame" | "onEnd" | "onOver">,
  ): ReconnectingSocket {
    const { exchange, agentId, idleMs = IDLE_MS } = this.#parts;
    return new ReconnectingSocket({
      ...own,
      whyClosed: (call) => whyBlocked(exchange, agentId, "no WebSocket can be opened", call),
      delays: this.#delays,
      openMs: this.#openMs,
      idleMs,
      random: this.#random,
      onAway: this.#onAway,
    });
  }

  #address(): SocketAddress {
    this.#isQuiet = this.#isApart;
    const quiet = this.#isApart ? true : this.#query.quiet;
    return this.#addressOf({ ...this.#query, quiet, since: this.cursor });
  }

  #addressOf(query: object): SocketAddress {
    const { exchange, options, agentId } = this.#parts;
    const { apiKey } = options;
    const WebSocket = options.webSocket();
    if (WebSocket === undefined) {
      throw new TransportBlocked(
        "there is no WebSocket here; give one as `webSocket`, such as that of the ws package",
      );
    }
    const url = exchange.urlOf(operations.mailboxes.socket, { params: { agent_id: agentId }, query });
    return { WebSocket, apiKey, url };
  }
}

/** What the socket delivers by itself. The signal bounds only the opening. */
export interface SocketOptions extends MailboxSocketQuery, CallOptions {
  /** The time limit of opening, in milliseconds. Default: the client's `timeoutMs`. */
  readonly openMs?: number | undefined;
  /** Called after each failed attempt to reconnect. */
  readonly onAway?: ((error: RelayError) => void) | undefined;
}

/** The time limit of opening where other transports can be used instead, in milliseconds. */
export const SOCKET_OPEN_MS = 5_000;
