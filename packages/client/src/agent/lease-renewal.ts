import { type LeaseRef, type LeaseResponse, RelayError, type RenewResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { isUnknownAgent } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";

export interface LeaseRenewalParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly leaseMs: number;
  readonly errors: BackgroundErrors;
  /** Aborts all requests when the agent ends. */
  readonly signal: AbortSignal;
}

/**
 * Renews all held leases in one request, every third of their time: two renewals may get lost before a lease expires.
 * The answer also tells a worker that its task was canceled.
 */
export class LeaseRenewal {
  readonly #parts: LeaseRenewalParts;
  readonly #held = new Map<string, LeasedMessage>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(parts: LeaseRenewalParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  holds(leaseId: string): boolean {
    return this.#held.has(leaseId);
  }

  hold(leased: LeasedMessage): void {
    this.#held.set(leased.item.lease.id, leased);
    this.#schedule();
  }

  drop(leased: LeasedMessage): void {
    this.#held.delete(leased.item.lease.id);
    if (this.#held.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  loseAll(error: RelayError): void {
    for (const leased of this.#held.values()) leased.lose(error);
  }

  /** Never rejects. */
  async renewNow(): Promise<void> {
    const { client, agentId, leaseMs, errors, signal } = this.#parts;
    const held = new Map(this.#held);
    const leases = [...held.values()].filter((leased) => !leased.signal.aborted).map((leased) => leased.ref);
    if (leases.length === 0) return;
    try {
      const { results } = await client.renew(agentId, { leases, lease_ms: leaseMs }, { signal });
      loseRefused(held, leases, results);
      errors.recovered("renew");
    } catch (reason) {
      if (signal.aborted) return;
      errors.report(reason, "renew");
      // An expired lease may still finish, so the work continues while the relay is unreachable. But a relay that lost
      // the agent has lost its leases too.
      if (isUnknownAgent(reason)) {
        this.loseAll(new RelayError("lease_lost", reason.message, { cause: reason }));
      }
    }
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#parts.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#renew(), this.#parts.leaseMs / 3);
  }

  async #renew(): Promise<void> {
    await this.renewNow();
    this.#timer = undefined;
    if (this.#held.size > 0) this.#schedule();
  }
}

/** Results have the order of the requested leases. */
function loseRefused(
  held: ReadonlyMap<string, LeasedMessage>,
  leases: readonly LeaseRef[],
  results: RenewResponse["results"],
): void {
  for (const [index, result] of results.entries()) {
    const lease = leases[index];
    if (result.ok || lease?.message_id !== result.message_id) continue;
    const { code, message, details } = result.error;
    held.get(lease.lease_id)?.lose(new RelayError(code, message, { details }));
  }
}

export type LeasedItem = LeaseResponse["messages"][number];

/** A message that this worker has leased, until it is settled or lost. */
export class LeasedMessage {
  readonly item: LeasedItem;
  readonly #controller = new AbortController();

  constructor(item: LeasedItem) {
    this.item = item;
  }

  /** Aborted with a RelayError when the work should stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ref(): LeaseRef {
    return { message_id: this.item.message_id, lease_id: this.item.lease.id };
  }

  /** Only the first call has an effect. */
  lose(error: RelayError): void {
    this.#controller.abort(error);
  }
}
