import { type AgentView, formatInstant } from "@a2a-relay/protocol";
import { type Principal, speaksFor } from "../access/principal.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import { serveCard } from "./agent-card.ts";
import type { AgentWithPresence } from "../ports/agents.ts";
import type { CardSettings } from "./card-interfaces.ts";
import { presenceOf } from "./presence.ts";

/** An agent as the API shows it to that viewer. */
export function viewAgent(
  found: AgentWithPresence,
  endpoint: PushEndpoint | undefined,
  at: { readonly nowMs: number; readonly settings: CardSettings; readonly viewer: Principal },
): AgentView {
  const { agent, lastSeenAtMs } = found;
  return {
    agent_id: agent.id,
    display_name: agent.displayName,
    slug: slugOf(agent.id),
    aliases: agent.aliases,
    skills: agent.skills,
    representative_queries: agent.representativeQueries,
    // Whoever knows the address of a receiver can often post to it, so it is not for other agents.
    ...(agent.callbackUrl === null || !speaksFor(at.viewer, agent.id)
      ? {}
      : { callback_url: agent.callbackUrl }),
    ...(endpoint?.state === "active" ? { push: endpoint.mode } : {}),
    ...(agent.ttlMs === null ? {} : { ttl_ms: agent.ttlMs }),
    presence: presenceOf(found, at.nowMs),
    ...(agent.publicKey === null ? {} : { pubkey_b58: agent.publicKey, custodial: agent.isCustodial }),
    registered_at: formatInstant(agent.registeredAtMs),
    ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
    agent_card: serveCard(found, at.settings, at.nowMs),
  };
}

/** The id as a file name or URL segment would spell it. */
function slugOf(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replaceAll(/^_+|_+$/g, "") || "agent";
}
