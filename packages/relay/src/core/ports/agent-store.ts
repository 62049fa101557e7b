import type { AgentCard, AgentId } from "@a2a-relay/protocol";
import type { AgentWithPresence, CustodialKey } from "./agent-record.ts";

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
