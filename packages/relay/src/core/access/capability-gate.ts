import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import type { Clock } from "../ports/clock.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { pairedAction } from "../rules/paired-action.ts";
import { isRemote } from "../rules/remote-address.ts";
import {
  actOf,
  checkEvent,
  type CheckOutcome,
  type Demand,
  type RepairDemand,
  type RepairWish,
  requiredActions,
  type RespondDemand,
  type SendDemand,
} from "./capability-demand.ts";
import type { ScopedRequest } from "./capability-scope.ts";
import { type CapabilityValidity, describeFault, type Shortfall, useOf } from "./capability-token.ts";
import type { Guard } from "./guard.ts";
import { actorName, type AgentPrincipal, DEFAULT_TENANT, type Principal } from "./principal.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

export interface TenantSettings {
  /** Whether the default tenant requires capabilities; each other tenant has its own switch. */
  readonly capabilities: boolean;
}

/** What the caller commits together with the act: the check's event, and the capabilities with the use counted. */
export type GatePass = Pick<Partial<Changes>, "capabilities" | "events">;

/** One capability that an act requires of one agent. */
interface Need {
  readonly holder: AgentId;
  /** All that the holder has for the action, valid or not. */
  readonly held: readonly CapabilityRecord[];
  /** The action with the peer's name in it, for people. */
  readonly name: string;
  /** Undefined: any scope will do. */
  readonly request: ScopedRequest | undefined;
  /** The recipient holds it. The refusal then tells the caller no details. */
  readonly isConsent: boolean;
}

/**
 * Decides whether a caller may act on a task, and records every check. The gate finds capabilities by the caller's
 * public key. Where a tenant has them off, agents send and respond freely and only operators repair.
 */
export class CapabilityGate {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #guard: Guard;
  readonly #validity: CapabilityValidity;
  readonly #isOnByDefault: boolean;

  constructor(
    parts: {
      readonly store: RelayStore;
      readonly clock: Clock;
      readonly guard: Guard;
      readonly validity: CapabilityValidity;
    },
    settings: TenantSettings,
  ) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#guard = parts.guard;
    this.#validity = parts.validity;
    this.#isOnByDefault = settings.capabilities;
  }

  /** Answers what to commit together with the act. Records a refusal, then throws `permission_denied`. */
  async pass(principal: Principal, demand: Demand): Promise<GatePass> {
    if (!(await this.#isOn(principal.tenant))) {
      await this.#assertOpen(principal, demand);
      return {};
    }
    return principal.kind === "operator"
      ? this.#passOperator(principal, demand)
      : this.#passAgent(principal, demand);
  }

  /** Run before the relay reads the task: an agent without any such capability must not learn whether it exists. */
  async assertMayRepair(principal: Principal, wish: RepairWish): Promise<void> {
    if (!(await this.#isOn(principal.tenant))) {
      await this.#assertOpen(principal, wish);
      return;
    }
    if (principal.kind === "operator") return;
    const need = await this.#ownNeed(principal, wish, undefined);
    const search = await this.#validity.search(need.held, need.request);
    if (search.found === undefined) await this.#refuse(principal, wish, [need.name], need, search.why);
  }

  /** Records a failed check of a repair whose task is missing or hidden from the caller. */
  async recordUnseen(principal: Principal, wish: RepairWish): Promise<void> {
    if (principal.kind === "operator") return;
    const required = requiredActions(wish);
    const reason = "there is no such work that the caller takes part in";
    await this.#record(principal, wish, { required, missing: [], authorizedBy: [], passed: false, reason });
  }

  async #isOn(tenant: string): Promise<boolean> {
    if (tenant === DEFAULT_TENANT) return this.#isOnByDefault;
    return (await this.#store.tenants.get(tenant))?.capabilities ?? false;
  }

  async #assertOpen(principal: Principal, { kind }: Demand | RepairWish): Promise<void> {
    if (kind === "send" || kind === "respond" || principal.kind === "operator") return;
    await this.#guard.refuse(principal, kind === "compact" ? "mail.compact" : "repair.write", {});
  }

  #passOperator(principal: Principal, demand: Demand): GatePass {
    const by = this.#by(principal);
    const required = requiredActions(demand);
    const outcome = { required, missing: [], authorizedBy: [by.actor], passed: true };
    return { events: [checkEvent(demand, outcome, by)] };
  }

  async #passAgent(principal: AgentPrincipal, demand: Demand): Promise<GatePass> {
    const required: string[] = [];
    const authorizedBy: string[] = [];
    const spent: CapabilityRecord[] = [];
    for (const need of await this.#needsOf(principal, demand)) {
      required.push(need.name);
      const search = await this.#validity.search(need.held, need.request);
      if (search.found === undefined) return this.#refuse(principal, demand, required, need, search.why);
      authorizedBy.push(search.found.capability.id);
      // A retry only searches for stale tasks. Each task that it requeues takes a use.
      if (demand.kind !== "retry") spent.push(...useOf(search.found));
    }
    const outcome = { required, missing: [], authorizedBy, passed: true };
    const events = [checkEvent(demand, outcome, this.#by(principal))];
    return spent.length === 0 ? { events } : { events, capabilities: spent };
  }

  async #needsOf(principal: AgentPrincipal, demand: Demand): Promise<readonly Need[]> {
    switch (demand.kind) {
      case "send":
        return this.#needsOfSend(principal, demand);
      case "respond":
        return [await this.#needOfRespond(principal, demand)];
      case "repair":
        return [await this.#ownNeed(principal, demand, await this.#requestOfRepair(principal, demand))];
      case "retry":
        return [await this.#ownNeed(principal, demand, undefined)];
      default:
        return [await this.#ownNeed(principal, demand, BARE)];
    }
  }

  /** The sender's permission first, then the recipient's consent. An agent needs no consent of itself. */
  async #needsOfSend(principal: AgentPrincipal, demand: SendDemand): Promise<readonly Need[]> {
    const { tenant, agentId: sender } = principal;
    const { recipient } = demand;
    const { senderKey, recipientKey, permissions, consents } = await this.#store.capabilities.between(
      tenant,
      sender,
      recipient,
    );
    if (recipientKey === undefined) return this.#refuseKeyless(principal, demand, recipient);
    if (senderKey === undefined) return this.#refuseKeyless(principal, demand, sender);
    const sending: Need = {
      holder: sender,
      held: permissions,
      name: pairedAction("send", recipient),
      request: requestOf(demand, recipientKey),
      isConsent: false,
    };
    if (recipientKey === senderKey) return [sending];
    const receiving: Need = {
      holder: recipient,
      held: consents,
      name: pairedAction("recv", demand.sender),
      request: requestOf(demand, senderKey),
      isConsent: true,
    };
    return [sending, receiving];
  }

  async #needOfRespond(principal: AgentPrincipal, demand: RespondDemand): Promise<Need> {
    const { tenant } = principal;
    const { requester } = demand;
    const key =
      (await publicKeyOf(this.#store, tenant, requester)) ??
      // The relay keeps the key of an agent that has left, so that work for it can still end.
      (await this.#store.agents.get(tenant, requester))?.agent.publicKey ??
      "";
    return this.#ownNeed(principal, demand, requestOf(demand, key), pairedAction("respond", key));
  }

  /** What the caller itself must hold. `action` is given where the stored action contains a peer's key. */
  async #ownNeed(
    principal: AgentPrincipal,
    demand: Demand | RepairWish,
    request: ScopedRequest | undefined,
    action?: string,
  ): Promise<Need> {
    const { tenant, agentId: holder } = principal;
    const [name = ""] = requiredActions(demand);
    const key =
      (await publicKeyOf(this.#store, tenant, holder)) ??
      (await this.#refuseKeyless(principal, demand, holder));
    const held = await this.#store.capabilities.of(tenant, key, action ?? name);
    return { holder, held, name, request, isConsent: false };
  }

  async #requestOfRepair(principal: AgentPrincipal, demand: RepairDemand): Promise<ScopedRequest> {
    const peers: string[] = [];
    for (const party of demand.parties) {
      const key =
        party === principal.agentId ? undefined : await publicKeyOf(this.#store, principal.tenant, party);
      if (key !== undefined) peers.push(key);
    }
    const { leaseId, duplicateRisk } = demand;
    return { peers, taskIds: taskIdsOf(demand), leaseId, duplicateRisk };
  }

  async #refuseKeyless(
    principal: AgentPrincipal,
    demand: Demand | RepairWish,
    agentId: AgentId,
  ): Promise<never> {
    const required = requiredActions(demand);
    const reason = isRemote(agentId)
      ? `${agentId} is not known here yet; the first message to it must be an operator's`
      : `${agentId} has no public key, because it was registered by an older relay; it must register again`;
    const outcome = { required, missing: required, authorizedBy: [], passed: false, reason };
    await this.#record(principal, demand, outcome);
    throw refusalOf(`${actOf(demand)} rejected: ${reason}`, outcome);
  }

  async #refuse(
    principal: AgentPrincipal,
    demand: Demand | RepairWish,
    required: readonly string[],
    need: Need,
    why: Shortfall,
  ): Promise<never> {
    const missing = why.scope === undefined ? [need.name] : [];
    const reason = why.scope ?? (why.nearest === undefined ? undefined : describeFault(why.nearest));
    const outcome = { required, missing, authorizedBy: [], passed: false, reason };
    await this.#record(principal, demand, outcome);
    throw refusalOf(textOf(demand, need, why), outcome);
  }

  #record(principal: Principal, demand: Demand | RepairWish, outcome: CheckOutcome): Promise<void> {
    return this.#guard.record(principal.tenant, checkEvent(demand, outcome, this.#by(principal)));
  }

  #by(principal: Principal): { readonly actor: string; readonly atMs: number } {
    return { actor: actorName(principal), atMs: this.#clock.nowMs() };
  }
}

/** A request without anything that a scope could narrow. */
const BARE: ScopedRequest = { peers: [], taskIds: [], leaseId: undefined, duplicateRisk: undefined };

function requestOf(demand: SendDemand | RespondDemand, peerKey: string): ScopedRequest {
  return {
    peers: [peerKey],
    taskIds: taskIdsOf(demand),
    leaseId: demand.kind === "respond" ? demand.leaseId : undefined,
    duplicateRisk: undefined,
  };
}

function taskIdsOf(demand: {
  readonly taskId: string | null | undefined;
  readonly clientTaskId: string | null | undefined;
}): readonly string[] {
  return [demand.taskId, demand.clientTaskId].filter((id) => id != null);
}

function textOf(demand: Demand | RepairWish, need: Need, why: Shortfall): string {
  const act = actOf(demand);
  const { name, holder } = need;
  if (why.scope !== undefined) {
    const scope = need.isConsent ? `the recipient's "${name}" does not cover this` : why.scope;
    return `${act} rejected by capability scope: ${scope}`;
  }
  const how = `Grant it with: a2a-relay capabilities grant ${name} --subject ${holder}`;
  if (need.isConsent) return `${act} rejected: recipient has not granted capability "${name}". ${how}`;
  const nearest = why.nearest === undefined ? "" : ` (${describeFault(why.nearest)})`;
  return `${act} requires capability "${name}"${nearest}. ${how}`;
}

function refusalOf(text: string, { required, missing }: CheckOutcome): RelayError {
  return new RelayError("permission_denied", text, { details: { required, missing } });
}
