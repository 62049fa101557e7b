import type { Claim, ClaimRequest, ClaimStore, WorkUnit } from "../../core/ports/claims.ts";

interface HeldClaim extends Claim {
  readonly untilMs: number;
}

/**
 * The claims of a store that one process at a time opens, and so in memory: a restart voids them, and background work
 * that finds nothing to do writes nothing.
 */
export class InProcessClaims implements ClaimStore {
  readonly #held = new Map<string, HeldClaim>();
  #lastFence = 0;

  async claim({ units, owner, nowMs, untilMs }: ClaimRequest): Promise<readonly Claim[]> {
    return units.flatMap(({ kind, key }) => {
      const held = this.#held.get(keyOf({ kind, key }));
      if (held?.owner === owner) return this.#put(held, untilMs);
      if (held !== undefined && held.untilMs > nowMs) return [];
      this.#lastFence += 1;
      return this.#put({ kind, key, owner, fence: this.#lastFence }, untilMs);
    });
  }

  async renew(claims: readonly Claim[], untilMs: number): Promise<readonly Claim[]> {
    return claims.filter((claim) => this.isHeld(claim)).flatMap((claim) => this.#put(claim, untilMs));
  }

  async release(claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) if (this.isHeld(claim)) this.#held.delete(keyOf(claim));
  }

  /** Whether it is still the current claim of its unit, expired or not. */
  isHeld(claim: Claim): boolean {
    const held = this.#held.get(keyOf(claim));
    return held?.owner === claim.owner && held.fence === claim.fence;
  }

  #put({ kind, key, owner, fence }: Claim, untilMs: number): readonly Claim[] {
    const claim = { kind, key, owner, fence };
    this.#held.set(keyOf(claim), { ...claim, untilMs });
    return [claim];
  }
}

function keyOf({ kind, key }: WorkUnit): string {
  return `${kind} ${key}`;
}
