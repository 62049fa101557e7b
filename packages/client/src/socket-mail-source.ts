import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { InboxSource } from "./mail-source.ts";
import { SocketChannel, type SocketChannelParts } from "./socket-channel.ts";
import { SOCKET_OPEN_MS } from "./socket-options.ts";

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
