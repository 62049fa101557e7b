import {
  canonicalJson,
  formatInstant,
  keyProofText,
  MESSAGE_VERSION,
  type MessageInput,
  type RegisterRequest,
  RelayError,
  type SignedMessage,
  toBase58,
} from "@a2a-relay/protocol";
import { toJson } from "../http/http-exchange.ts";
import { createIdempotencyKey } from "../http/idempotency.ts";
import { base64OfBytes, importSecret } from "./secret.ts";

export interface MessageSigning {
  /** The `key_…` of the signing key; its agent is the sender. */
  readonly keyId: string;
  /** The key's secret, `whsec_…`. */
  readonly secret: string;
  /** The time of signing, in epoch milliseconds; the relay accepts it for a few minutes. Default now. */
  readonly nowMs?: number | undefined;
  /** Must be new for this key. Default: a random one. */
  readonly nonce?: string | undefined;
}

/**
 * Signs a message for `POST /api/a2a/inbox`: an HMAC-SHA256 over the canonical JSON of all other members. Fills in what
 * the relay would fill in, because the signature has to cover it.
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
  // The JSON of the wire: dates are strings, and undefined members are absent.
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

/** An answer belongs to an existing thread, which the caller has to name. */
function newThread({ reply_to: replyTo, task_id: taskId }: MessageInput, nowMs: number): string {
  const about = replyTo ?? taskId;
  if (about == null) return `thread_${createIdempotencyKey(nowMs)}`;
  throw new RelayError(
    "invalid_argument",
    `thread_id: is missing; a signed message about ${about} must name the thread it belongs to`,
  );
}

export interface KeyProofOptions {
  readonly agentId: string;
  /** The 32 bytes of the agent's Ed25519 public key. */
  readonly publicKey: Uint8Array;
  /** Signs with the private key: `(bytes) => crypto.subtle.sign("Ed25519", key, bytes)` or `node:crypto`'s `sign`. */
  readonly sign: (bytes: Uint8Array<ArrayBuffer>) => SignedBytes | Promise<SignedBytes>;
  /** The tenant of the caller's key. Default `default`. */
  readonly tenant?: string | undefined;
  /** The time of signing, in epoch milliseconds; the relay accepts it for a few minutes. Default now. */
  readonly nowMs?: number | undefined;
}

type SignedBytes = Uint8Array | ArrayBuffer;

/**
 * The part of a registration that registers the agent's own public key, with a signature that proves possession of the
 * private key.
 */
export async function proveKey(
  options: KeyProofOptions,
): Promise<Required<Pick<RegisterRequest, "pubkey_b58" | "key_proof">>> {
  const { agentId: agent_id, tenant = "default", nowMs = Date.now() } = options;
  const pubkey_b58 = toBase58(options.publicKey);
  const signed_at = formatInstant(nowMs);
  const text = keyProofText({ tenant, agent_id, pubkey_b58, signed_at });
  const signature = await options.sign(new TextEncoder().encode(text));
  return { pubkey_b58, key_proof: { signed_at, signature_b58: toBase58(new Uint8Array(signature)) } };
}
