import { canonicalJson } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import { isSignedBy, type SigningKey } from "../rules/ed25519.ts";

/** Keeps a signature that was made for something else from ever being one of a capability. */
export const CAPABILITY_DOMAIN = "a2a-relay.capability.v1";

/** What the signature covers. Names are left out: they are for people, and only keys are compared. */
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

/** One text for one set of claims: a list in JSON, each claim in its place, so that no two can be confused. */
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

/** Tokens whose check is remembered; checking one costs as much as all else that a send does. */
const CHECKED_MAX = 10_000;

/** Tells what this relay signed from what was written past it, and remembers the verdict for each token. */
export class SignatureCheck {
  readonly #publicKey: string;
  /** By signature: the text it was checked with, because a row may change under an honest signature. */
  readonly #checked = new Map<string, { readonly text: string; readonly genuine: boolean }>();
  /** Records never change, so one that was found genuine is so for as long as the store hands it out. */
  readonly #genuine = new WeakSet<CapabilityRecord>();

  constructor(publicKey: string) {
    this.#publicKey = publicKey;
  }

  isGenuine(capability: CapabilityRecord): boolean {
    if (this.#genuine.has(capability)) return true;
    const genuine = this.#check(capability.signature, signedText(capability));
    if (genuine) this.#genuine.add(capability);
    return genuine;
  }

  #check(signature: string, text: string): boolean {
    const before = this.#checked.get(signature);
    if (before?.text === text) return before.genuine;
    const genuine = isSignedBy(this.#publicKey, text, signature);
    if (this.#checked.size >= CHECKED_MAX) this.#checked.clear();
    this.#checked.set(signature, { text, genuine });
    return genuine;
  }
}
