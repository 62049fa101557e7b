import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import type { Ledger } from "./ledger.ts";

/** A delivery as it was seen, and its row. */
export interface KnownPlace {
  readonly delivery: DeliveryRecord;
  readonly ref: number;
}

/** Deliveries of each sort that are remembered: as many as may be under work in a few turns. */
const KNOWN_MAX = 1_000;

/**
 * What is known of deliveries without looking: whoever reads mail mostly changes it next, and whoever leases it
 * acknowledges it next.
 */
export class KnownPlaces {
  readonly #ledger: Ledger;
  /** What was read, which may have changed since. */
  readonly #read = new Map<string, KnownPlace>();
  /** What was leased, as it is now: whatever changes it takes it from here. */
  readonly #leased = new Map<string, KnownPlace>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  noteRead(known: KnownPlace): void {
    remember(this.#read, known);
  }

  /** Inside a commit. */
  noteLeased(known: KnownPlace): void {
    remember(this.#leased, known);
    this.#ledger.onRollBack(() => this.#leased.delete(known.delivery.messageId));
  }

  leased(tenant: string, messageId: string): DeliveryRecord | undefined {
    const known = this.#leased.get(messageId);
    return known?.delivery.tenant === tenant ? known.delivery : undefined;
  }

  /** Of the very version; and as it is about to change, it is not known any more. */
  take({ tenant, messageId, version }: DeliveryRecord): KnownPlace | undefined {
    const known = this.#leased.get(messageId) ?? this.#read.get(messageId);
    this.forget(messageId);
    return known?.delivery.tenant === tenant && known.delivery.version === version ? known : undefined;
  }

  forget(messageId: string): void {
    this.#leased.delete(messageId);
    this.#read.delete(messageId);
  }
}

function remember(places: Map<string, KnownPlace>, known: KnownPlace): void {
  if (places.size >= KNOWN_MAX) places.clear();
  places.set(known.delivery.messageId, known);
}
