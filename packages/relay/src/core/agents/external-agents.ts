import { type AgentId, LIMITS, RelayError } from "@a2a-relay/protocol";
import { actorName, type Principal } from "../access/principal.ts";
import { newSigningSecret } from "../access/signing-secret.ts";
import type { Clock } from "../environment/clock.ts";
import { decideAndCommit } from "../environment/commit-retry.ts";
import type { EgressPolicy } from "../environment/egress-policy.ts";
import type { Identifiers } from "../environment/identifiers.ts";
import type { Randomness } from "../environment/randomness.ts";
import type { Changes, RelayStore } from "../environment/relay-store.ts";
import { endpointAfter } from "../push/push-endpoint.ts";
import { agentEvent } from "./agent-event.ts";
import { identify } from "./agent-identity.ts";
import type { AgentRecord } from "./agent-record.ts";
import { AgentRemoval } from "./agent-removal.ts";
import { fillRecord, registeredBefore } from "./registration.ts";

export interface ExternalAgentsParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly randomness: Randomness;
  readonly egress: EgressPolicy;
}

/** Agents that nobody registered: whoever is written to by a URL gets a mailbox here, which the relay takes there. */
export class ExternalAgents {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #randomness: Randomness;
  readonly #egress: EgressPolicy;
  readonly #removal: AgentRemoval;

  constructor(parts: ExternalAgentsParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#randomness = parts.randomness;
    this.#egress = parts.egress;
    this.#removal = new AgentRemoval(parts, settings);
  }

  /** Makes sure that mail can be left for it. What can be said of its address without asking anybody is said here. */
  async welcome(principal: Principal, id: AgentId, field: string): Promise<void> {
    const { tenant } = principal;
    this.#egress.checkUrl(id, field);
    if ((await this.#registered(tenant, id)) !== undefined) return;
    await this.#removal.finish(principal, id);
    await decideAndCommit(this.#store, async () => {
      const isThere = (await this.#registered(tenant, id)) !== undefined;
      return { changes: isThere ? undefined : await this.#registration(principal, id), answer: undefined };
    });
  }

  async #registered(tenant: string, id: AgentId): Promise<AgentRecord | undefined> {
    return registeredBefore((await this.#store.agent(tenant, id))?.agent);
  }

  async #registration(principal: Principal, id: AgentId): Promise<Changes> {
    const { tenant } = principal;
    await this.#assertRoom(tenant);
    const known = (await this.#store.agent(tenant, id))?.agent;
    const identity = identify({}, { tenant, agentId: id, before: undefined });
    const nowMs = this.#clock.nowMs();
    const said = { display_name: displayNameOf(id), callback_url: id };
    const record = fillRecord({ tenant, id, known, identity }, said, { nowMs, egress: this.#egress });
    const before = await this.#store.pushEndpoint(tenant, id);
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

  async #assertRoom(tenant: string): Promise<void> {
    const count = await this.#store.countExternalAgents(tenant);
    if (count < LIMITS.externalAgentsMax) return;
    throw new RelayError(
      "resource_exhausted",
      `to: ${count} agents elsewhere are written to already, the limit; remove one with DELETE /agents/{id}`,
      { details: { limit: LIMITS.externalAgentsMax } },
    );
  }
}

/** As people say it: where it is, without how to get there. */
function displayNameOf(id: AgentId): string {
  const { host, pathname } = new URL(id);
  return `${host}${pathname === "/" ? "" : pathname}`.slice(0, LIMITS.displayNameCharsMax);
}
