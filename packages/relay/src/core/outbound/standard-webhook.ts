import { createHmac } from "node:crypto";
import { readSigningSecret } from "../keys/key-maker.ts";
import type { PushEndpoint } from "../ports/pushes.ts";

/** Those that sign at this time: the endpoint's own, and the one before it while that is still good. */
export function secretsOf(endpoint: PushEndpoint, nowMs: number): readonly string[] {
  const { secret, oldSecret, oldSecretUntilMs } = endpoint;
  const isOldGood = oldSecret !== null && oldSecretUntilMs !== null && nowMs < oldSecretUntilMs;
  return isOldGood ? [secret, oldSecret] : [secret];
}

/** The three headers of Standard Webhooks: who verifies one of the signatures knows who wrote the body, and when. */
export function webhookHeaders(
  message: { readonly messageId: string; readonly body: string },
  secrets: readonly string[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const id = webhookId(message.messageId);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signed = `${id}.${timestamp}.${message.body}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => signature(secret, signed)).join(" "),
  };
}

/** The message's id, the same for every attempt. What a header cannot carry is written as URLs do. */
function webhookId(messageId: string): string {
  return messageId.replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}

function signature(secret: string, signed: string): string {
  return `v1,${createHmac("sha256", readSigningSecret(secret)).update(signed).digest("base64")}`;
}
