import { type KeyUse, toBase58 } from "@a2a-relay/protocol";
import type { Identifiers, Randomness } from "../ports/ids.ts";
import type { KeyRecord } from "../ports/access.ts";
import { secretDigestOf } from "../access/authenticator.ts";

const SECRET_BYTES = 32;
/** The prefix that Standard Webhooks requires; the secret's bytes follow in base64. */
const SIGNING_PREFIX = "whsec_";
export const SIGNING_SECRET_BYTES = 32;

/** The holder and limits of a new key. */
export type KeyScope = Pick<
  KeyRecord,
  "tenant" | "agentId" | "verbs" | "createdAtMs" | "createdBy" | "expiresAtMs" | "replaces"
>;

/** A key as the caller gets it, once, and as the store keeps it. */
export interface NewKey {
  /** `<key id>.<secret>`; for a signing key the secret alone, because each signed message names the key id. */
  readonly text: string;
  readonly record: KeyRecord;
}

/** Makes keys of a public id and 256 random bits. */
export class KeyMaker {
  readonly #ids: Identifiers;
  readonly #fill: Randomness;

  constructor(parts: { readonly ids: Identifiers; readonly randomness: Randomness }) {
    this.#ids = parts.ids;
    this.#fill = parts.randomness;
  }

  make(scope: KeyScope, use: KeyUse = "bearer"): NewKey {
    const id = this.#ids.key();
    const signs = use === "sign";
    const secret = signs ? newSigningSecret(this.#fill) : this.#bearerSecret();
    const digest = secretDigestOf(secret).toString("hex");
    const signingSecret = signs ? secret : null;
    const record = { ...scope, id, digest, signingSecret, revokedAtMs: null, replacedBy: null, version: 0 };
    return { text: signs ? secret : `${id}.${secret}`, record };
  }

  #bearerSecret(): string {
    const bytes = new Uint8Array(SECRET_BYTES);
    this.#fill(bytes);
    return toBase58(bytes);
  }
}

export function newSigningSecret(fill: Randomness): string {
  const bytes = new Uint8Array(SIGNING_SECRET_BYTES);
  fill(bytes);
  return SIGNING_PREFIX + Buffer.from(bytes).toString("base64");
}

/** The bytes of a secret that `newSigningSecret` made. */
export function readSigningSecret(text: string): Buffer {
  return Buffer.from(text.slice(SIGNING_PREFIX.length), "base64");
}
