import { type AgentId, quote, type QueueAgent, RelayError } from "@a2a-relay/protocol";
import { isPublicKey } from "../rules/ed25519.ts";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { Directory } from "../agents/directory.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";
import { agentsNamed } from "../rules/agent-names.ts";

/** How a caller names an agent. */
export type AgentName = QueueAgent | string;

/** Resolves agents as this wire names them: the public key identifies the agent, the display name is for people. */
export class QueueAgents {
  readonly #store: RelayStore;
  readonly #directory: Directory;
  readonly #guard: Guard;

  constructor(parts: { readonly store: RelayStore; readonly directory: Directory; readonly guard: Guard }) {
    this.#store = parts.store;
    this.#directory = parts.directory;
    this.#guard = parts.guard;
  }

  async resolve(tenant: string, agent: AgentName, field: string): Promise<AgentId> {
    const { display, pubkey } = toQueueAgent(agent);
    if (pubkey === undefined) return this.#directory.resolve(tenant, display, field);
    const id = isPublicKey(pubkey) ? await this.#store.agents.withKey(tenant, pubkey) : undefined;
    if (id !== undefined) return id;
    throw new RelayError(
      isPublicKey(pubkey) ? "unknown_agent" : "invalid_argument",
      isPublicKey(pubkey)
        ? `${field}: no agent is registered with the key ${quote(pubkey)}; GET /agents/{id} shows an agent's key`
        : `${field}: ${quote(pubkey)} is not an Ed25519 public key in base58`,
    );
  }

  /** An agent can only send as itself; an operator names the sender. */
  async sender(principal: Principal, claimed: AgentName): Promise<AgentId> {
    const { tenant } = principal;
    if (principal.kind === "operator") return this.resolve(tenant, claimed, "sender");
    const { display, pubkey } = toQueueAgent(claimed);
    const own = principal.agentId;
    const isOwn =
      pubkey === undefined
        ? (await agentsNamed(this.#store, tenant, display)).includes(own)
        : (await publicKeyOf(this.#store, tenant, own)) === pubkey;
    if (isOwn) return own;
    const rejected = `a2a send rejected: task.sender ${quote(display)} does not match authenticated peer ${quote(own)}`;
    const why = pubkey === undefined ? "" : `: its key is not ${quote(pubkey)}`;
    return this.#guard.refuse(
      principal,
      "messages.send",
      {},
      new RelayError("permission_denied", `${rejected}${why}`),
    );
  }

  /** A deregistered agent has no key. */
  async view(tenant: string, id: AgentId): Promise<QueueAgent> {
    const pubkey = await publicKeyOf(this.#store, tenant, id);
    return { display: id, ...(pubkey === undefined ? {} : { pubkey }) };
  }
}

function toQueueAgent(agent: AgentName): QueueAgent {
  return typeof agent === "string" ? { display: agent } : agent;
}
