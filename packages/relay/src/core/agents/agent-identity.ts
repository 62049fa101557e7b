import {
  type AgentId,
  formatInstant,
  keyProofText,
  LIMITS,
  parseInstant,
  quote,
  type RegisterRequest,
  RelayError,
} from "@a2a-relay/protocol";
import { isPublicKey, isSignedBy, newKeyPair } from "../rules/ed25519.ts";
import type { AgentRecord, CustodialKey } from "../ports/agents.ts";

/** An agent's public key, and the private key where the relay holds it. */
export interface Identity {
  readonly publicKey: string;
  readonly isCustodial: boolean;
  /** Only when it was generated just now. */
  readonly custodialKey?: CustodialKey;
}

/** The agent that registers, and its record before that. */
export interface IdentityClaim {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly before: AgentRecord | undefined;
}

/** The key of the request, else the present key, else a new one that the relay holds for the agent. */
export function identify(request: RegisterRequest, { tenant, before }: IdentityClaim): Identity {
  const { pubkey_b58: brought } = request;
  const present = before?.publicKey ?? null;
  if (brought !== undefined && brought !== present) return { publicKey: brought, isCustodial: false };
  if (present !== null) return { publicKey: present, isCustodial: before?.isCustodial ?? false };
  const { publicKey, privateKey } = newKeyPair();
  return { publicKey, isCustodial: true, custodialKey: { tenant, publicKey, privateKey } };
}

/**
 * A new key needs a fresh signature by its private half: else an agent could register another agent's public key.
 * `invalid_argument` when the proof is missing or malformed, `permission_denied` when it is not valid.
 */
export function checkKeyProof(request: RegisterRequest, claim: IdentityClaim, nowMs: number): void {
  const { pubkey_b58: publicKey, key_proof: proof } = request;
  if (publicKey === undefined) {
    if (proof === undefined) return;
    throw new RelayError("invalid_argument", "key_proof: proves nothing without pubkey_b58; send both");
  }
  if (!isPublicKey(publicKey)) {
    throw new RelayError(
      "invalid_argument",
      `pubkey_b58: expected the 32 bytes of an Ed25519 public key in base58, got ${quote(publicKey)}`,
    );
  }
  if (proof === undefined) {
    if (publicKey === claim.before?.publicKey) return;
    throw new RelayError(
      "invalid_argument",
      "key_proof: is missing; sign tenant, agent id, key and time with the private half of pubkey_b58",
    );
  }
  const signedAtMs = parseInstant(proof.signed_at, "key_proof.signed_at");
  if (Math.abs(nowMs - signedAtMs) > LIMITS.keyProofAgeMsMax) {
    throw new RelayError(
      "permission_denied",
      `key_proof: ${proof.signed_at} is more than ${LIMITS.keyProofAgeMsMax / 60_000} minutes from ${formatInstant(nowMs)}, the time here; sign anew`,
    );
  }
  const { tenant, agentId: agent_id } = claim;
  const text = keyProofText({ tenant, agent_id, pubkey_b58: publicKey, signed_at: proof.signed_at });
  if (isSignedBy(publicKey, text, proof.signature_b58)) return;
  throw new RelayError(
    "permission_denied",
    `key_proof: the signature is not one of pubkey_b58 over tenant ${tenant}, agent ${agent_id}, this key and ${proof.signed_at}`,
  );
}
