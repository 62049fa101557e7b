/** How Standard Webhooks marks a secret; the rest is its bytes in base64. */
const PREFIX = "whsec_";

export function writeSigningSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/** The bytes of a secret that was written here. */
export function readSigningSecret(text: string): Buffer {
  return Buffer.from(text.slice(PREFIX.length), "base64");
}
