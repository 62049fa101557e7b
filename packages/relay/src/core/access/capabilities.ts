import { type AgentId, RelayError } from "@a2a-relay/protocol";
import { isRemote } from "../rules/remote-address.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { CapabilityRecord, PairAccess } from "../ports/access.ts";
import { pairedAction } from "./capability-action.ts";
import { actOf, checkData, checkEvent, type CheckOutcome, requiredActions } from "./capability-check.ts";
import type {
  CapabilityGate,
  Demand,
  GatePass,
  RepairDemand,
  RepairWish,
  RespondDemand,
  SendDemand,
} from "./capability-gate.ts";
import type { ScopedRequest } from "./capability-scope.ts";
import { chosenOf, describeFault, type Search, type Shortfall, useOf } from "./capability-search.ts";
import type { CapabilityValidity, Standing } from "./capability-validity.ts";
import type { Guard } from "./guard.ts";
import { actorName, type AgentPrincipal, DEFAULT_TENANT, type Principal } from "./principal.ts";

export interface TenantSettings {
  /** Whether tasks of the default tenant need capabilities; every other tenant has a switch of its own. */
  readonly capabilities: boolean;
}

/** What one act needs of one agent. */
interface Need {
  readonly holder: AgentId;
  /** What the holder has of it, whether or not it counts. */
  readonly held: readonly CapabilityRecord[];
  /** The action with the other's name in it, for people. */
  readonly name: string;
  /** Undefined: whatever its scope. */
  readonly request: ScopedRequest | undefined;
  /** Held by somebody else than the caller, who is told nothing about it. */
  readonly isConsent: boolean;
}

const OPEN: Promise<GatePass> = Promise.resolve({});

/** Asks for capabilities where the tenant wants them, by the caller's key, and puts every answer on record. */
export class Capabilities implements CapabilityGate {
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

  /** Every task comes by here, so the default tenant waits for nothing that it need not wait for. */
  pass(principal: Principal, demand: Demand): Promise<GatePass> {
    if (principal.tenant !== DEFAULT_TENANT) return this.#passElsewhere(principal, demand);
    return this.#isOnByDefault ? this.#passGated(principal, demand) : this.#passOpen(principal, demand);
  }

  async assertMayRepair(principal: Principal, wish: RepairWish): Promise<void> {
    if (!(await this.#isOn(principal.tenant))) {
      await this.#passOpen(principal, wish);
      return;
    }
    if (principal.kind === "operator") return;
    const need = await this.#ownNeed(principal, wish, undefined);
    const search = await this.#search(need);
    if (search.found === undefined) await this.#refuse(principal, wish, [need.name], need, search.why);
  }

  async recordUnseen(principal: Principal, wish: RepairWish): Promise<void> {
    if (principal.kind === "operator") return;
    const required = requiredActions(wish);
    const reason = "there is no such work that the caller takes part in";
    await this.#record(principal, wish, { required, missing: [], authorizedBy: [], passed: false, reason });
  }

  async #isOn(tenant: string): Promise<boolean> {
    if (tenant === DEFAULT_TENANT) return this.#isOnByDefault;
    return (await this.#store.tenant(tenant))?.capabilities ?? false;
  }

  async #passElsewhere(principal: Principal, demand: Demand): Promise<GatePass> {
    const isOn = await this.#isOn(principal.tenant);
    return isOn ? this.#passGated(principal, demand) : this.#passOpen(principal, demand);
  }

  #passGated(principal: Principal, demand: Demand): Promise<GatePass> {
    return principal.kind === "operator"
      ? this.#passOperator(principal, demand)
      : this.#passAgent(principal, demand);
  }

  /** Without capabilities, work is anybody's to give and to answer, and only operators repair. */
  #passOpen(principal: Principal, { kind }: Demand | RepairWish): Promise<GatePass> {
    if (kind === "send" || kind === "respond" || principal.kind === "operator") return OPEN;
    const verb = kind === "compact" ? "mail.compact" : "repair.write";
    return this.#guard.refuse(principal, verb, {});
  }

  async #passOperator(principal: Principal, demand: Demand): Promise<GatePass> {
    const required = requiredActions(demand);
    const by = this.#by(principal);
    const outcome = { required, missing: [], authorizedBy: [by.actor], passed: true };
    return { events: [checkEvent(demand, checkData(demand, outcome), by)] };
  }

  #passAgent(principal: AgentPrincipal, demand: Demand): Promise<GatePass> {
    return demand.kind === "send" ? this.#passSend(principal, demand) : this.#passOther(principal, demand);
  }

  async #passSend(principal: AgentPrincipal, demand: SendDemand): Promise<GatePass> {
    const access = await this.#store.accessBetween(principal.tenant, principal.agentId, demand.recipient);
    return this.#check(principal, demand, await this.#needsOfSend(principal, demand, access));
  }

  async #passOther(
    principal: AgentPrincipal,
    demand: Exclude<Demand, { readonly kind: "send" }>,
  ): Promise<GatePass> {
    return this.#check(principal, demand, await this.#needsOf(principal, demand));
  }

  async #check(principal: AgentPrincipal, demand: Demand, needs: readonly Need[]): Promise<GatePass> {
    const required: string[] = [];
    const authorizedBy: string[] = [];
    const spent: CapabilityRecord[] = [];
    for (const need of needs) {
      required.push(need.name);
      const search = await this.#search(need);
      if (search.found === undefined) {
        return this.#refuse(principal, demand, required, need, search.why);
      }
      authorizedBy.push(search.found.capability.id);
      // A look spends nothing; what is requeued after it does.
      if (demand.kind !== "retry") spent.push(...useOf(search.found));
    }
    const data = checkData(demand, { required, missing: [], authorizedBy, passed: true });
    const events = [checkEvent(demand, data, this.#by(principal))];
    return spent.length === 0 ? { events } : { events, capabilities: spent };
  }

  async #needsOf(
    principal: AgentPrincipal,
    demand: Exclude<Demand, { readonly kind: "send" }>,
  ): Promise<readonly Need[]> {
    switch (demand.kind) {
      case "respond":
        return [await this.#needOfRespond(principal, demand)];
      case "repair":
        return [await this.#ownNeed(principal, demand, await this.#requestOfRepair(principal, demand))];
      case "retry":
        // What it requeues is asked for one by one.
        return [await this.#ownNeed(principal, demand, undefined)];
      default:
        return [await this.#ownNeed(principal, demand, BARE)];
    }
  }

  /** The sender's own permission first, then the recipient's consent, which oneself need not give. */
  async #needsOfSend(
    principal: AgentPrincipal,
    demand: SendDemand,
    { senderKey, recipientKey, permissions, consents }: PairAccess,
  ): Promise<readonly Need[]> {
    const { agentId: sender } = principal;
    const { recipient } = demand;
    if (recipientKey === undefined) return this.#refuseKeyless(principal, demand, recipient);
    if (senderKey === undefined) return this.#refuseKeyless(principal, demand, sender);
    const [sendName = "", recvName = ""] = requiredActions(demand);
    const sending: Need = {
      holder: sender,
      held: permissions,
      name: sendName,
      request: requestOf(demand, recipientKey),
      isConsent: false,
    };
    if (recipientKey === senderKey) return [sending];
    const receiving: Need = {
      holder: recipient,
      held: consents,
      name: recvName,
      request: requestOf(demand, senderKey),
      isConsent: true,
    };
    return [sending, receiving];
  }

  async #needOfRespond(principal: AgentPrincipal, demand: RespondDemand): Promise<Need> {
    const { tenant } = principal;
    const { requester } = demand;
    const key =
      (await this.#store.publicKeyOf(tenant, requester)) ??
      // Whoever has left keeps its key on record, and work for it may still be ended.
      (await this.#store.agent(tenant, requester))?.agent.publicKey ??
      "";
    return this.#ownNeed(principal, demand, requestOf(demand, key), pairedAction("respond", key));
  }

  /** What the caller itself must hold. By name, unless the action has a peer: then tokens have its key in it. */
  async #ownNeed(
    principal: AgentPrincipal,
    demand: Demand | RepairWish,
    request: ScopedRequest | undefined,
    action?: string,
  ): Promise<Need> {
    const { tenant, agentId: holder } = principal;
    const [name = ""] = requiredActions(demand);
    const key =
      (await this.#store.publicKeyOf(tenant, holder)) ??
      (await this.#refuseKeyless(principal, demand, holder));
    const held = await this.#store.capabilitiesFor(tenant, key, action ?? name);
    return { holder, held, name, request, isConsent: false };
  }

  async #requestOfRepair(principal: AgentPrincipal, demand: RepairDemand): Promise<ScopedRequest> {
    const peers: string[] = [];
    for (const party of demand.parties) {
      const key =
        party === principal.agentId ? undefined : await this.#store.publicKeyOf(principal.tenant, party);
      if (key !== undefined) peers.push(key);
    }
    const { leaseId, duplicateRisk } = demand;
    return { peers, taskIds: taskIdsOf(demand), leaseId, duplicateRisk };
  }

  /** Nothing to wait for unless something was delegated. */
  #search({ held, request }: Need): Search | Promise<Search> {
    const standings = held.map((capability) => this.#validity.standing(capability));
    return standings.some((standing) => standing instanceof Promise)
      ? Promise.all(standings.map(async (standing) => standing)).then((known) =>
          chosenOf(held, known, request),
        )
      : chosenOf(held, standings as readonly Standing[], request);
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
    const data = checkData(demand, outcome);
    return this.#guard.record(principal.tenant, checkEvent(demand, data, this.#by(principal)));
  }

  #by(principal: Principal): { readonly actor: string; readonly atMs: number } {
    return { actor: actorName(principal), atMs: this.#clock.nowMs() };
  }
}

/** Nothing that a scope could be narrowed to. */
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
