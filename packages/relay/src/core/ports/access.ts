import type { AgentId, CapabilityScope } from "@a2a-relay/protocol";

/** What a caller may ask for; a key may be limited to some of them. */
export const VERBS = [
  "agents.read",
  "agents.write",
  "capabilities.grant",
  "capabilities.read",
  "capabilities.revoke",
  "events.read",
  "journal.verify",
  "keys.read",
  "keys.write",
  "mail.compact",
  "mailbox.read",
  "mailbox.settle",
  "messages.read",
  "messages.send",
  "metrics.read",
  "push.read",
  "push.write",
  "queue.read",
  "repair.write",
  "task-queue.read",
  "tasks.cancel",
  "tasks.list",
  "tasks.read",
  "tasks.work",
  "tenants.read",
  "tenants.write",
  "threads.read",
] as const;
export type Verb = (typeof VERBS)[number];

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

/**
 * A signed permission. It is kept here and looked up by the caller's own key, never shown by the caller, so
 * there is nothing to steal; the signature finds rows that were written past the relay.
 */
export interface CapabilityRecord {
  readonly tenant: string;
  /** `cap_…` */
  readonly id: string;
  /** Makes two grants of the same thing two tokens. */
  readonly nonce: string;
  readonly subject: AgentId;
  /** What the caller is compared by; `subject` is for people. */
  readonly subjectKey: string;
  /** With the counterparty's key in the place of its name: `a2a.send.<pubkey_b58>`, `a2a.compact`, … */
  readonly action: string;
  /** As it was asked for: for people. */
  readonly writtenAction: string;
  readonly scope: CapabilityScope;
  /** Who granted it, as the journal names them. */
  readonly grantedBy: string;
  /** The capability that was delegated; null when an operator granted it. */
  readonly parentId: string | null;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** Counted only where the scope has `max_uses`. */
  readonly used: number;
  /** The relay's Ed25519 signature, in base58; what it covers is said in `capability-token.ts`. */
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
  /** Whose token it is, by key, or who granted it, by name; absent: everybody. */
  readonly party: { readonly subjectKey: string; readonly grantedBy: string } | undefined;
  readonly afterId: string;
  readonly limit: number;
}

/** What stands between one agent that writes and another. */
export interface PairAccess {
  /** Of agents that are here and have one. */
  readonly senderKey: string | undefined;
  readonly recipientKey: string | undefined;
  /** What the sender holds for writing to the recipient, not revoked, oldest first; none without both keys. */
  readonly permissions: readonly CapabilityRecord[];
  /** What the recipient holds for hearing from the sender. */
  readonly consents: readonly CapabilityRecord[];
}

export interface AccessStore {
  /** By id alone: whoever shows a key has not said yet which tenant it is of. Revoked ones too. */
  key(id: string): Promise<KeyRecord | undefined>;
  /** Revoked and expired ones too, by id. */
  keys(filter: KeyFilter): Promise<readonly KeyRecord[]>;
  /** All of them, by id; the default tenant is always there. */
  tenants(): Promise<readonly TenantRecord[]>;
  tenant(id: string): Promise<TenantRecord | undefined>;
  capability(tenant: string, id: string): Promise<CapabilityRecord | undefined>;
  /** Those of one subject for one action that are not revoked, oldest first. */
  capabilitiesFor(tenant: string, subjectKey: string, action: string): Promise<readonly CapabilityRecord[]>;
  /** One look for all of it, because every task takes it. */
  accessBetween(tenant: string, sender: AgentId, recipient: AgentId): Promise<PairAccess>;
  /** Revoked and expired ones too, by id. */
  capabilities(filter: CapabilityFilter): Promise<readonly CapabilityRecord[]>;
  /** Forgets nonces whose time is over. Answers how many. */
  forgetNonces(expiredBeforeMs: number): Promise<number>;
  /** Forgets what expired keys signed with: they stay, each with an empty secret. Answers how many. */
  forgetSigningSecrets(nowMs: number): Promise<number>;
}
