import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { SOCKET_OPEN_MS, SocketChannel, type SocketChannelParts } from "../live/socket-channel.ts";

/** Where an agent's mail comes from. Whatever the way, mail is taken under leases. */
export interface InboxSource {
  /**
   * Takes mail, waiting for it about as long as the request says. `unavailable` also where the answer got lost, and
   * with it leases that only the relay knows of.
   */
  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse>;
  /** Resolves when the relay leases nothing to it any more. */
  close(): Promise<void>;
}

/** A way to the mail. */
export interface InboxTransport {
  /** Rejects with TransportBlocked where the relay can be reached, but not in this way. */
  open(options: { readonly signal: AbortSignal }): Promise<InboxSource>;
}

/** Long polls: what works wherever HTTP does. */
export class PollMailSource implements InboxSource, InboxTransport {
  readonly #client: RelayClient;
  readonly #agentId: string;

  constructor(client: RelayClient, agentId: string) {
    this.#client = client;
    this.#agentId = agentId;
  }

  /** There is nothing to open: each request stands for itself. */
  async open(): Promise<InboxSource> {
    return this;
  }

  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    return this.#client.lease(this.#agentId, request, options);
  }

  async close(): Promise<void> {}
}

/** Leases over a socket that is otherwise quiet: the answer comes when the mail does. */
export class SocketMailSource implements InboxSource {
  readonly #channel: SocketChannel;

  private constructor(channel: SocketChannel) {
    this.#channel = channel;
  }

  static async open(
    parts: SocketChannelParts,
    options: { readonly signal: AbortSignal },
  ): Promise<SocketMailSource> {
    const { signal } = options;
    const opening = { quiet: true, openMs: SOCKET_OPEN_MS, signal };
    return new SocketMailSource(await SocketChannel.open(parts, opening));
  }

  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    return this.#channel.lease(request, options);
  }

  close(): Promise<void> {
    return this.#channel.close();
  }
}
