import {
  canonicalJson,
  formatInstant,
  MESSAGE_VERSION,
  type MessageInput,
  RelayError,
  type SignedMessage,
} from "@a2a-relay/protocol";
import { toJson } from "./http-exchange.ts";
import { createIdempotencyKey } from "./idempotency-key.ts";
import { base64OfBytes, importSecret } from "./webhook-secret.ts";

export interface MessageSigning {
  /** The signing key's `key_…`; its agent is the sender. */
  readonly keyId: string;
  /** The key's secret, `whsec_…`. */
  readonly secret: string;
  /** When it is signed, in epoch milliseconds; the relay takes it for a few minutes. Default now. */
  readonly nowMs?: number | undefined;
  /** Never used before with this key. Default a new one. */
  readonly nonce?: string | undefined;
}

/**
 * The message with a signature that says who sends it, for `POST /api/a2a/inbox`: an HMAC-SHA256 over the canonical
 * JSON of everything else. What the relay would fill in is filled in before, because it has to be signed too.
 */
export async function signMessage(message: MessageInput, signing: MessageSigning): Promise<SignedMessage> {
  const { keyId, secret, nowMs = Date.now(), nonce = createIdempotencyKey(nowMs) } = signing;
  const key = await importSecret(secret, "sign");
  const { signature: _, ...whole } = completed(message, nowMs);
  const signed = { ...whole, key_id: keyId, nonce, signed_at: formatInstant(nowMs) };
  const bytes = new TextEncoder().encode(canonicalJson(signed));
  return { ...signed, signature: `v1,${base64OfBytes(await crypto.subtle.sign("HMAC", key, bytes))}` };
}

function completed(message: MessageInput, nowMs: number): MessageInput {
  // As it will be on the wire: dates are texts there, and what is undefined is not there.
  const plain = JSON.parse(toJson(message)) as MessageInput;
  const id = plain.id ?? `msg_${createIdempotencyKey(nowMs)}`;
  return {
    ...plain,
    version: MESSAGE_VERSION,
    id,
    created_at: plain.created_at ?? formatInstant(nowMs),
    thread_id: plain.thread_id ?? newThread(plain, nowMs),
  };
}

/** An answer belongs to the thread of what it answers, which only its sender knows here. */
function newThread({ reply_to: replyTo, task_id: taskId }: MessageInput, nowMs: number): string {
  const about = replyTo ?? taskId;
  if (about == null) return `thread_${createIdempotencyKey(nowMs)}`;
  throw new RelayError(
    "invalid_argument",
    `thread_id: is missing; a signed message about ${about} must name the thread it belongs to`,
  );
}
