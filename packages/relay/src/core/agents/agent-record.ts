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
  readonly registeredAtMs: number;
  /** Set while the agent is deregistered: its id stays reserved, its mailbox is closed. */
  readonly removedAtMs: number | null;
  readonly version: number;
}

/** Presence is kept apart from the record: it changes often and is not journaled. */
export interface AgentWithPresence {
  readonly agent: AgentRecord;
  readonly lastSeenAtMs: number | null;
}
