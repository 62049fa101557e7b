import type { LeaseRef, LeaseResponse, RelayError } from "@a2a-relay/protocol";

export type LeasedItem = LeaseResponse["messages"][number];

/** A message that this worker holds, until it is settled or lost. */
export class LeasedMessage {
  readonly item: LeasedItem;
  readonly #controller = new AbortController();

  constructor(item: LeasedItem) {
    this.item = item;
  }

  /** Aborted with a RelayError once working on it is of no use any more. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ref(): LeaseRef {
    return { message_id: this.item.message_id, lease_id: this.item.lease.id };
  }

  /** The first reason stands. */
  lose(error: RelayError): void {
    this.#controller.abort(error);
  }
}
