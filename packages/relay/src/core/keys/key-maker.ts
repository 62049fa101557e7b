import { type KeyUse, toBase58 } from "@a2a-relay/protocol";
import type { Identifiers, Randomness } from "../ports/ids.ts";
import type { KeyRecord } from "../ports/access.ts";
import { digestOf } from "../access/key-secret.ts";
import { newSigningSecret } from "./signing-secret.ts";

const SECRET_BYTES = 32;

/** What a new key is for. */
export type KeyScope = Pick<
  KeyRecord,
  "tenant" | "agentId" | "verbs" | "createdAtMs" | "createdBy" | "expiresAtMs" | "replaces"
>;

/** A key as it is handed over, once, and as it is kept. */
export interface NewKey {
  /** `<key id>.<secret>`, or the secret alone where it signs: the id goes with each message. */
  readonly text: string;
  readonly record: KeyRecord;
}

/** Makes keys: 256 random bits behind an id that may be known. */
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
    const digest = digestOf(secret).toString("hex");
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
