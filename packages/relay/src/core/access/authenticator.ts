import { hash, timingSafeEqual } from "node:crypto";
import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { KeyRecord, KeyStore } from "../ports/access.ts";
import type { Clock } from "../ports/clock.ts";
import { hasExpired } from "./expiry.ts";
import { type Principal, rootOperator } from "./principal.ts";
import type { RefusedCallers } from "./refused-callers.ts";

/** Finds the principal that a credential belongs to. */
export interface Authenticator {
  /** The principal of a caller without a credential; absent: such callers are refused. */
  readonly everybody?: Principal;
  /** `authorization` is the value of the HTTP header. `unauthenticated` when it is missing or not a valid key. */
  authenticate(authorization: string | undefined, transport: string): Promise<Principal>;
}

export interface KeyAuthenticatorParts {
  readonly store: { readonly keys: KeyStore };
  readonly clock: Clock;
  readonly refusals: RefusedCallers;
}

const BEARER = /^bearer(?: +(.*))?$/i;
const TOKEN = /^\S+$/;
const KEY_TEXT = /^(key_[0-9a-f-]{36})\.([1-9A-HJ-NP-Za-km-z]{32,44})$/;

/**
 * Accepts the key of the configuration, which belongs to the relay's operator, and keys that this relay made. Without
 * a key in the configuration, a caller without a credential is the relay's operator; other keys are still checked.
 */
export class KeyAuthenticator implements Authenticator {
  readonly everybody?: Principal;
  readonly #store: { readonly keys: KeyStore };
  readonly #clock: Clock;
  readonly #refusals: RefusedCallers;
  readonly #rootDigest: Buffer | undefined;

  constructor(parts: KeyAuthenticatorParts, settings: { readonly apiKey: string | undefined }) {
    const { apiKey } = settings;
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#refusals = parts.refusals;
    if (apiKey === undefined) this.everybody = rootOperator();
    this.#rootDigest = apiKey === undefined ? undefined : secretDigestOf(apiKey);
  }

  async authenticate(authorization: string | undefined, transport: string): Promise<Principal> {
    if (authorization === undefined) return this.everybody ?? this.#refuse("missing", transport);
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return this.#refuse("scheme", transport);
    const token = bearer[1] ?? "";
    if (!TOKEN.test(token)) return this.#refuse("malformed", transport);
    const [, id, secret] = KEY_TEXT.exec(token) ?? [];
    const key = id === undefined ? undefined : await this.#store.keys.get(id);
    if (key === undefined || secret === undefined) {
      return this.#isRoot(token) ? rootOperator() : this.#refuse("unknown", transport);
    }
    const fault = this.#faultOf(key, secret);
    return fault === undefined ? principalOf(key) : this.#refuse(fault, transport, key);
  }

  /**
   * A caller without the right secret learns nothing about the key, not even that it exists. Signing keys are no bearer
   * tokens.
   */
  #faultOf(key: KeyRecord, secret: string): RefusalReason | undefined {
    const isRight = timingSafeEqual(secretDigestOf(secret), Buffer.from(key.digest, "hex"));
    if (!isRight || key.signingSecret !== null) return "unknown";
    if (key.revokedAtMs !== null) return "revoked";
    return hasExpired(key.expiresAtMs, this.#clock.nowMs()) ? "expired" : undefined;
  }

  #isRoot(token: string): boolean {
    return this.#rootDigest !== undefined && timingSafeEqual(secretDigestOf(token), this.#rootDigest);
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

/** The principal that holds the key. */
export function principalOf({ id: keyId, tenant, agentId, verbs, expiresAtMs }: KeyRecord): Principal {
  const credential = {
    tenant,
    keyId,
    ...(verbs === null ? {} : { verbs: new Set(verbs) }),
    ...(expiresAtMs === null ? {} : { expiresAtMs }),
  };
  return agentId === null
    ? { kind: "operator", isRoot: false, ...credential }
    : { kind: "agent", agentId, ...credential };
}

/** Digests have one length, so comparing them in constant time does not reveal the length of the secret. */
export function secretDigestOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
