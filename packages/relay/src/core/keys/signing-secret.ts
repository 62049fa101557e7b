import type { Randomness } from "../ports/ids.ts";

/** How Standard Webhooks marks a secret; the rest is its bytes in base64. */
const PREFIX = "whsec_";
export const SIGNING_SECRET_BYTES = 32;

export function newSigningSecret(fill: Randomness): string {
  const bytes = new Uint8Array(SIGNING_SECRET_BYTES);
  fill(bytes);
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/** The bytes of a secret that was written here. */
export function readSigningSecret(text: string): Buffer {
  return Buffer.from(text.slice(PREFIX.length), "base64");
}
