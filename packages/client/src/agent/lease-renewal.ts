import { type LeaseRef, type LeaseResponse, RelayError, type RenewResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { isUnknownAgent } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";

export interface LeaseRenewalParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly leaseMs: number;
  readonly errors: BackgroundErrors;
  /** Ends all requests when the agent ends. */
  readonly signal: AbortSignal;
}

/**
 * Keeps the leases of mail that is being worked on, all in one request, every third of their time: two
 * renewals may get lost before a lease runs out. It is also how a worker hears that its task was canceled.
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

  hold(mail: LeasedMessage): void {
    this.#held.set(mail.item.lease.id, mail);
    this.#schedule();
  }

  drop(mail: LeasedMessage): void {
    this.#held.delete(mail.item.lease.id);
    if (this.#held.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Everything that is held, for a reason that concerns all of it. */
  loseAll(error: RelayError): void {
    for (const mail of this.#held.values()) mail.lose(error);
  }

  /** Asks now instead of at the next turn. Never rejects. */
  async renewNow(): Promise<void> {
    const { client, agentId, leaseMs, errors, signal } = this.#parts;
    const held = new Map(this.#held);
    const leases = [...held.values()].filter((mail) => !mail.signal.aborted).map((mail) => mail.ref);
    if (leases.length === 0) return;
    try {
      const { results } = await client.renew(agentId, { leases, lease_ms: leaseMs }, { signal });
      loseRefused(held, leases, results);
      errors.recovered("renew");
    } catch (reason) {
      if (signal.aborted) return;
      errors.report(reason, "renew");
      // A lease never ends by the clock alone, so while the relay is away the work goes on. But a relay that
      // knows nothing of the agent any more knows nothing of its leases either.
      if (isUnknownAgent(reason)) {
        this.loseAll(new RelayError("lease_lost", reason.message, { cause: reason }));
      }
    }
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#parts.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#turn(), this.#parts.leaseMs / 3);
  }

  async #turn(): Promise<void> {
    await this.renewNow();
    this.#timer = undefined;
    if (this.#held.size > 0) this.#schedule();
  }
}

/** Results come in the order of the leases that were asked for. */
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
