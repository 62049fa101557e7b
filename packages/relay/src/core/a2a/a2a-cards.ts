import { A2aError, type AgentCard, parseAddress, quote, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import { DEFAULT_TENANT, type Principal, speaksFor } from "../access/principal.ts";
import { namesInterfaces, presentSinceMs, serveCard, serveExtendedCard } from "../agents/agent-card.ts";
import { RELAY_AGENT } from "../rules/agent-name.ts";
import type { AgentWithPresence } from "../ports/agents.ts";
import type { CardSettings } from "../agents/card-interfaces.ts";
import type { Directory } from "../agents/directory.ts";
import { isRemote } from "../rules/remote-address.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { A2aCaller } from "./a2a-caller.ts";
import { termsOf } from "../agents/agent-terms.ts";
import { relayCard } from "./relay-card.ts";

export interface A2aCardParts {
  readonly store: RelayStore;
  readonly directory: Directory;
  readonly guard: Guard;
  readonly clock: Clock;
}

export interface A2aCardSettings extends CardSettings {
  /** Of the relay, which its own card has. */
  readonly version: string;
}

/** A card in A2A 1.0. */
export interface ServedCard {
  readonly card: AgentCard;
  /** Since when it is what it is now; caches are told. */
  readonly changedAtMs: number;
}

/** Whoever showed a key; undefined: anybody, who sees the default tenant, the relay's public face. */
export type CardReader = Principal | undefined;

/** The cards of all agents and of the relay itself. */
export class A2aCardService {
  readonly #parts: A2aCardParts;
  readonly #settings: A2aCardSettings;
  /** What the relay adds to cards is settled when it starts. */
  readonly #startedAtMs: number;

  constructor(parts: A2aCardParts, settings: A2aCardSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#startedAtMs = parts.clock.nowMs();
  }

  /** The agent's card as callers need it: with the relay's interfaces in front. */
  async agentCard(reader: CardReader, name: string): Promise<ServedCard> {
    await this.#authorize(reader);
    if (name === RELAY_AGENT) return this.relayCard(reader?.tenant);
    const found = await this.#known(reader, name);
    const nowMs = this.#parts.clock.nowMs();
    return { card: serveCard(found, this.#settings, nowMs), changedAtMs: this.#changedAtMs(found) };
  }

  /**
   * The card as its owner registered it, signatures and all. It may say where the agent itself can be reached, which
   * only those may learn whom the agent told: everybody where it registered as direct, else itself and operators.
   */
  async writtenCard(reader: CardReader, name: string): Promise<ServedCard> {
    await this.#authorize(reader);
    const found = await this.#known(reader, name);
    const { agent } = found;
    const isPrivate = !agent.isDirect && namesInterfaces(agent.card);
    if (isPrivate && (reader === undefined || !speaksFor(reader, agent.id))) {
      const words = `${agent.id} does not show this card, as it has interfaces of its own; its /.well-known/agent-card.json is for all`;
      if (reader === undefined) throw new RelayError("unauthenticated", words);
      const error = new RelayError("permission_denied", words);
      await this.#parts.guard.refuse(reader, "agents.read", { agentId: agent.id }, error);
    }
    return { card: agent.card, changedAtMs: this.#changedAtMs(found) };
  }

  /** The relay's own card, with the addresses for that tenant. */
  relayCard(tenant: string = DEFAULT_TENANT): ServedCard {
    return { card: relayCard(tenant, this.#settings), changedAtMs: this.#startedAtMs };
  }

  /** What the agent shows only to callers who are known. */
  async extended({ principal, agentId }: A2aCaller): Promise<AgentCard> {
    if (agentId === undefined) throw noExtendedCard();
    const { store, guard, clock } = this.#parts;
    await guard.authorize(principal, "agents.read", { agentId });
    const found = await store.agent(principal.tenant, agentId);
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

  async #known(reader: CardReader, name: string): Promise<AgentWithPresence> {
    const { store, directory } = this.#parts;
    if (reader === undefined) return this.#knownToAll(name);
    const { tenant } = reader;
    const found = await store.agent(tenant, await directory.resolve(tenant, name, "agent_id"));
    if (found !== undefined) return found;
    throw new RelayError("not_found", `there is no agent ${name}`);
  }

  /**
   * By its own id or alias: whoever shows no key does not learn who else is called so. Nor whom agents here write to
   * elsewhere.
   */
  async #knownToAll(input: string): Promise<AgentWithPresence> {
    const address = parseAddress(input, "agent_id");
    const name = address.kind === "name" ? address.name : input;
    const [id] = await this.#parts.store.agentsNamed(DEFAULT_TENANT, name);
    const found =
      id === undefined || isRemote(id) ? undefined : await this.#parts.store.agent(DEFAULT_TENANT, id);
    if (found !== undefined && (id === name || found.agent.aliases.includes(name))) return found;
    throw new RelayError(
      "unknown_agent",
      `agent_id: there is no agent ${quote(name)} that is shown without a key`,
    );
  }

  /** An agent is seen whenever it registers, so this counts every change of what it says of itself too. */
  #changedAtMs(found: AgentWithPresence): number {
    return Math.max(this.#startedAtMs, presentSinceMs(found, this.#parts.clock.nowMs()));
  }
}

function noExtendedCard(): A2aError {
  return new A2aError("UnsupportedOperation", "this agent has no extended card");
}
