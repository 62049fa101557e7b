import type { AgentCard, AgentId, Skill } from "@a2a-relay/protocol";

/** An address and what its owner said about it. */
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
  /** Ed25519, in base58: what capabilities are compared by. Null only for agents of older stores. */
  readonly publicKey: string | null;
  /** The relay holds the private half, because the agent brought no key. */
  readonly isCustodial: boolean;
  readonly registeredAtMs: number;
  /**
   * Before then the id was somebody else's: an owner that left, and took its mail and tasks with it. 0 where nobody
   * had it before.
   */
  readonly othersBeforeMs: number;
  /** Set while the agent is deregistered: its id stays reserved, its mailbox is closed. */
  readonly removedAtMs: number | null;
  /** What only callers who are known are shown; null where its owner gave none. */
  readonly extendedCard: AgentCard | null;
  /** The interfaces in its card may be shown, so that callers may go past the relay. */
  readonly isDirect: boolean;
  readonly version: number;
}

/** Presence is kept apart from the record: it changes often and is not journaled. */
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
  agent(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined>;
  /** Ids of the agents, not removed, that carry this name as id, alias or display name; the id match first. */
  agentsNamed(tenant: string, name: string): Promise<readonly AgentId[]>;
  /** Agents that are not removed, by id, after `afterId`. */
  agents(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<readonly AgentWithPresence[]>;
  /** Ids of agents that are removed, by id, after `afterId`. */
  removedAgents(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<readonly AgentId[]>;
  countAgents(tenant: string): Promise<number>;
  /** Those of them whose id is a URL. */
  countRemoteAgents(tenant: string): Promise<number>;
  /** The agent, not removed, whose public key this is. */
  agentWithKey(tenant: string, publicKey: string): Promise<AgentId | undefined>;
  /** The public key of an agent that is not removed. Asked on every task, so answered from memory where possible. */
  publicKeyOf(tenant: string, id: AgentId): Promise<string | undefined>;
  /** The card as its owner wrote it, removed or not. The same object while it does not change, where possible. */
  agentCard(tenant: string, id: AgentId): Promise<AgentCard | undefined>;
  /** `othersBeforeMs` of an agent that is not removed, else 0. Answered from memory where possible. */
  othersBeforeMs(tenant: string, id: AgentId): Promise<number>;
  custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined>;
  /** Presence only: no event, no version, and on disk within a second rather than at once. */
  touchAgent(tenant: string, id: AgentId, seenAtMs: number): Promise<void>;
}
