import { DELIVERY_PURPOSES, type DeliveryPurpose } from "../../core/ports/deliveries.ts";

/** Removed places that are kept until they are worth a compaction. */
const GAPS_MIN = 64;
/** No delivery has this ref. */
const GAP = 0;

export interface AvailablePlace {
  readonly position: number;
  readonly ref: number;
  readonly expiresAtMs: number;
  readonly purpose: DeliveryPurpose;
  /** The worker that alone may lease it. */
  readonly reservedFor: string | null;
}

/** What a reader or worker passes over. */
export interface Wanted {
  /** MailboxMessage whose time is over by then. */
  readonly nowMs: number;
  /** MailboxMessage that is kept for another worker; without it reservations do not matter. */
  readonly worker?: string | null;
  /** MailboxMessage for anything else; without it the purpose does not matter. */
  readonly purpose?: DeliveryPurpose | undefined;
}

/**
 * The available mail of one mailbox, by position. New mail comes in at the end and mostly leaves at the
 * front, so arrays with gaps do what a tree would, in 32 bytes a message. It knows what a reader or worker must
 * pass over, so that a mailbox full of such mail costs them a walk in memory and not one row.
 */
export class AvailableDeliveries {
  #positions: number[] = [];
  #refs: number[] = [];
  #expiries: number[] = [];
  /** Indexes of `DELIVERY_PURPOSES`: the strings that rows bring would each be kept. */
  #purposes: number[] = [];
  /** By position. Few messages are kept for a worker. */
  readonly #reservations = new Map<number, string>();
  #start = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add({ position, ref, expiresAtMs, purpose, reservedFor }: AvailablePlace): void {
    this.#size += 1;
    const purposeIndex = DELIVERY_PURPOSES.indexOf(purpose);
    if (reservedFor !== null) this.#reservations.set(position, reservedFor);
    // With `at(-1)` this would be a call into the engine's runtime, for every message.
    const count = this.#positions.length;
    if (count === 0 || (this.#positions[count - 1] ?? 0) < position) {
      this.#positions.push(position);
      this.#refs.push(ref);
      this.#expiries.push(expiresAtMs);
      this.#purposes.push(purposeIndex);
      return;
    }
    // Only a rollback, or a change of what is known of the mail, gives it its old place back.
    const index = this.#indexFrom(position);
    const known = this.#positions[index] === position ? 1 : 0;
    this.#positions.splice(index, known, position);
    this.#refs.splice(index, known, ref);
    this.#expiries.splice(index, known, expiresAtMs);
    this.#purposes.splice(index, known, purposeIndex);
    this.#start = Math.min(this.#start, index);
  }

  remove(position: number): void {
    const index = this.#indexFrom(position);
    if (this.#positions[index] !== position || this.#refs[index] === GAP) return;
    this.#refs[index] = GAP;
    this.#reservations.delete(position);
    this.#size -= 1;
    while (this.#refs[this.#start] === GAP) this.#start += 1;
    const gaps = this.#refs.length - this.#size;
    if (gaps > GAPS_MIN && gaps > this.#size) this.#compact();
  }

  /** The oldest mail after the position, of what is wanted. */
  next(afterPosition: number, wanted?: Wanted): AvailablePlace | undefined {
    let index = afterPosition <= 0 ? this.#start : this.#indexFrom(afterPosition + 1);
    while (index < this.#refs.length && !this.#isWanted(index, wanted)) index += 1;
    if (index >= this.#refs.length) return undefined;
    const position = this.#positions[index];
    const ref = this.#refs[index];
    const expiresAtMs = this.#expiries[index];
    const purpose = DELIVERY_PURPOSES[this.#purposes[index] ?? -1];
    if (position === undefined || ref === undefined || expiresAtMs === undefined || purpose === undefined) {
      return undefined;
    }
    return { position, ref, expiresAtMs, purpose, reservedFor: this.#reservations.get(position) ?? null };
  }

  #isWanted(index: number, wanted: Wanted | undefined): boolean {
    if (this.#refs[index] === GAP) return false;
    if (wanted === undefined) return true;
    if ((this.#expiries[index] ?? 0) <= wanted.nowMs) return false;
    const isForThis =
      wanted.purpose === undefined || DELIVERY_PURPOSES[this.#purposes[index] ?? -1] === wanted.purpose;
    if (!isForThis) return false;
    if (wanted.worker === undefined || this.#reservations.size === 0) return true;
    const reservedFor = this.#reservations.get(this.#positions[index] ?? 0);
    return reservedFor === undefined || reservedFor === wanted.worker;
  }

  /** The first index whose position is not before the given one. */
  #indexFrom(position: number): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#positions[middle] ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compact(): void {
    const kept = (_: number, index: number): boolean => this.#refs[index] !== GAP;
    this.#positions = this.#positions.filter(kept);
    this.#expiries = this.#expiries.filter(kept);
    this.#purposes = this.#purposes.filter(kept);
    this.#refs = this.#refs.filter(kept);
    this.#start = 0;
  }
}
