import type { AgentCard, AgentId, Skill } from "@a2a-relay/protocol";

/** An address, and what its owner registered about it. */
export interface AgentRecord {
  readonly tenant: string;
  readonly id: AgentId;
  readonly displayName: string;
  readonly aliases: readonly string[];
  readonly card: AgentCard;
  readonly skills: readonly Skill[];
  readonly representativeQueries: readonly string[];
  readonly callbackUrl: string | null;
  readonly ttlMs: number | null;
  /** Ed25519, in base58; capabilities refer to it. Null only for agents of older stores. */
  readonly publicKey: string | null;
  /** The relay holds the private half, because the agent brought no key. */
  readonly isCustodial: boolean;
  readonly registeredAtMs: number;
  /**
   * Before this time the id belonged to another owner, whose messages and tasks this one does not see. 0: it had no
   * other owner.
   */
  readonly othersBeforeMs: number;
  /** Set while the agent is deregistered; its id stays reserved and its mailbox closed. */
  readonly removedAtMs: number | null;
  /** Shown to authenticated callers only; null where its owner gave none. */
  readonly extendedCard: AgentCard | null;
  /** Its card shows its own interfaces, so that callers may call it without the relay. */
  readonly isDirect: boolean;
  readonly version: number;
}

/** Presence is not part of the record: it changes often and is not journaled. */
export interface AgentWithPresence {
  readonly agent: AgentRecord;
  readonly lastSeenAtMs: number | null;
}

/** The private half of a key that the relay holds for an agent. */
export interface CustodialKey {
  readonly tenant: string;
  readonly publicKey: string;
  /** PKCS #8, DER, in base64. */
  readonly privateKey: string;
}

export interface AgentStore {
  /** The agent, removed or not. */
  get(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined>;
  /** Ids of the agents, not removed, that carry this name as id, alias or display name; the id match first. */
  named(tenant: string, name: string): Promise<readonly AgentId[]>;
  /** Agents that are not removed, by id, after `afterId`. */
  list(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<readonly AgentWithPresence[]>;
  /** Ids of agents that are removed, by id, after `afterId`. */
  listRemoved(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<readonly AgentId[]>;
  count(tenant: string): Promise<number>;
  /** Only those whose id is a URL. */
  countRemote(tenant: string): Promise<number>;
  /** The agent, not removed, whose public key this is. */
  withKey(tenant: string, publicKey: string): Promise<AgentId | undefined>;
  /** The public key of an agent that is not removed. */
  publicKey(tenant: string, id: AgentId): Promise<string | undefined>;
  /** The card as its owner wrote it, removed or not. */
  card(tenant: string, id: AgentId): Promise<AgentCard | undefined>;
  /** `othersBeforeMs` of an agent that is not removed, else 0. */
  othersBeforeMs(tenant: string, id: AgentId): Promise<number>;
  custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined>;
  /** Presence only: no event, no version, and on disk within a second rather than at once. */
  touch(tenant: string, id: AgentId, seenAtMs: number): Promise<void>;
}
