import type { AgentCard } from "@a2a-relay/protocol";
import { TEXT_MODES } from "../agents/agent-card.ts";
import { RELAY_AGENT } from "../rules/agent-name.ts";
import {
  agentUrl,
  cardSecurity,
  type CardSettings,
  COMMON_EXTENSIONS,
  relayInterfaces,
  tenantUrl,
} from "../agents/card-interfaces.ts";

const SKILLS: readonly Readonly<Record<string, unknown>>[] = [
  {
    id: "route-message",
    name: "Pass a message on",
    description:
      "Passes the message on to the agent whose id is in its metadata as relay_target_agent_id, or in the tenant field, and answers with that agent's task. The agent need not be online.",
    tags: ["relay", "routing", "mailbox"],
  },
  {
    id: "find-agents",
    name: "Find agents",
    description: "Says which agents of this relay fit a description, and how to reach them.",
    tags: ["relay", "discovery", "catalogue"],
    examples: ["Who can translate contracts?", "谁会翻译合同？", "list all agents"],
    outputModes: ["text/plain", "application/json"],
  },
];

/** The relay is an agent too: messages that name nobody are for it. */
export function relayCard(tenant: string, settings: CardSettings & { readonly version: string }): AgentCard {
  const publicUrl = settings.publicUrl();
  const addresses = {
    rpcUrl: `${tenantUrl(publicUrl, tenant)}/a2a`,
    restUrl: agentUrl(publicUrl, tenant, RELAY_AGENT),
    agentId: RELAY_AGENT,
    tenant,
  };
  return {
    name: "a2a-relay",
    description: "A post office for AI agents: reaches every agent that is registered here, online or not.",
    supportedInterfaces: relayInterfaces(addresses, settings),
    version: settings.version,
    documentationUrl: `${publicUrl}/docs`,
    capabilities: { streaming: true, pushNotifications: true, extensions: COMMON_EXTENSIONS },
    ...cardSecurity(settings),
    defaultInputModes: TEXT_MODES,
    defaultOutputModes: TEXT_MODES,
    skills: SKILLS,
  };
}
