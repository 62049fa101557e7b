import type { AgentCard, Skill } from "@a2a-relay/protocol";
import type { AgentRecord } from "./agent-record.ts";

/**
 * The card as it is served: what its owner wrote, completed with what A2A requires. The owner's words always
 * win.
 */
export function serveCard(agent: AgentRecord, publicUrl: string): AgentCard {
  return {
    name: agent.displayName,
    description: `${agent.displayName}, reachable through this relay`,
    version: "1.0.0",
    documentationUrl: `${publicUrl}/docs`,
    supportedInterfaces: [],
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: agent.skills.map(serveSkill),
    ...agent.card,
  };
}

function serveSkill(skill: Skill): Readonly<Record<string, unknown>> {
  const { tags, ...rest } = skill;
  const words = Object.entries(tags ?? {}).map(([key, value]) => `${key}:${value}`);
  return { name: skill.id, description: skill.description ?? skill.id, ...rest, tags: words };
}
