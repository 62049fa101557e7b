import type { Claim, WorkUnit } from "../ports/claims.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { joinedKey } from "./joined-key.ts";

/** How long a claim lasts without renewal: the work of a process that stalls longer goes to another. */
export const CLAIM_MS = 60_000;
/** How long a unit that another process holds is left alone. */
export const CLAIM_RETRY_MS = 1_000;

/** What a process does under a claim. */
export interface ClaimedWork {
  readonly claim: Claim;
  /** Ends requests under way. */
  readonly signal: AbortSignal;
}

/** Another process has taken the unit: it decides what becomes of the work, and nothing was written. */
export class ClaimLost extends Error {
  override readonly name: string = "ClaimLost";
}

/** The key contains the tenant where the work belongs to one. */
export function workUnit(kind: WorkUnit["kind"], ...key: readonly string[]): WorkUnit {
  return { kind, key: joinedKey(...key) };
}

/** The claims of one process. The background renews them; each worker releases its own. */
export class OwnClaims {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #owner: string;
  readonly #held = new Map<string, Claim>();

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock; readonly owner: string }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#owner = parts.owner;
  }

  /** The claims in the order of the units; undefined where another process holds the unit. */
  async take(units: readonly WorkUnit[]): Promise<readonly (Claim | undefined)[]> {
    if (units.length === 0) return [];
    const nowMs = this.#clock.nowMs();
    const request = { units, owner: this.#owner, nowMs, untilMs: nowMs + CLAIM_MS };
    const taken = await this.#store.claims.claim(request);
    const byUnit = new Map(taken.map((claim) => [nameOf(claim), claim]));
    for (const [name, claim] of byUnit) this.#held.set(name, claim);
    return units.map((unit) => byUnit.get(nameOf(unit)));
  }

  /** To be called several times in `CLAIM_MS`. */
  async renew(): Promise<void> {
    const held = [...this.#held.values()];
    if (held.length === 0) return;
    const kept = await this.#store.claims.renew(held, this.#clock.nowMs() + CLAIM_MS);
    const names = new Set(kept.map(nameOf));
    for (const claim of held) if (!names.has(nameOf(claim))) this.#forget(claim);
  }

  /** Does not fail: a claim that the store cannot release expires. */
  async release(claim: Claim): Promise<void> {
    this.#forget(claim);
    await this.#store.claims.release([claim]).catch(() => undefined);
  }

  #forget(claim: Claim): void {
    const name = nameOf(claim);
    if (this.#held.get(name)?.fence === claim.fence) this.#held.delete(name);
  }
}

function nameOf({ kind, key }: WorkUnit): string {
  return `${kind} ${key}`;
}
