import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";

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
