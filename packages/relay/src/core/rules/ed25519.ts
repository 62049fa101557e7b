import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { fromBase58, toBase58 } from "@a2a-relay/protocol";

export const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** What stands before the 32 bytes in the key's DER form, the same for every Ed25519 public key. */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** A key that can sign: the relay's own, or one that it holds for an agent. */
export interface SigningKey {
  /** In base58. */
  readonly publicKey: string;
  /** The signature in base58. */
  sign(text: string): string;
}

/** A new key pair; the private half as PKCS #8, DER, in base64. */
export function newKeyPair(): { readonly publicKey: string; readonly privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKeyText(publicKey),
    privateKey: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64"),
  };
}

/** Throws what node:crypto throws when it is no Ed25519 private key. */
export function signingKey(privateKey: string): SigningKey {
  const key = createPrivateKey({ key: Buffer.from(privateKey, "base64"), format: "der", type: "pkcs8" });
  return {
    publicKey: publicKeyText(createPublicKey(key)),
    sign: (text) => toBase58(sign(null, Buffer.from(text), key)),
  };
}

export function isPublicKey(text: string): boolean {
  return fromBase58(text, PUBLIC_KEY_BYTES) !== undefined;
}

/** False for whatever is not a signature of this text by this key, malformed input included. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const key = fromBase58(publicKey, PUBLIC_KEY_BYTES);
  const bytes = fromBase58(signature, SIGNATURE_BYTES);
  if (key === undefined || bytes === undefined) return false;
  try {
    const spki = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, key]), format: "der", type: "spki" });
    return verify(null, Buffer.from(text), spki, bytes);
  } catch {
    // 32 bytes that are no point of the curve.
    return false;
  }
}

function publicKeyText(key: KeyObject): string {
  return toBase58(key.export({ format: "der", type: "spki" }).subarray(SPKI_PREFIX.length));
}
