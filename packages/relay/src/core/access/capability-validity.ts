import type { Clock } from "../ports/clock.ts";
import type { AgentStore } from "../ports/agents.ts";
import type { AccessStore, CapabilityRecord } from "../ports/access.ts";
import { usesLeft } from "./capability-scope.ts";
import { SignatureCheck } from "./capability-token.ts";
import type { SigningKey } from "../rules/ed25519.ts";

/** Why a capability is not honoured. */
export type Fault = "revoked" | "expired" | "not signed by this relay" | "spent" | "without its parent";

/** Either why it does not count, or what it hangs on. */
export type Standing =
  | { readonly fault: Fault }
  | { readonly fault: undefined; readonly parent: CapabilityRecord | undefined };

const ROOTED: Standing = { fault: undefined, parent: undefined };

/** Says of each capability whether it counts now. */
export class CapabilityValidity {
  readonly #store: AccessStore & Pick<AgentStore, "agentWithKey">;
  readonly #clock: Clock;
  readonly #signatures: SignatureCheck;

  constructor(parts: {
    readonly store: AccessStore & Pick<AgentStore, "agentWithKey">;
    readonly clock: Clock;
    readonly identity: SigningKey;
  }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#signatures = new SignatureCheck(parts.identity.publicKey);
  }

  /** Nothing to wait for unless it was delegated. */
  standing(capability: CapabilityRecord): Standing | Promise<Standing> {
    const fault = this.#faultOf(capability);
    if (fault !== undefined) return { fault };
    return capability.parentId === null ? ROOTED : this.#standingOfChild(capability, capability.parentId);
  }

  /** A delegated capability dies with the one it came from, is spent with it, and goes when its holder goes. */
  async #standingOfChild(child: CapabilityRecord, parentId: string): Promise<Standing> {
    const parent = await this.#store.capability(child.tenant, parentId);
    if (parent === undefined || this.#faultOf(parent) !== undefined) return { fault: "without its parent" };
    const holder = await this.#store.agentWithKey(child.tenant, parent.subjectKey);
    return holder === undefined ? { fault: "without its parent" } : { fault: undefined, parent };
  }

  #faultOf(capability: CapabilityRecord): Fault | undefined {
    const { revokedAtMs, expiresAtMs } = capability;
    if (revokedAtMs !== null) return "revoked";
    // At the very millisecond it still counts.
    if (expiresAtMs !== null && this.#clock.nowMs() > expiresAtMs) return "expired";
    if (!this.#signatures.isGenuine(capability)) return "not signed by this relay";
    return usesLeft(capability) === 0 ? "spent" : undefined;
  }
}
