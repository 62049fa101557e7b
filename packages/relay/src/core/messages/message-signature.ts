import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalJson, type SignedMessage } from "@a2a-relay/protocol";

/** So that another way of signing can come one day without being taken for this one. */
const VERSION = "v1,";

/** What stands in `signature`: an HMAC over the canonical JSON of all the other members, whatever they are. */
export function signatureOf(message: object, secret: Uint8Array): string {
  const { signature: _, ...signed } = message as SignedMessage;
  return VERSION + createHmac("sha256", secret).update(canonicalJson(signed)).digest("base64");
}

/** One of its signatures is right. In constant time: how long it takes tells nothing about what is expected. */
export function isSignedWith(message: SignedMessage, secret: Uint8Array): boolean {
  const expected = Buffer.from(signatureOf(message, secret));
  let isRight = false;
  for (const signature of message.signature.split(" ")) {
    const given = Buffer.from(signature);
    if (given.length === expected.length && timingSafeEqual(given, expected)) isRight = true;
  }
  return isRight;
}
