import type { AgentId } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "./capability-record.ts";
import type { KeyRecord, TenantRecord } from "./key-record.ts";

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
  /**
   * The same at once, if the store has it in memory and knows that it still holds; undefined says nothing. Every
   * request shows a key, and one that need not wait for it is read from the socket as it comes.
   */
  keyAtHand(id: string): KeyRecord | undefined;
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
