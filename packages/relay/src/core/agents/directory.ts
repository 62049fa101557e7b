import { type AgentId, parseAddress, POSTMASTER, RelayError } from "@a2a-relay/protocol";
import type { AgentStore } from "./agent-store.ts";
import { externalIdOf } from "./external-address.ts";

/** Turns what people write into the one agent they mean, or says why it cannot. */
export class Directory {
  readonly #store: AgentStore;

  constructor(store: AgentStore) {
    this.#store = store;
  }

  /** An exact id wins over aliases and display names; a name that two agents share is an error. */
  resolve(tenant: string, input: unknown, field: string): Promise<AgentId> | AgentId {
    return this.#resolve(tenant, input, field, "known");
  }

  /** The same for whom something is sent to: whoever is elsewhere need not be known yet. */
  resolveRecipient(tenant: string, input: unknown, field: string): Promise<AgentId> | AgentId {
    return this.#resolve(tenant, input, field, "any");
  }

  #resolve(
    tenant: string,
    input: unknown,
    field: string,
    elsewhere: "known" | "any",
  ): Promise<AgentId> | AgentId {
    // Mostly it is an exact id, and then there is nothing to parse: the id of an agent has only one meaning.
    const isId = typeof input === "string" && this.#store.agentsNamedAtHand(tenant, input)?.[0] === input;
    if (isId) return input as AgentId;
    const address = parseAddress(input, field);
    if (address.kind === "url") {
      const id = externalIdOf(address.url, field);
      return elsewhere === "any" ? id : this.#among(tenant, id, (named) => theKnown(named, id, field));
    }
    if (address.kind !== "name") {
      throw new RelayError(
        "invalid_argument",
        `${field}: ${address.kind} addresses are not served by this relay; name an agent id or alias`,
      );
    }
    const { name } = address;
    if (name === POSTMASTER) {
      throw new RelayError("unknown_agent", `${field}: ${POSTMASTER} sends notices and reads no mail`);
    }
    return this.#among(tenant, name, (named) => theOne(named, name, field));
  }

  /** What the store can say at once is not waited for. */
  #among(
    tenant: string,
    name: string,
    choose: (named: readonly AgentId[]) => AgentId,
  ): Promise<AgentId> | AgentId {
    const atHand = this.#store.agentsNamedAtHand(tenant, name);
    return atHand === undefined ? this.#store.agentsNamed(tenant, name).then(choose) : choose(atHand);
  }
}

function theOne(named: readonly AgentId[], name: string, field: string): AgentId {
  const [first, ...others] = named;
  if (first === undefined) {
    throw new RelayError(
      "unknown_agent",
      `${field}: nobody is registered as "${name}"; GET /agents lists who is`,
      { details: { name } },
    );
  }
  if (first === name || others.length === 0) return first;
  throw new RelayError(
    "ambiguous_agent",
    `${field}: "${name}" may be ${named.join(" or ")}; use the full id`,
    {
      details: { name, candidates: named },
    },
  );
}

function theKnown([known]: readonly AgentId[], id: AgentId, field: string): AgentId {
  if (known === id) return id;
  throw new RelayError("unknown_agent", `${field}: nobody has written to ${id} yet`, {
    details: { name: id },
  });
}
