import { formatInstant, keyProofText, type RegisterRequest, toBase58 } from "@a2a-relay/protocol";

export interface KeyProofOptions {
  readonly agentId: string;
  /** The 32 bytes of the agent's Ed25519 public key. */
  readonly publicKey: Uint8Array;
  /** Signs with the private half: `(bytes) => crypto.subtle.sign("Ed25519", key, bytes)` or `node:crypto`'s `sign`. */
  readonly sign: (bytes: Uint8Array<ArrayBuffer>) => SignedBytes | Promise<SignedBytes>;
  /** The tenant of the caller's key. Default `default`. */
  readonly tenant?: string | undefined;
  /** When it is signed, in epoch milliseconds; the relay takes it for a few minutes. Default now. */
  readonly nowMs?: number | undefined;
}

type SignedBytes = Uint8Array | ArrayBuffer;

/**
 * The part of a registration that makes the relay know an agent by its own key: the public half, and a signature
 * that shows who holds the private one, which never leaves its owner.
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
