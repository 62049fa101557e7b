import {
  a2aEndpoints,
  A2aError,
  type AgentCard,
  operations,
  parseAddress,
  quote,
  RelayError,
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import { DEFAULT_TENANT, type Principal, speaksFor } from "../access/principal.ts";
import {
  namesInterfaces,
  presentSinceMs,
  serveCard,
  serveExtendedCard,
  TEXT_MODES,
} from "../agents/agent-card.ts";
import { RELAY_AGENT } from "../rules/agent-name.ts";
import type { AgentWithPresence } from "../ports/agents.ts";
import {
  agentUrl,
  cardSecurity,
  type CardSettings,
  COMMON_EXTENSIONS,
  relayInterfaces,
  tenantUrl,
} from "../agents/card-interfaces.ts";
import type { Directory } from "../agents/directory.ts";
import { isRemote } from "../rules/remote-address.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { A2aCaller } from "./a2a-request.ts";
import { termsOf } from "../agents/agent-terms.ts";
import { agentsNamed } from "../rules/agent-names.ts";

export interface A2aCardParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly guard: Guard;
  readonly clock: Clock;
}

export interface A2aCardSettings extends CardSettings {
  /** The relay's version, for its own card. */
  readonly version: string;
}

/** A card in the form of A2A 1.0. */
export interface ServedCard {
  readonly card: AgentCard;
  /** When the card changed last, for HTTP caches. */
  readonly changedAtMs: number;
}

/** Undefined: a reader without a key, who may read the cards of the default tenant. */
export type CardReader = Principal | undefined;

/** Serves the cards of all agents and of the relay itself. */
export class A2aCardService {
  readonly #parts: A2aCardParts;
  readonly #settings: A2aCardSettings;
  /** What the relay adds to cards changes only when it restarts. */
  readonly #startedAtMs: number;

  constructor(parts: A2aCardParts, settings: A2aCardSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#startedAtMs = parts.clock.nowMs();
  }

  /** The card that callers need: the relay's interfaces come first. */
  async agentCard(reader: CardReader, name: string): Promise<ServedCard> {
    await this.#authorize(reader);
    if (name === RELAY_AGENT) return this.relayCard(reader?.tenant);
    const found = await this.#find(reader, name);
    const nowMs = this.#parts.clock.nowMs();
    return { card: serveCard(found, this.#settings, nowMs), changedAtMs: this.#changedAtMs(found) };
  }

  /**
   * The card as its owner registered it, with signatures. If it contains the agent's own interfaces, all readers may
   * read it where the agent registered as direct; else only the agent itself and operators may.
   */
  async writtenCard(reader: CardReader, name: string): Promise<ServedCard> {
    await this.#authorize(reader);
    const found = await this.#find(reader, name);
    const { agent } = found;
    const isPrivate = !agent.isDirect && namesInterfaces(agent.card);
    if (isPrivate && (reader === undefined || !speaksFor(reader, agent.id))) {
      const refusal = `${agent.id} does not show this card, as it has interfaces of its own; its /.well-known/agent-card.json is for all`;
      if (reader === undefined) throw new RelayError("unauthenticated", refusal);
      const error = new RelayError("permission_denied", refusal);
      await this.#parts.guard.refuse(reader, "agents.read", { agentId: agent.id }, error);
    }
    return { card: agent.card, changedAtMs: this.#changedAtMs(found) };
  }

  /** The relay's own card with the addresses of that tenant. */
  relayCard(tenant: string = DEFAULT_TENANT): ServedCard {
    return { card: relayCard(tenant, this.#settings), changedAtMs: this.#startedAtMs };
  }

  /** The card that the agent shows to authenticated callers only. */
  async extended({ principal, agentId }: A2aCaller): Promise<AgentCard> {
    if (agentId === undefined) throw noExtendedCard();
    const { store, guard, clock } = this.#parts;
    await guard.authorize(principal, "agents.read", { agentId });
    const found = await store.agents.get(principal.tenant, agentId);
    if (found === undefined) throw noExtendedCard();
    const { card, extendedCard } = found.agent;
    if (extendedCard !== null) return serveExtendedCard(found, extendedCard, this.#settings, clock.nowMs());
    if (!termsOf(card).hasExtendedCard) throw noExtendedCard();
    throw new A2aError(
      "ExtendedAgentCardNotConfigured",
      `${agentId} says that it has an extended card, but registered none; its owner sends it as extended_card`,
    );
  }

  async #authorize(reader: CardReader): Promise<void> {
    if (reader !== undefined) await this.#parts.guard.authorize(reader, "agents.read");
  }

  async #find(reader: CardReader, name: string): Promise<AgentWithPresence> {
    const { store, directory } = this.#parts;
    if (reader === undefined) return this.#findPublic(name);
    const { tenant } = reader;
    const found = await store.agents.get(tenant, await directory.resolve(tenant, name, "agent_id"));
    if (found !== undefined) return found;
    throw new RelayError("not_found", `there is no agent ${name}`);
  }

  /**
   * Finds agents by their exact id or alias only. A reader without a key must not learn about similar names, nor about
   * the remote agents that agents of this relay write to.
   */
  async #findPublic(input: string): Promise<AgentWithPresence> {
    const address = parseAddress(input, "agent_id");
    const name = address.kind === "name" ? address.name : input;
    const [id] = await agentsNamed(this.#parts.store, DEFAULT_TENANT, name);
    const found =
      id === undefined || isRemote(id) ? undefined : await this.#parts.store.agents.get(DEFAULT_TENANT, id);
    if (found !== undefined && (id === name || found.agent.aliases.includes(name))) return found;
    throw new RelayError(
      "unknown_agent",
      `agent_id: there is no agent ${quote(name)} that is shown without a key`,
    );
  }

  /** Registering renews presence, so this covers every change of the registered card. */
  #changedAtMs(found: AgentWithPresence): number {
    return Math.max(this.#startedAtMs, presentSinceMs(found, this.#parts.clock.nowMs()));
  }
}

function noExtendedCard(): A2aError {
  return new A2aError("UnsupportedOperation", "this agent has no extended card");
}

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

/** The relay is an agent too: it answers messages that name no other agent. */
export function relayCard(tenant: string, settings: A2aCardSettings): AgentCard {
  const publicUrl = settings.publicUrl();
  const addresses = {
    rpcUrl: tenantUrl(publicUrl, tenant) + a2aEndpoints.a2a.relay.path,
    restUrl: agentUrl(publicUrl, tenant, RELAY_AGENT),
    agentId: RELAY_AGENT,
    tenant,
  };
  return {
    name: "a2a-relay",
    description: "A post office for AI agents: reaches every agent that is registered here, online or not.",
    supportedInterfaces: relayInterfaces(addresses, settings),
    version: settings.version,
    documentationUrl: publicUrl + operations.service.docs.path,
    capabilities: { streaming: true, pushNotifications: true, extensions: COMMON_EXTENSIONS },
    ...cardSecurity(settings),
    defaultInputModes: TEXT_MODES,
    defaultOutputModes: TEXT_MODES,
    skills: SKILLS,
  };
}
