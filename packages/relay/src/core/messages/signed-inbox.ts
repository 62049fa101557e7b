import {
  formatInstant,
  LIMITS,
  parseInstant,
  RelayError,
  type SignedMessage,
  SignedMessageSchema,
} from "@a2a-relay/protocol";
import type { AccessStore, KeyRecord } from "../ports/access.ts";
import { hasExpired } from "../access/expiry.ts";
import { principalOf } from "../access/authenticator.ts";
import type { Principal } from "../access/principal.ts";
import type { RefusedCallers } from "../access/refused-callers.ts";
import { readSigningSecret, SIGNING_SECRET_BYTES } from "../keys/key-maker.ts";
import type { TenantService } from "../keys/tenant-service.ts";
import type { Clock } from "../ports/clock.ts";
import type { Randomness } from "../ports/ids.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import { isSignedWith } from "./message-signature.ts";
import type { MessageService } from "./message-service.ts";
import type { SendResult } from "./send-planner.ts";

export interface InboxParts {
  readonly store: Pick<AccessStore, "key">;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly messages: MessageService;
  readonly refusals: RefusedCallers;
  readonly tenants: TenantService;
}

/** How a message came in. */
export interface Arrival {
  readonly transport: string;
  /** The tenant that its address named; undefined: none, so that the key alone decides. */
  readonly tenant: string | undefined;
}

const MINUTE_MS = 60_000;

const parseSigned = parserOf(SignedMessageSchema, "message");

/** Takes messages from whoever shows no key but signs what it sends. The key that signed decides who sent it. */
export class SignedInbox {
  readonly #store: Pick<AccessStore, "key">;
  readonly #clock: Clock;
  readonly #messages: MessageService;
  readonly #refusals: RefusedCallers;
  readonly #tenants: TenantService;
  /** What is checked against where there is no secret, so that an unknown key takes as long as a wrong signature. */
  readonly #nobodysSecret = new Uint8Array(SIGNING_SECRET_BYTES);

  constructor(parts: InboxParts) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#messages = parts.messages;
    this.#refusals = parts.refusals;
    this.#tenants = parts.tenants;
    parts.randomness(this.#nobodysSecret);
  }

  /** A message that is refused has not used its nonce: it may come again as it is, while it is fresh. */
  async receive(input: unknown, { transport, tenant }: Arrival): Promise<SendResult> {
    const message = parseSigned(input);
    const signedAtMs = parseInstant(message.signed_at, "signed_at");
    const sender = await this.#senderOf(message, signedAtMs, transport);
    if (tenant !== undefined) await this.#tenants.enter(sender, tenant);
    return this.#messages.sendOnce(sender, message, {
      keyId: message.key_id,
      nonce: message.nonce,
      expiresAtMs: signedAtMs + LIMITS.signedMessageAgeMsMax,
    });
  }

  async #senderOf(message: SignedMessage, signedAtMs: number, transport: string): Promise<Principal> {
    const key = await this.#store.key(message.key_id);
    const kept = key?.signingSecret ?? "";
    const secret = kept === "" ? this.#nobodysSecret : readSigningSecret(kept);
    const isSigned = isSignedWith(message, secret);
    const nowMs = this.#clock.nowMs();
    if (key === undefined) return this.#refuse("unknown", transport, key);
    if (key.signingSecret === null || key.agentId === null) return this.#refuse("bearer", transport, key);
    // Before the signature: there may be no secret left to check it with.
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

  /** Why is for the journal. Whoever could not sign hears nothing about the key, not even that it is there. */
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
