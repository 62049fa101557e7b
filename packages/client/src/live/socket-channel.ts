import type { AckRequest, AckResponse, BatchRequest, BatchResponse, DeliveryView, FailRequest, LeaseRequest, LeaseResponse, MailboxSocketQuery, MessageInput, RelayError, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse, SendResponse, SocketFrame, SocketVerb } from "@a2a-relay/protocol";
import { onAbort, pause } from "../http/abort.ts";
import { Failure, type Repeat, TransportBlocked } from "../http/http-answer.ts";
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
 * An agent's mailbox over one WebSocket: what is asked is answered over it, and mail comes by itself. It is opened
 * again whenever it breaks, and goes on after the last mail that came.
 *
 * What was asked when it broke is asked again where that can do no harm, as over HTTP. A lease is not: the relay may
 * have leased mail already, and a second one would leave it lying under a lease that nobody knows.
 *
 * A reader of mail that falls behind gets it over a second socket from then on. That one can be closed while there is
 * no room, so that the relay sends nothing in vain, and what is asked over the first one is not disturbed.
 */
export class SocketChannel {
  readonly #parts: SocketChannelParts;
  /** What shows mail. */
  readonly #query: MailboxSocketQuery;
  readonly #socket: ReconnectingSocket;
  readonly #requests = new SocketRequests();
  readonly #frames: InboxFrames;
  readonly #delays: RetryDelays;
  readonly #random: () => number;
  readonly #openMs: number;
  readonly #onAway: (error: RelayError) => void;
  /** MailboxMessage has a socket of its own, which is open while there is room for it. */
  #isApart = false;
  #mailboxSocket: ReconnectingSocket | undefined;
  /** The first socket was opened when mail had its own already. */
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
      onBehind: () => this.#closeMail(),
      onRoom: () => this.#openDeliveries(),
    });
    this.#socket = this.#createSocket({
      address: () => this.#address(),
      onFrame: (frame) => this.#heard(frame),
      onEnd: (end) => this.#requests.broke(end),
      onOver: (error) => this.#over(error),
    });
  }

  /** Rejects when the first socket cannot be opened, be it that only this way to the relay is closed. */
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

  /** Behind the last mail that came. */
  get cursor(): string | undefined {
    return this.#frames.cursor;
  }

  /** MailboxMessage as it comes, a page at a time, for one reader. Ends when the channel is closed. */
  mail(): AsyncIterable<InboxFrame> {
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

  /** What is leased after its caller has aborted the signal is given back. */
  lease(request: LeaseRequest = {}, options: CallOptions = {}): Promise<LeaseResponse> {
    return this.#ask("lease", request, options, { repeat: "if_not_done", waitMs: request.wait_ms });
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
    return (await this.#ask<{ readonly delivery: DeliveryView }>("fail", request, options)).delivery;
  }

  /** Ends it for good. What was asked and not answered yet rejects. */
  async close(): Promise<void> {
    await Promise.all([this.#socket.close(), this.#mailboxSocket?.close()]);
  }

  async #ask<T>(
    verb: SocketVerb,
    input: object,
    { signal }: CallOptions,
    how: { readonly repeat: Repeat; readonly waitMs?: number | undefined } = { repeat: "always" },
  ): Promise<T> {
    const { timeoutMs, retries } = this.#parts.options;
    const limitMs = timeoutMs + (how.waitMs ?? 0);
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#socket.connected({ signal, limitMs: timeoutMs });
      const result = await this.#requests.ask(connection, { verb, input, limitMs, signal });
      // The relay's answers are trusted to have the shape that the protocol package declares.
      if (!(result instanceof Failure)) return result as T;
      if (!result.allows(how.repeat) || attempt > retries) throw result.error;
      await pause(retryDelayMs(attempt, this.#delays, this.#random), { signal });
    }
  }

  #heard(frame: SocketFrame): void {
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

  #closeMail(): void {
    this.#isApart = true;
    void this.#mailboxSocket?.close();
    this.#mailboxSocket = undefined;
    this.#quieten();
  }

  #openDeliveries(): void {
    const socket = this.#createSocket({
      address: () => this.#addressOf({ ...this.#query, since: this.cursor }),
      onFrame: (frame) => {
        // One that was left may still have something to say, which the next one says again.
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

  /** Opens the first socket anew, without mail, as soon as no request is lost by that. */
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
    const path = ["mailbox", agentId, "ws"];
    return { WebSocket, apiKey, url: exchange.urlOf({ path, query }) };
  }
}

/** What the socket shows by itself. The signal is about its opening; from then on it lives until it is closed. */
export interface SocketOptions extends MailboxSocketQuery, CallOptions {
  /** How long opening it may take, in milliseconds. Default: the client's `timeoutMs`. */
  readonly openMs?: number | undefined;
  /** Told of each failure to open it again, so that a long absence does not go unnoticed. */
  readonly onAway?: ((error: RelayError) => void) | undefined;
}

/** Where there are other ways, a socket that takes longer to open is not worth waiting for, in milliseconds. */
export const SOCKET_OPEN_MS = 5_000;
