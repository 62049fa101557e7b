import type { AgentId, CapabilityScope, Verb } from "@a2a-relay/protocol";

/** A stored API key: only the digest of its secret, unless the relay has to check signatures with it. */
export interface KeyRecord {
  /** `key_…`, the public half of the key. */
  readonly id: string;
  readonly tenant: string;
  /** The agent it speaks for; null: an operator of the tenant. */
  readonly agentId: AgentId | null;
  /** What it may be used for; null: everything that its holder may do. */
  readonly verbs: readonly Verb[] | null;
  /** SHA-256 of the secret, as hex. */
  readonly digest: string;
  readonly createdAtMs: number;
  /** The actor that made it, by its name in the journal. */
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

/** The key never works again and loses its signing secret; its other fields stay. */
export function revokedAt(key: KeyRecord, revokedAtMs: number): KeyRecord {
  return { ...key, revokedAtMs, signingSecret: key.signingSecret === null ? null : "" };
}

/** The nonce of a signed message. Kept until the signature is too old to be accepted again. */
export interface UsedNonce {
  readonly keyId: string;
  readonly nonce: string;
  readonly expiresAtMs: number;
}

/** An organisation. Other tenants do not see its agents and messages. */
export interface TenantRecord {
  readonly id: string;
  /** Tasks need capability tokens here. The default tenant follows the configuration instead. */
  readonly capabilities: boolean;
  readonly createdAtMs: number;
  readonly version: number;
}

/**
 * A signed permission. It is stored here and found by the caller's own key, never shown by the caller, so
 * there is nothing to steal; the signature finds rows that were written past the relay.
 */
export interface CapabilityRecord {
  readonly tenant: string;
  /** `cap_…` */
  readonly id: string;
  /** Makes two grants of the same thing two tokens. */
  readonly nonce: string;
  readonly subject: AgentId;
  /** The relay compares the caller with this; `subject` is for people. */
  readonly subjectKey: string;
  /** With the counterparty's key instead of its name: `a2a.send.<pubkey_b58>`, `a2a.compact`, … */
  readonly action: string;
  /** As the request wrote it, for people. */
  readonly writtenAction: string;
  readonly scope: CapabilityScope;
  /** The actor that granted it, by its name in the journal. */
  readonly grantedBy: string;
  /** The capability that was delegated; null when an operator granted it. */
  readonly parentId: string | null;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** Counted only where the scope has `max_uses`. */
  readonly used: number;
  /** The relay's Ed25519 signature, in base58; see `capability-token.ts` for what it covers. */
  readonly signature: string;
  readonly version: number;
}

export interface KeyFilter {
  readonly tenant: string;
  readonly agentId: AgentId | undefined;
  readonly afterId: string;
  readonly limit: number;
}

export interface CapabilityFilter {
  readonly tenant: string;
  /** The subject by key, or the granter by name; absent: all capabilities. */
  readonly party: { readonly subjectKey: string; readonly grantedBy: string } | undefined;
  readonly afterId: string;
  readonly limit: number;
}

/** The public keys and capabilities that decide whether one agent may write to another. */
export interface PairAccess {
  /** Absent for agents that are not registered or have none. */
  readonly senderKey: string | undefined;
  readonly recipientKey: string | undefined;
  /** Capabilities of the sender to write to the recipient, not revoked, oldest first; none without both keys. */
  readonly permissions: readonly CapabilityRecord[];
  /** Capabilities of the recipient to receive from the sender. */
  readonly consents: readonly CapabilityRecord[];
}

export interface KeyStore {
  /** By id alone: the tenant follows from the key. Revoked keys too. */
  get(id: string): Promise<KeyRecord | undefined>;
  /** Revoked and expired ones too, by id. */
  list(filter: KeyFilter): Promise<readonly KeyRecord[]>;
  /**
   * The private key with which all relays on this store sign, as PKCS #8, DER, in base64. The store keeps `candidate`
   * if it has none yet; every later caller gets the kept one.
   */
  identity(candidate: string): Promise<string>;
}

export interface TenantStore {
  get(id: string): Promise<TenantRecord | undefined>;
  /** All of them, by id; there is always the default tenant. */
  list(): Promise<readonly TenantRecord[]>;
}

export interface CapabilityStore {
  get(tenant: string, id: string): Promise<CapabilityRecord | undefined>;
  /** Those of one subject for one action that are not revoked, oldest first. */
  of(tenant: string, subjectKey: string, action: string): Promise<readonly CapabilityRecord[]>;
  /** One read for all of it: every task needs it. */
  between(tenant: string, sender: AgentId, recipient: AgentId): Promise<PairAccess>;
  /** Revoked and expired ones too, by id. */
  list(filter: CapabilityFilter): Promise<readonly CapabilityRecord[]>;
}
