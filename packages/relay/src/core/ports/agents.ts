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

/** Who owns an agent's id now. */
export interface AgentOwner {
  readonly publicKey: string | null;
  /** As in `AgentRecord`. */
  readonly othersBeforeMs: number;
}

/** An agent and one of its names. */
export interface NamedAgent {
  readonly agentId: AgentId;
  readonly kind: "id" | "alias" | "display_name";
  /** Removed agents keep their id and no other name. */
  readonly isRemoved: boolean;
}

export interface AgentStore {
  /** The agent, removed or not. */
  get(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined>;
  /** As many as ids, in their order; undefined for agents that are removed or unknown. */
  owners(tenant: string, ids: readonly AgentId[]): Promise<readonly (AgentOwner | undefined)[]>;
  /** Who carries this name, the id first, then aliases, then display names, each by id. At most 100. */
  named(tenant: string, name: string): Promise<readonly NamedAgent[]>;
  /** The agent, not removed, whose public key this is. */
  withKey(tenant: string, publicKey: string): Promise<AgentId | undefined>;
  /** By id, after `afterId`: the removed ones, or those that are not. */
  list(page: AgentPage): Promise<readonly AgentWithPresence[]>;
  /** Agents that are not removed. `remote` are those whose id is a URL. */
  count(tenant: string): Promise<{ readonly all: number; readonly remote: number }>;
  custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined>;
  /** Presence only: no event, no version, and on disk within a second rather than at once. */
  touch(tenant: string, id: AgentId, seenAtMs: number): Promise<void>;
}

export interface AgentPage {
  readonly tenant: string;
  readonly isRemoved: boolean;
  readonly afterId: string;
  readonly limit: number;
}
