import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { InboxSource, InboxTransport } from "./mail-source.ts";
import type { RelayClient } from "./relay-client.ts";

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
