import { canonicalJson, formatInstant } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { isSignedBy, type SigningKey } from "../rules/ed25519.ts";
import { type ScopedRequest, scopeRefusal, usesLeft } from "./capability-scope.ts";

/** Part of every signed text, so that a signature made for another purpose is never valid for a capability. */
export const CAPABILITY_DOMAIN = "a2a-relay.capability.v1";

/** What the signature covers. Names are left out: they are for people, and the relay compares keys only. */
export type CapabilityClaims = Pick<
  CapabilityRecord,
  | "tenant"
  | "id"
  | "nonce"
  | "subjectKey"
  | "action"
  | "scope"
  | "grantedBy"
  | "parentId"
  | "issuedAtMs"
  | "expiresAtMs"
>;

/** A JSON list with a fixed order of claims, so that two sets of claims never give the same text. */
export function signedText(claims: CapabilityClaims): string {
  return canonicalJson([
    CAPABILITY_DOMAIN,
    claims.tenant,
    claims.id,
    claims.nonce,
    claims.subjectKey,
    claims.action,
    claims.scope,
    claims.grantedBy,
    claims.parentId,
    claims.issuedAtMs,
    claims.expiresAtMs,
  ]);
}

export function mint(draft: Omit<CapabilityRecord, "signature">, identity: SigningKey): CapabilityRecord {
  return { ...draft, signature: identity.sign(signedText(draft)) };
}

const GENUINE_MAX = 10_000;

/**
 * Tells tokens that this relay signed from rows that were written past it. It caches genuine tokens, because
 * verifying an Ed25519 signature takes 150 µs (2-core VM, Node 24).
 */
export class SignatureCheck {
  readonly #publicKey: string;
  /** Each with its signature and whole text: a row may change under a valid signature. */
  readonly #genuine = new Set<string>();

  constructor(publicKey: string) {
    this.#publicKey = publicKey;
  }

  isGenuine(capability: CapabilityRecord): boolean {
    const text = signedText(capability);
    const token = `${capability.signature} ${text}`;
    if (this.#genuine.has(token)) return true;
    if (!isSignedBy(this.#publicKey, text, capability.signature)) return false;
    if (this.#genuine.size >= GENUINE_MAX) this.#genuine.clear();
    this.#genuine.add(token);
    return true;
  }
}

/** Why a capability is invalid. */
export type Fault = "revoked" | "expired" | "not signed by this relay" | "spent" | "without its parent";

/** Either the fault, or the capability that this one was delegated from. */
export type Standing =
  | { readonly fault: Fault }
  | { readonly fault: undefined; readonly parent: CapabilityRecord | undefined };

/** A capability that admits the act, and the one it was delegated from. */
export interface FoundCapability {
  readonly capability: CapabilityRecord;
  readonly parent: CapabilityRecord | undefined;
}

export type CapabilitySearch =
  | { readonly found: FoundCapability }
  | { readonly found: undefined; readonly why: Shortfall };

export interface Shortfall {
  /** Why a valid capability's scope does not admit the act; undefined when the holder has no valid one. */
  readonly scope?: string;
  /** An invalid capability for the action. */
  readonly nearest?: InvalidCapability;
}

export interface InvalidCapability {
  readonly capability: CapabilityRecord;
  readonly fault: Fault;
}

/** Decides which capabilities are valid now. */
export class CapabilityValidity {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #signatures: SignatureCheck;

  constructor(parts: { readonly store: RelayStore; readonly clock: Clock; readonly identity: SigningKey }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#signatures = new SignatureCheck(parts.identity.publicKey);
  }

  /** A delegated capability is valid only while its parent is, and while the parent's holder is registered. */
  async standing(capability: CapabilityRecord): Promise<Standing> {
    const { tenant, parentId } = capability;
    const fault = this.#faultOf(capability);
    if (fault !== undefined) return { fault };
    if (parentId === null) return { fault: undefined, parent: undefined };
    const parent = await this.#store.capabilities.get(tenant, parentId);
    if (parent === undefined || this.#faultOf(parent) !== undefined) return { fault: "without its parent" };
    const holder = await this.#store.agents.withKey(tenant, parent.subjectKey);
    return holder === undefined ? { fault: "without its parent" } : { fault: undefined, parent };
  }

  /** The first that admits the request; one without limited uses is preferred. `request` undefined: any scope. */
  async search(
    held: readonly CapabilityRecord[],
    request: ScopedRequest | undefined,
  ): Promise<CapabilitySearch> {
    const why: { scope?: string; nearest?: InvalidCapability } = {};
    let limited: FoundCapability | undefined;
    for (const capability of held) {
      const standing = await this.standing(capability);
      if (standing.fault !== undefined) {
        why.nearest = { capability, fault: standing.fault };
        continue;
      }
      const refusal = request === undefined ? undefined : scopeRefusal(capability.scope, request);
      if (refusal !== undefined) {
        why.scope ??= refusal;
        continue;
      }
      const found = { capability, parent: standing.parent };
      if (useOf(found).length === 0) return { found };
      limited ??= found;
    }
    return limited === undefined ? { found: undefined, why } : { found: limited };
  }

  #faultOf(capability: CapabilityRecord): Fault | undefined {
    const { revokedAtMs, expiresAtMs } = capability;
    if (revokedAtMs !== null) return "revoked";
    // Still valid in the millisecond of its expiry.
    if (expiresAtMs !== null && this.#clock.nowMs() > expiresAtMs) return "expired";
    if (!this.#signatures.isGenuine(capability)) return "not signed by this relay";
    return usesLeft(capability) === 0 ? "spent" : undefined;
  }
}

/** The records with one more use: a delegated capability also takes a use of its parent. */
export function useOf({ capability, parent }: FoundCapability): readonly CapabilityRecord[] {
  return [capability, ...(parent === undefined ? [] : [parent])]
    .filter(({ scope }) => scope.max_uses != null)
    .map((each) => ({ ...each, used: each.used + 1 }));
}

export function describeFault({ capability, fault }: InvalidCapability): string {
  const { id, expiresAtMs, used, scope } = capability;
  if (fault === "expired") return `${id} expired at ${formatInstant(expiresAtMs ?? 0)}`;
  if (fault === "spent") return `${id} is spent: ${used} of ${String(scope.max_uses)} uses`;
  return `${id} is ${fault}`;
}
