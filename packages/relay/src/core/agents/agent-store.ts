import type { AgentId } from "@a2a-relay/protocol";
import type { AgentWithPresence } from "./agent-record.ts";

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
  /** Presence only: no event, no version, and on disk within a second rather than at once. */
  touchAgent(tenant: string, id: AgentId, seenAtMs: number): Promise<void>;
}
