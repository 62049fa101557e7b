import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { SOCKET_OPEN_MS, SocketChannel, type SocketChannelParts } from "../live/socket-channel.ts";

/** Leases an agent's messages, over any transport. */
export interface InboxSource {
  /**
   * Waits for messages about as long as the request says. `unavailable` also when the answer got lost, and with it
   * leases that only the relay knows.
   */
  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse>;
  /** Resolves when the relay leases nothing more to this source. */
  close(): Promise<void>;
}

export interface InboxTransport {
  /** Rejects with TransportBlocked when the relay can be reached, but not over this transport. */
  open(options: { readonly signal: AbortSignal }): Promise<InboxSource>;
}

/** Long polls, which work wherever HTTP does. */
export class PollInboxSource implements InboxSource, InboxTransport {
  readonly #client: RelayClient;
  readonly #agentId: string;

  constructor(client: RelayClient, agentId: string) {
    this.#client = client;
    this.#agentId = agentId;
  }

  async open(): Promise<InboxSource> {
    return this;
  }

  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    return this.#client.lease(this.#agentId, request, options);
  }

  async close(): Promise<void> {}
}

/** Leases over a quiet socket: the relay answers when a message arrives. */
export class SocketInboxSource implements InboxSource {
  readonly #channel: SocketChannel;

  private constructor(channel: SocketChannel) {
    this.#channel = channel;
  }

  static async open(
    parts: SocketChannelParts,
    options: { readonly signal: AbortSignal },
  ): Promise<SocketInboxSource> {
    const { signal } = options;
    const opening = { quiet: true, openMs: SOCKET_OPEN_MS, signal };
    return new SocketInboxSource(await SocketChannel.open(parts, opening));
  }

  lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    return this.#channel.lease(request, options);
  }

  close(): Promise<void> {
    return this.#channel.close();
  }
}
