import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";

/** Undefined for agents that are removed, unknown, or of an older store. */
export async function publicKeyOf(
  store: Pick<RelayStore, "agents">,
  tenant: string,
  id: AgentId,
): Promise<string | undefined> {
  const [owner] = await store.agents.owners(tenant, [id]);
  return owner?.publicKey ?? undefined;
}

/** Records from before this time belong to an earlier owner of the id. 0: there was none. */
export async function ownedSinceMs(
  store: Pick<RelayStore, "agents">,
  tenant: string,
  id: AgentId,
): Promise<number> {
  const [owner] = await store.agents.owners(tenant, [id]);
  return owner?.othersBeforeMs ?? 0;
}
