import type { AgentId } from "@a2a-relay/protocol";
import type { NamedAgent } from "../ports/agents.ts";
import type { RelayStore } from "../ports/relay-store.ts";

/**
 * Ids of the agents that a name may mean; its own id first. Any agent may display any name, so display names do not
 * count where the name is the id or an alias of an agent, also of a removed one.
 */
export async function agentsNamed(
  store: Pick<RelayStore, "agents">,
  tenant: string,
  name: string,
): Promise<readonly AgentId[]> {
  return meant(await store.agents.named(tenant, name));
}

/** Pure. */
export function meant(names: readonly NamedAgent[]): readonly AgentId[] {
  const reserved = names.filter(({ kind }) => kind !== "display_name");
  const counted = reserved.length === 0 ? names : reserved;
  return counted.filter(({ isRemoved }) => !isRemoved).map(({ agentId }) => agentId);
}
