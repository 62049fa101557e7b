import { type AgentView, formatInstant, type Presence } from "@a2a-relay/protocol";
import { type Principal, speaksFor } from "../access/principal.ts";
import type { PushEndpoint } from "../push/push-record.ts";
import { serveCard } from "./agent-card.ts";
import type { AgentRecord, AgentWithPresence } from "./agent-record.ts";

/** An agent as the API shows it to that viewer. */
export function viewAgent(
  { agent, lastSeenAtMs }: AgentWithPresence,
  endpoint: PushEndpoint | undefined,
  at: { readonly nowMs: number; readonly publicUrl: string; readonly viewer: Principal },
): AgentView {
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
    presence: presenceOf(agent, lastSeenAtMs, at.nowMs),
    ...(agent.publicKey === null ? {} : { pubkey_b58: agent.publicKey, custodial: agent.isCustodial }),
    registered_at: formatInstant(agent.registeredAtMs),
    ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
    agent_card: serveCard(agent, at.publicUrl),
  };
}

/** TTL says how long an agent counts as there after it was last heard; it never closes a mailbox. */
function presenceOf(agent: AgentRecord, lastSeenAtMs: number | null, nowMs: number): Presence {
  if (agent.ttlMs === null || lastSeenAtMs === null) return "unknown";
  return nowMs <= lastSeenAtMs + agent.ttlMs ? "online" : "offline";
}

/** The id as a file name or URL segment would spell it. */
function slugOf(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replaceAll(/^_+|_+$/g, "") || "agent";
}
