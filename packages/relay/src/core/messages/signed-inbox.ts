import { createHmac, timingSafeEqual } from "node:crypto";
import {
  canonicalJson,
  formatInstant,
  LIMITS,
  parseInstant,
  RelayError,
  type SignedMessage,
  SignedMessageSchema,
} from "@a2a-relay/protocol";
import type { KeyRecord, KeyStore } from "../ports/access.ts";
import { hasExpired } from "../access/expiry.ts";
import { principalOf } from "../access/authenticator.ts";
import type { Principal } from "../access/principal.ts";
import type { RefusedCallers } from "../access/refused-callers.ts";
import { readSigningSecret, SIGNING_SECRET_BYTES } from "../keys/key-maker.ts";
import type { TenantService } from "../keys/tenant-service.ts";
import type { Clock } from "../ports/clock.ts";
import type { Randomness } from "../ports/ids.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { MessageService } from "./message-service.ts";
import type { SendResult } from "./decide-send.ts";

export interface InboxParts {
  readonly store: { readonly keys: KeyStore };
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly messages: MessageService;
  readonly refusals: RefusedCallers;
  readonly tenants: TenantService;
}

/** How a signed message arrived. */
export interface Arrival {
  readonly transport: string;
  /** The tenant in the URL; undefined: the key alone decides. */
  readonly tenant: string | undefined;
}

const MINUTE_MS = 60_000;

const parseSigned = parserOf(SignedMessageSchema, "message");

/** Accepts messages that are signed with a signing key instead of sent with a bearer key. The key names the sender. */
export class SignedInbox {
  readonly #store: { readonly keys: KeyStore };
  readonly #clock: Clock;
  readonly #messages: MessageService;
  readonly #refusals: RefusedCallers;
  readonly #tenants: TenantService;
  /** Checked against for an unknown key, so that it takes as long as a wrong signature. */
  readonly #decoySecret = new Uint8Array(SIGNING_SECRET_BYTES);

  constructor(parts: InboxParts) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#messages = parts.messages;
    this.#refusals = parts.refusals;
    this.#tenants = parts.tenants;
    parts.randomness(this.#decoySecret);
  }

  /** A refused message does not use its nonce: it may be sent again unchanged while it is fresh. */
  async receive(input: unknown, { transport, tenant }: Arrival): Promise<SendResult> {
    const message = parseSigned(input);
    const signedAtMs = parseInstant(message.signed_at, "signed_at");
    const sender = await this.#senderOf(message, signedAtMs, transport);
    if (tenant !== undefined) await this.#tenants.enter(sender, tenant);
    const expiresAtMs = signedAtMs + LIMITS.signedMessageAgeMsMax;
    const nonce = { keyId: message.key_id, nonce: message.nonce, expiresAtMs };
    return this.#messages.send(sender, message, { nonce });
  }

  async #senderOf(message: SignedMessage, signedAtMs: number, transport: string): Promise<Principal> {
    const key = await this.#store.keys.get(message.key_id);
    const kept = key?.signingSecret ?? "";
    const secret = kept === "" ? this.#decoySecret : readSigningSecret(kept);
    const isSigned = isSignedWith(message, secret);
    const nowMs = this.#clock.nowMs();
    if (key === undefined) return this.#refuse("unknown", transport, key);
    if (key.signingSecret === null || key.agentId === null) return this.#refuse("bearer", transport, key);
    // Before the signature: a revoked key may have no secret left.
    if (key.revokedAtMs !== null) return this.#refuse("revoked", transport, key);
    if (hasExpired(key.expiresAtMs, nowMs)) return this.#refuse("expired", transport, key);
    if (!isSigned) return this.#refuse("signature", transport, key);
    if (Math.abs(nowMs - signedAtMs) > LIMITS.signedMessageAgeMsMax) {
      const minutes = LIMITS.signedMessageAgeMsMax / MINUTE_MS;
      const here = `${formatInstant(nowMs)}, the time here`;
      const sentence = `signed_at: ${message.signed_at} is more than ${minutes} minutes from ${here}; sign anew`;
      return this.#refuse("stale", transport, key, sentence);
    }
    return principalOf(key);
  }

  /** The reason goes to the journal only: a caller that cannot sign learns nothing about the key. */
  async #refuse(
    reason: string,
    transport: string,
    key: KeyRecord | undefined,
    sentence = NOT_SIGNED,
  ): Promise<never> {
    await this.#refusals.record({ reason, transport, key });
    throw new RelayError("unauthenticated", sentence);
  }
}

const NOT_SIGNED =
  "signature: is not one of a signing key that works here, over the canonical JSON of all but itself; check key_id and secret";

/** Tells this form of signature from later ones. */
const VERSION = "v1,";

/** An HMAC over the canonical JSON of all members but `signature`. */
export function signatureOf(message: object, secret: Uint8Array): string {
  const { signature: _, ...signed } = message as SignedMessage;
  return VERSION + createHmac("sha256", secret).update(canonicalJson(signed)).digest("base64");
}

/** True if one of its signatures is right. Compares in constant time. */
export function isSignedWith(message: SignedMessage, secret: Uint8Array): boolean {
  const expected = Buffer.from(signatureOf(message, secret));
  let isRight = false;
  for (const signature of message.signature.split(" ")) {
    const given = Buffer.from(signature);
    if (given.length === expected.length && timingSafeEqual(given, expected)) isRight = true;
  }
  return isRight;
}
