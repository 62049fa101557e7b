import { type AgentId, parseAddress, POSTMASTER, RelayError } from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import { remoteIdOf } from "../rules/remote-address.ts";
import { agentsNamed } from "../rules/agent-names.ts";

/** Finds the one agent that an address names. */
export class Directory {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  /** An exact id wins over aliases and display names; a name that two agents share is an error. */
  resolve(tenant: string, input: unknown, field: string): Promise<AgentId> {
    return this.#resolve(tenant, input, field, "known");
  }

  /** The same for a recipient: a remote agent need not be known yet. */
  resolveRecipient(tenant: string, input: unknown, field: string): Promise<AgentId> {
    return this.#resolve(tenant, input, field, "any");
  }

  async #resolve(tenant: string, input: unknown, field: string, remote: "known" | "any"): Promise<AgentId> {
    const address = parseAddress(input, field);
    if (address.kind === "url") {
      const id = remoteIdOf(address.url, field);
      return remote === "any" ? id : this.#knownRemote(tenant, id, field);
    }
    if (address.kind !== "name") {
      throw new RelayError(
        "invalid_argument",
        `${field}: ${address.kind} addresses are not served by this relay; name an agent id or alias`,
      );
    }
    const { name } = address;
    if (name === POSTMASTER) {
      throw new RelayError("unknown_agent", `${field}: ${POSTMASTER} sends notices and reads no messages`);
    }
    const [first, ...others] = await agentsNamed(this.#store, tenant, name);
    if (first === undefined) {
      throw new RelayError(
        "unknown_agent",
        `${field}: no agent is registered as "${name}"; GET /agents lists all`,
        { details: { name } },
      );
    }
    if (first === name || others.length === 0) return first;
    const candidates = [first, ...others];
    throw new RelayError(
      "ambiguous_agent",
      `${field}: "${name}" may be ${candidates.join(" or ")}; use the full id`,
      { details: { name, candidates } },
    );
  }

  async #knownRemote(tenant: string, id: AgentId, field: string): Promise<AgentId> {
    const [known] = await agentsNamed(this.#store, tenant, id);
    if (known === id) return id;
    throw new RelayError("unknown_agent", `${field}: no agent has written to ${id} yet`, {
      details: { name: id },
    });
  }
}
