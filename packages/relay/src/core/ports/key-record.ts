import type { AgentId } from "@a2a-relay/protocol";
import type { Verb } from "../access/authorize.ts";

/** An API key as it is kept: only the digest of its secret, unless the relay has to check signatures with it. */
export interface KeyRecord {
  /** `key_…`, the public half of the key. */
  readonly id: string;
  readonly tenant: string;
  /** The agent it speaks for; null: an operator of the tenant. */
  readonly agentId: AgentId | null;
  /** All it may be used for; null: whatever its holder may do. */
  readonly verbs: readonly Verb[] | null;
  /** SHA-256 of the secret, as hex. */
  readonly digest: string;
  readonly createdAtMs: number;
  /** Who made it, as the journal names them. */
  readonly createdBy: string;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** The key that this one follows. */
  readonly replaces: string | null;
  /** The newest key that follows this one. */
  readonly replacedBy: string | null;
  /** The secret itself, kept only for keys that sign messages, and empty once they have ended; null for bearer keys. */
  readonly signingSecret: string | null;
  readonly version: number;
}

/** It never works again, and what it signed with is not kept. What it was for stays to be seen. */
export function revokedAt(key: KeyRecord, revokedAtMs: number): KeyRecord {
  return { ...key, revokedAtMs, signingSecret: key.signingSecret === null ? null : "" };
}

/** What a message that a key signed was told apart by. Kept until nobody could show it again in time. */
export interface UsedNonce {
  readonly keyId: string;
  readonly nonce: string;
  readonly expiresAtMs: number;
}

/** An organisation whose agents and mail nobody else sees. */
export interface TenantRecord {
  readonly id: string;
  /** Tasks need capability tokens here. The default tenant follows the configuration instead. */
  readonly capabilities: boolean;
  readonly createdAtMs: number;
  readonly version: number;
}
