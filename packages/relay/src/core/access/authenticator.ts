import { hash, timingSafeEqual } from "node:crypto";
import { RelayError } from "@a2a-relay/protocol";
import { DEFAULT_TENANT, operatorOf, type Principal } from "./principal.ts";

/** Turns the credential of a call into who is calling. */
export interface Authenticator {
  /** Whom every caller is taken for, where no credential is asked. */
  readonly everybody?: Principal;
  /** `unauthenticated` when the credential is missing or unknown. */
  authenticate(bearer: string | undefined): Promise<Principal>;
}

/** No keys configured: whoever can reach the loopback address is the operator. */
export class LocalTrust implements Authenticator {
  readonly everybody: Principal = operatorOf(DEFAULT_TENANT);

  async authenticate(): Promise<Principal> {
    return this.everybody;
  }
}

/** One key for all: whoever holds it is the operator. */
export class ApiKeyAuthenticator implements Authenticator {
  readonly #keyDigest: Buffer;

  constructor(apiKey: string) {
    this.#keyDigest = digest(apiKey);
  }

  async authenticate(bearer: string | undefined): Promise<Principal> {
    if (bearer === undefined) {
      throw new RelayError("unauthenticated", "an API key is needed: send Authorization: Bearer <key>");
    }
    // Digests have one length, so the comparison tells nothing about the key, not even how long it is.
    if (timingSafeEqual(digest(bearer), this.#keyDigest)) return operatorOf(DEFAULT_TENANT);
    throw new RelayError("unauthenticated", "this API key is not known here");
  }
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
