import type { AgentId } from "@a2a-relay/protocol";
import type { PairAccess } from "../../core/ports/access.ts";
import { pairedAction } from "../../core/access/capability-demand.ts";
import type { Agents } from "./agents.ts";
import type { Capabilities } from "./capabilities.ts";
import { KnownPairs } from "./known.ts";

/** Pairs that are remembered. */
const KNOWN_MAX = 10_000;

/** What stands between two agents, put together once for as long as neither agents nor capabilities change. */
export class PairAccesses {
  readonly #agents: Agents;
  readonly #capabilities: Capabilities;
  readonly #known = new KnownPairs<PairAccess>(KNOWN_MAX);
  #changes = 0;

  constructor(agents: Agents, capabilities: Capabilities) {
    this.#agents = agents;
    this.#capabilities = capabilities;
  }

  between(tenant: string, sender: AgentId, recipient: AgentId): PairAccess {
    const changes = this.#agents.changes + this.#capabilities.changes;
    if (changes !== this.#changes) this.#known.clear();
    this.#changes = changes;
    const known = this.#known.get(tenant, sender, recipient);
    if (known !== undefined) return known;
    const found = this.#read(tenant, sender, recipient);
    this.#known.set(tenant, sender, recipient, found);
    return found;
  }

  #read(tenant: string, sender: AgentId, recipient: AgentId): PairAccess {
    const senderKey = this.#agents.publicKeyOf(tenant, sender);
    const recipientKey = this.#agents.publicKeyOf(tenant, recipient);
    if (senderKey === undefined || recipientKey === undefined) {
      return { senderKey, recipientKey, permissions: [], consents: [] };
    }
    const permission = pairedAction("send", recipientKey);
    const consent = pairedAction("recv", senderKey);
    return {
      senderKey,
      recipientKey,
      permissions: this.#capabilities.capabilitiesFor(tenant, senderKey, permission),
      consents: this.#capabilities.capabilitiesFor(tenant, recipientKey, consent),
    };
  }
}
