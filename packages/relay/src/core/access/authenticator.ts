import { timingSafeEqual } from "node:crypto";
import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { AccessStore, KeyRecord } from "../ports/access.ts";
import { hasExpired } from "./expiry.ts";
import { principalOf } from "./key-principal.ts";
import { digestOf, isSecret, readKeyText } from "./key-secret.ts";
import { type Principal, rootOperator } from "./principal.ts";
import type { RefusedCallers } from "./refused-callers.ts";

/** KeyedMutex the credential of a call into who is calling. */
export interface Authenticator {
  /** Whom a caller without any credential is taken for; absent: nobody comes in without one. */
  readonly everybody?: Principal;
  /** `authorization` as the header of that name has it. `unauthenticated` when it is missing or opens nothing. */
  authenticate(authorization: string | undefined, transport: string): Promise<Principal>;
}

export interface KeyAuthenticatorParts {
  readonly store: Pick<AccessStore, "key">;
  readonly clock: Clock;
  readonly refusals: RefusedCallers;
}

const BEARER = /^bearer(?: +(.*))?$/i;
const TOKEN = /^\S+$/;

/**
 * Knows the key of the configuration, whose holder runs the relay, and those that were made here. Without a key
 * in the configuration, whoever can reach the loopback address runs it; a key that is shown is checked all the
 * same.
 */
export class KeyAuthenticator implements Authenticator {
  readonly everybody?: Principal;
  readonly #store: Pick<AccessStore, "key">;
  readonly #clock: Clock;
  readonly #refusals: RefusedCallers;
  readonly #rootDigest: Buffer | undefined;

  constructor(parts: KeyAuthenticatorParts, settings: { readonly apiKey: string | undefined }) {
    const { apiKey } = settings;
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#refusals = parts.refusals;
    if (apiKey === undefined) this.everybody = rootOperator();
    this.#rootDigest = apiKey === undefined ? undefined : digestOf(apiKey);
  }

  async authenticate(authorization: string | undefined, transport: string): Promise<Principal> {
    if (authorization === undefined) return this.everybody ?? this.#refuse("missing", transport);
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return this.#refuse("scheme", transport);
    const token = bearer[1] ?? "";
    if (!TOKEN.test(token)) return this.#refuse("malformed", transport);
    const shown = readKeyText(token);
    const key = shown === undefined ? undefined : await this.#store.key(shown.id);
    if (key === undefined || shown === undefined) {
      return this.#isRoot(token) ? rootOperator() : this.#refuse("unknown", transport);
    }
    const fault = this.#faultOf(key, shown.secret);
    return fault === undefined ? principalOf(key) : this.#refuse(fault, transport, key);
  }

  /**
   * Whoever does not know the secret hears nothing about the key, not even that it is there. A secret that signs
   * messages is none that is shown.
   */
  #faultOf(key: KeyRecord, secret: string): RefusalReason | undefined {
    if (!isSecret(secret, Buffer.from(key.digest, "hex")) || key.signingSecret !== null) return "unknown";
    if (key.revokedAtMs !== null) return "revoked";
    return hasExpired(key.expiresAtMs, this.#clock.nowMs()) ? "expired" : undefined;
  }

  /** Digests have one length, so the comparison tells nothing about the key, not even how long it is. */
  #isRoot(token: string): boolean {
    return this.#rootDigest !== undefined && timingSafeEqual(digestOf(token), this.#rootDigest);
  }

  async #refuse(reason: RefusalReason, transport: string, key?: KeyRecord): Promise<never> {
    await this.#refusals.record({ reason, transport, key });
    throw new RelayError("unauthenticated", SENTENCES[reason](key));
  }
}

const SENTENCES = {
  missing: () => "missing Authorization header; send Authorization: Bearer <key>",
  scheme: () => "expected `Authorization: Bearer <token>`",
  malformed: () => "malformed bearer token; send Authorization: Bearer <key>",
  unknown: () => "unknown or revoked token; an operator of this relay makes keys",
  revoked: (key) => `this key was revoked at ${formatInstant(key?.revokedAtMs ?? 0)}; ask for a new one`,
  expired: (key) => `this key expired at ${formatInstant(key?.expiresAtMs ?? 0)}; ask for a new one`,
} as const satisfies Record<string, (key: KeyRecord | undefined) => string>;
type RefusalReason = keyof typeof SENTENCES;
