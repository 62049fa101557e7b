import { hash, timingSafeEqual } from "node:crypto";

const KEY_TEXT = /^(key_[0-9a-f-]{36})\.([1-9A-HJ-NP-Za-km-z]{32,44})$/;

/** The parts of what somebody shows as a key; undefined when it cannot be one of ours. */
export function readKeyText(text: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = KEY_TEXT.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** In constant time: how long it takes tells nothing about the secret. */
export function isSecret(secret: string, digest: Uint8Array): boolean {
  return timingSafeEqual(digestOf(secret), digest);
}

export function digestOf(secret: string): Buffer {
  // By way of hex, which costs half of what the buffer does.
  return Buffer.from(hash("sha256", secret, "hex"), "hex");
}
