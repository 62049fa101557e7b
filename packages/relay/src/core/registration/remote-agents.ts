import { type AgentId, LIMITS, RelayError } from "@a2a-relay/protocol";
import { actorName, type Principal } from "../access/principal.ts";
import { newSigningSecret } from "../keys/key-maker.ts";
import type { Clock } from "../ports/clock.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Identifiers, Randomness } from "../ports/ids.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { endpointAfter } from "./push-endpoint.ts";
import { agentEvent, fillRecord, registeredBefore } from "./registration.ts";
import { identify } from "../agents/agent-identity.ts";
import type { AgentRecord } from "../ports/agents.ts";
import { AgentRemoval } from "./agent-removal.ts";

export interface RemoteAgentsParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly randomness: Randomness;
  readonly egress: EgressPolicy;
}

/** Registers remote agents: the first message to a URL makes a mailbox whose messages the relay sends there. */
export class RemoteAgents {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #randomness: Randomness;
  readonly #egress: EgressPolicy;
  readonly #removal: AgentRemoval;

  constructor(parts: RemoteAgentsParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#randomness = parts.randomness;
    this.#egress = parts.egress;
    this.#removal = new AgentRemoval(parts, settings);
  }

  /** Checks the address without a request. */
  check(id: AgentId, field: string): void {
    this.#egress.checkUrl(id, field);
  }

  /**
   * The changes that register the agent; undefined when it is registered. They are committed with the message, so that
   * a refused message registers no agent. `newcomers` are registered by the same commit.
   */
  async registration(
    principal: Principal,
    id: AgentId,
    newcomers: ReadonlySet<AgentId>,
  ): Promise<Changes | undefined> {
    const { tenant } = principal;
    if (newcomers.has(id)) return undefined;
    const known = (await this.#store.agents.get(tenant, id))?.agent;
    if (registeredBefore(known) !== undefined) return undefined;
    await this.#assertRoom(tenant, newcomers.size);
    await this.#removal.finish(principal, id);
    return this.#newAgent(principal, id, known);
  }

  async #newAgent(principal: Principal, id: AgentId, known: AgentRecord | undefined): Promise<Changes> {
    const { tenant } = principal;
    const identity = identify({}, { tenant, agentId: id, before: undefined });
    const nowMs = this.#clock.nowMs();
    const said = { display_name: displayNameOf(id), callback_url: id };
    const record = fillRecord({ tenant, id, known, identity }, said, { nowMs, egress: this.#egress });
    const before = await this.#store.endpoints.get(tenant, id);
    const wish = { tenant, agentId: id, callbackUrl: id, push: "a2a" } as const;
    const endpoint = endpointAfter(before, wish, () => newSigningSecret(this.#randomness));
    const by = { actor: actorName(principal), atMs: nowMs };
    const data = { aliases: [], pubkey_b58: record.publicKey, custodial: true, push: "a2a", external: true };
    return {
      tenant,
      agents: [record],
      pushEndpoints: endpoint === undefined ? [] : [endpoint],
      custodialKeys: identity.custodialKey === undefined ? [] : [identity.custodialKey],
      events: [agentEvent("agent.registered", id, by, data)],
    };
  }

  async #assertRoom(tenant: string, newcomers: number): Promise<void> {
    const count = (await this.#store.agents.count(tenant)).remote + newcomers;
    if (count < LIMITS.externalAgentsMax) return;
    throw new RelayError(
      "resource_exhausted",
      `to: ${count} remote agents are registered already, the limit; remove one with DELETE /agents/{id}`,
      { details: { limit: LIMITS.externalAgentsMax } },
    );
  }
}

/** The URL without its scheme. */
function displayNameOf(id: AgentId): string {
  const { host, pathname } = new URL(id);
  return `${host}${pathname === "/" ? "" : pathname}`.slice(0, LIMITS.displayNameCharsMax);
}
