import { RelayError } from "@a2a-relay/protocol";

/** The prefix of Standard Webhooks; the rest is base64. */
const PREFIX = "whsec_";

/** Errors never show the secret, since error texts end up in logs. */
export async function importSecret(secret: unknown, usage: "sign" | "verify"): Promise<CryptoKey> {
  const bytes = parseSecret(secret);
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}

function parseSecret(secret: unknown): Uint8Array<ArrayBuffer> {
  if (typeof secret !== "string" || !secret.startsWith(PREFIX)) {
    throw new RelayError(
      "invalid_argument",
      `secret: expected ${PREFIX} followed by base64, as the relay gave it`,
    );
  }
  const bytes = bytesOfBase64(secret.slice(PREFIX.length));
  if (bytes !== undefined && bytes.length > 0) return bytes;
  throw new RelayError(
    "invalid_argument",
    `secret: what follows ${PREFIX} is not base64; was it cut off, or is there a line break at its end?`,
  );
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

export function base64OfBytes(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}
