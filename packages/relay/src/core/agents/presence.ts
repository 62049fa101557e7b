import type { Presence } from "@a2a-relay/protocol";
import type { AgentWithPresence } from "../ports/agents.ts";

/** TTL says how long an agent counts as there after it was last heard; it never closes a mailbox. */
export function presenceOf({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): Presence {
  if (agent.ttlMs === null || lastSeenAtMs === null) return "unknown";
  return nowMs <= lastSeenAtMs + agent.ttlMs ? "online" : "offline";
}

/** When the agent's presence became what it is now. */
export function presentSinceMs({ agent, lastSeenAtMs }: AgentWithPresence, nowMs: number): number {
  if (lastSeenAtMs === null) return agent.registeredAtMs;
  const leftAtMs = lastSeenAtMs + (agent.ttlMs ?? Number.POSITIVE_INFINITY) + 1;
  return leftAtMs <= nowMs ? leftAtMs : lastSeenAtMs;
}
