import {
  type AgentId,
  AgentsQuerySchema,
  type AgentsResponse,
  type AgentView,
  LIMITS,
  quote,
  type RegisterRequest,
  RegisterRequestSchema,
  type RegisterResponse,
  RelayError,
} from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { KeyMaker, NewKey } from "../keys/key-maker.ts";
import { keyEvent } from "../keys/key-service.ts";
import { actorName, type OperatorPrincipal, type Principal } from "../access/principal.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { EgressPolicy } from "../rules/egress-policy.ts";
import type { Identifiers, Randomness } from "../ports/ids.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { PushEndpoint } from "../ports/pushes.ts";
import { agentEvent, fillRecord, registeredBefore } from "./registration.ts";
import { checkKeyProof, identify, type Identity } from "../agents/agent-identity.ts";
import { readAgentId } from "../rules/agent-name.ts";
import type { AgentRecord, AgentWithPresence } from "../ports/agents.ts";
import { AgentRemoval } from "./agent-removal.ts";
import { viewAgent } from "../agents/agent-card.ts";
import type { CardSettings } from "../agents/card-interfaces.ts";
import type { Directory } from "../agents/directory.ts";
import { isListedFor } from "../access/authorize.ts";
import { type PushAfter, PushRegistration } from "./push-registration.ts";
import { agentsNamed } from "../rules/agent-names.ts";

export interface AgentParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly keyMaker: KeyMaker;
  readonly egress: EgressPolicy;
  readonly randomness: Randomness;
}

export type AgentSettings = CardSettings;

const parseRegister = parserOf(RegisterRequestSchema, "registration");
const parseQuery = parserOf(AgentsQuerySchema, "query");

/** Registers, lists and removes agents. */
export class AgentService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #keyMaker: KeyMaker;
  readonly #egress: EgressPolicy;
  readonly #pushRegistration: PushRegistration;
  readonly #removal: AgentRemoval;
  readonly #settings: AgentSettings;

  constructor(parts: AgentParts, settings: AgentSettings) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#keyMaker = parts.keyMaker;
    this.#egress = parts.egress;
    this.#pushRegistration = new PushRegistration(parts);
    this.#removal = new AgentRemoval(parts, settings);
    this.#settings = settings;
  }

  /**
   * Registers the agent, or updates it: absent fields stay unchanged. The first registration makes the agent's key,
   * the first with push its signing secret; only this answer contains them.
   */
  async register(principal: Principal, input: unknown): Promise<RegisterResponse> {
    const request = parseRegister(input);
    const id = this.#idOf(request);
    await this.#guard.authorize(principal, "agents.write", { agentId: id });
    const { tenant } = principal;
    await this.#removal.finish(principal, id);
    const { record, endpoint, ...secrets } = await decideAndCommit(this.#store, async (clash) => {
      if (clash === "agent_name") throw await this.#nameTaken(tenant, id, request.aliases ?? []);
      if (clash === "agent_key") throw keyTaken();
      const known = (await this.#store.agents.get(tenant, id))?.agent;
      const identity = await this.#identify(principal, request, id, known);
      const filled = fillRecord({ tenant, id, known, identity }, request, {
        nowMs: this.#clock.nowMs(),
        egress: this.#egress,
      });
      const before = registeredBefore(known);
      const key = before === undefined ? this.#ownKey(principal, id) : undefined;
      const push = await this.#pushRegistration.after(principal, request, { before, record: filled });
      return {
        changes: this.#registration(principal, filled, identity, key, push),
        answer: { record: filled, endpoint: push.endpoint, apiKey: key?.text, pushSecret: push.secret },
      };
    });
    const lastSeenAtMs = this.#clock.nowMs();
    await this.#store.agents.touch(tenant, id, lastSeenAtMs);
    return {
      agent_id: id,
      created: secrets.apiKey !== undefined,
      ...(secrets.apiKey === undefined ? {} : { api_key: secrets.apiKey }),
      ...(secrets.pushSecret === undefined ? {} : { push_secret: secrets.pushSecret }),
      agent: this.#viewWith(principal, { agent: record, lastSeenAtMs }, endpoint),
    };
  }

  async get(principal: Principal, name: string): Promise<AgentView> {
    return this.#view(principal, await this.#found(principal, name));
  }

  async list(principal: Principal, input: unknown): Promise<AgentsResponse> {
    await this.#guard.authorize(principal, "agents.read");
    const query = parseQuery(input);
    const { tenant } = principal;
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const found = await this.#listed(principal, query.page_token ?? "", limit);
    const items = await Promise.all(found.map((each) => this.#view(principal, each)));
    const last = items.length === limit ? items.at(-1) : undefined;
    const { all, remote } = await this.#store.agents.count(tenant);
    const total = principal.kind === "operator" ? all : all - remote;
    return { items, agents: items, total, ...(last === undefined ? {} : { pageToken: last.agent_id }) };
  }

  async heartbeat(principal: Principal, name: string): Promise<AgentView> {
    const { agent } = await this.#found(principal, name);
    await this.#guard.authorize(principal, "agents.write", { agentId: agent.id });
    const lastSeenAtMs = this.#clock.nowMs();
    await this.#store.agents.touch(principal.tenant, agent.id, lastSeenAtMs);
    return this.#view(principal, { agent, lastSeenAtMs });
  }

  /** Revokes the agent's keys, withdraws its open messages and notifies their senders. The id stays reserved. */
  async remove(principal: Principal, name: string): Promise<{ readonly removed: AgentId }> {
    const { agent } = await this.#found(principal, name);
    await this.#guard.authorize(principal, "agents.write", { agentId: agent.id });
    await this.#removal.remove(principal, agent.id);
    return { removed: agent.id };
  }

  /** Finishes removals that a crash interrupted. The relay calls it when it starts. */
  async finishRemovals(principal: OperatorPrincipal): Promise<void> {
    await this.#removal.finishAll(principal);
  }

  async #listed(viewer: Principal, after: string, limit: number): Promise<readonly AgentWithPresence[]> {
    const listed: AgentWithPresence[] = [];
    for (let afterId = after; ;) {
      const page = await this.#store.agents.list({ tenant: viewer.tenant, isRemoved: false, afterId, limit });
      listed.push(...page.filter(({ agent }) => isListedFor(viewer, agent.id)));
      const last = page.at(-1)?.agent.id;
      if (last === undefined || page.length < limit || listed.length >= limit) return listed.slice(0, limit);
      afterId = last;
    }
  }

  #idOf(request: RegisterRequest): AgentId {
    if (request.agent_id !== undefined) return readAgentId(request.agent_id);
    if (request.pubkey_b58 === undefined) return readAgentId(this.#ids.agent());
    throw new RelayError("invalid_argument", "pubkey_b58: needs agent_id too, because key_proof names it");
  }

  /** An invalid proof is recorded as a refusal. */
  async #identify(
    principal: Principal,
    request: RegisterRequest,
    agentId: AgentId,
    known: AgentRecord | undefined,
  ): Promise<Identity> {
    const claim = { tenant: principal.tenant, agentId, before: registeredBefore(known) };
    try {
      checkKeyProof(request, claim, this.#clock.nowMs());
    } catch (reason) {
      const error = RelayError.from(reason);
      if (error.code !== "permission_denied") throw error;
      await this.#guard.refuse(principal, "agents.write", { agentId }, error);
    }
    return identify(request, claim);
  }

  /** Has the verbs of the caller's key, and the expiry of an agent's key, so that registering widens no access. */
  #ownKey(principal: Principal, agentId: AgentId): NewKey {
    return this.#keyMaker.make({
      tenant: principal.tenant,
      agentId,
      verbs: principal.verbs === undefined ? null : [...principal.verbs],
      createdAtMs: this.#clock.nowMs(),
      createdBy: actorName(principal),
      expiresAtMs: principal.kind === "agent" ? (principal.expiresAtMs ?? null) : null,
      replaces: null,
    });
  }

  #registration(
    principal: Principal,
    record: AgentRecord,
    { custodialKey }: Identity,
    key: NewKey | undefined,
    push: PushAfter,
  ): Changes {
    const by = { actor: actorName(principal), atMs: this.#clock.nowMs() };
    const { aliases, publicKey, isCustodial } = record;
    const type = key === undefined ? "agent.updated" : "agent.registered";
    const data = { aliases, pubkey_b58: publicKey, custodial: isCustodial, ...push.data };
    return {
      tenant: principal.tenant,
      agents: [record],
      pushEndpoints: push.changed,
      custodialKeys: custodialKey === undefined ? [] : [custodialKey],
      keys: key === undefined ? [] : [key.record],
      events: [
        agentEvent(type, record.id, by, data),
        ...(key === undefined ? [] : [keyEvent("key.created", key.record, by)]),
      ],
    };
  }

  async #found(principal: Principal, name: string): Promise<AgentWithPresence> {
    await this.#guard.authorize(principal, "agents.read");
    const { tenant } = principal;
    const id = await this.#directory.resolve(tenant, name, "agent_id");
    const known = await this.#store.agents.get(tenant, id);
    if (known !== undefined) return known;
    throw new RelayError("not_found", `there is no agent ${name}`);
  }

  async #nameTaken(tenant: string, id: AgentId, aliases: readonly string[]): Promise<RelayError> {
    for (const name of [id, ...aliases]) {
      const others = (await agentsNamed(this.#store, tenant, name)).filter((other) => other !== id);
      if (others.length > 0) {
        return new RelayError(
          "conflict",
          `aliases: ${quote(name)} already belongs to ${others.join(", ")}; choose another name`,
          { details: { name, taken_by: others } },
        );
      }
    }
    return new RelayError("conflict", "aliases: one of them already belongs to another agent");
  }

  async #view(principal: Principal, found: AgentWithPresence): Promise<AgentView> {
    const { tenant, id, callbackUrl } = found.agent;
    return this.#viewWith(
      principal,
      found,
      callbackUrl === null ? undefined : await this.#store.endpoints.get(tenant, id),
    );
  }

  #viewWith(viewer: Principal, found: AgentWithPresence, endpoint: PushEndpoint | undefined): AgentView {
    const at = { nowMs: this.#clock.nowMs(), settings: this.#settings };
    return viewAgent(found, endpoint, { ...at, viewer });
  }
}

function keyTaken(): RelayError {
  return new RelayError(
    "conflict",
    "pubkey_b58: another agent is registered with this key; every agent has its own",
  );
}
