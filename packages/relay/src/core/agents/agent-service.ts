import {
  type AgentCard,
  type AgentId,
  type AgentsQuery,
  AgentsQuerySchema,
  type AgentsResponse,
  type AgentView,
  formatInstant,
  isTerminal,
  LIMITS,
  POSTMASTER,
  parseAgentId,
  type Presence,
  quote,
  type RegisterRequest,
  RegisterRequestSchema,
  type RegisterResponse,
  RelayError,
  TASK_STATES,
  type TaskState,
} from "@a2a-relay/protocol";
import { authorize } from "../access/authorize.ts";
import { actorName, type OperatorPrincipal, type Principal } from "../access/principal.ts";
import type { Clock } from "../environment/clock.ts";
import { combine, decideAndCommit } from "../environment/commit-retry.ts";
import type { Identifiers } from "../environment/identifiers.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import { parserOf } from "../environment/schema-check.ts";
import type { ServiceParts } from "../environment/service-parts.ts";
import type { EventDraft } from "../journal/event.ts";
import { withdraw } from "../mailboxes/delivery-state.ts";
import { failedTaskChanges, undeliveredChanges } from "../mailboxes/undelivered.ts";
import type { Stationery } from "../messages/notices.ts";
import { serveCard } from "./agent-card.ts";
import type { AgentRecord, AgentWithPresence } from "./agent-record.ts";
import type { Directory } from "./directory.ts";

export interface AgentSettings {
  readonly messageTtlMs: number;
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
}

const RESERVED: ReadonlySet<string> = new Set([POSTMASTER, "operator"]);
const WITHDRAWN_AT_ONCE = 100;
const REMOVED_AT_ONCE = 100;
const UNFINISHED = TASK_STATES.filter((state) => !isTerminal(state));

const parseRegister = parserOf(RegisterRequestSchema, "registration");
const parseQuery = parserOf(AgentsQuerySchema, "query");

/** The relay's address book. */
export class AgentService {
  readonly #store: RelayStore;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;
  readonly #publicUrl: () => string;

  constructor(parts: ServiceParts, settings: AgentSettings) {
    this.#store = parts.store;
    this.#directory = parts.directory;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
    this.#publicUrl = settings.publicUrl;
  }

  /** Makes the agent known, or changes what it says of itself: fields that are left out stay as they were. */
  async register(principal: Principal, input: unknown): Promise<RegisterResponse> {
    const request = parseRegister(input);
    const id = readAgentId(request.agent_id ?? this.#ids.agent());
    authorize(principal, "agents.write", { agentId: id });
    const { tenant } = principal;
    await this.#finishRemoval(principal, id);
    const answer = await decideAndCommit(this.#store, async (clash) => {
      if (clash === "agent_name") throw await this.#nameTaken(tenant, id, request.aliases ?? []);
      const known = (await this.#store.agent(tenant, id))?.agent;
      const record = fillRecord(tenant, id, request, known, this.#clock.nowMs());
      assertRecordBytes(record);
      const created = known === undefined || known.removedAtMs !== null;
      const type = created ? "agent.registered" : "agent.updated";
      const event = this.#event(type, principal, id, { aliases: record.aliases });
      return { changes: { tenant, agents: [record], events: [event] }, answer: { created, record } };
    });
    const lastSeenAtMs = this.#clock.nowMs();
    await this.#store.touchAgent(tenant, id, lastSeenAtMs);
    const agent = this.#view({ agent: answer.record, lastSeenAtMs });
    return { agent_id: id, created: answer.created, agent };
  }

  async get(principal: Principal, name: string): Promise<AgentView> {
    return this.#view(await this.#known(principal, name));
  }

  async card(principal: Principal, name: string): Promise<AgentCard> {
    return serveCard((await this.#known(principal, name)).agent, this.#publicUrl());
  }

  async list(principal: Principal, input: unknown): Promise<AgentsResponse> {
    authorize(principal, "agents.read");
    const query = parseQuery(input) as AgentsQuery;
    const { tenant } = principal;
    const limit = query.limit ?? LIMITS.listLimitDefault;
    const found = await this.#store.agents(tenant, { afterId: query.page_token ?? "", limit });
    const items = found.map((each) => this.#view(each));
    const last = items.length === limit ? items.at(-1) : undefined;
    const total = await this.#store.countAgents(tenant);
    return { items, agents: items, total, ...(last === undefined ? {} : { pageToken: last.agent_id }) };
  }

  async heartbeat(principal: Principal, name: string): Promise<AgentView> {
    const { agent } = await this.#known(principal, name);
    authorize(principal, "agents.write", { agentId: agent.id });
    const lastSeenAtMs = this.#clock.nowMs();
    await this.#store.touchAgent(principal.tenant, agent.id, lastSeenAtMs);
    return this.#view({ agent, lastSeenAtMs });
  }

  /** Closes the mailbox: open mail is withdrawn and its senders are told. The id stays reserved. */
  async remove(principal: Principal, name: string): Promise<{ readonly removed: AgentId }> {
    const { agent } = await this.#known(principal, name);
    authorize(principal, "agents.write", { agentId: agent.id });
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const known = (await this.#store.agent(tenant, agent.id))?.agent;
      if (known === undefined || known.removedAtMs !== null) return { changes: undefined, answer: undefined };
      const removed = { ...known, removedAtMs: this.#clock.nowMs() };
      const event = this.#event("agent.removed", principal, agent.id, {});
      return { changes: { tenant, agents: [removed], events: [event] }, answer: undefined };
    });
    await this.#finishRemoval(principal, agent.id);
    return { removed: agent.id };
  }

  /** Takes up removals that a crash interrupted; a relay does so when it starts. */
  async finishRemovals(principal: OperatorPrincipal): Promise<void> {
    let afterId = "";
    for (;;) {
      const removed = await this.#store.removedAgents(principal.tenant, { afterId, limit: REMOVED_AT_ONCE });
      for (const id of removed) await this.#finishRemoval(principal, id);
      const last = removed.at(-1);
      if (last === undefined) return;
      afterId = last;
      await this.#clock.nextTurn();
    }
  }

  /** In bounded steps, and taken up again after a crash: a new registration never sees old mail. */
  async #finishRemoval(principal: Principal, id: AgentId): Promise<void> {
    const { tenant } = principal;
    const known = (await this.#store.agent(tenant, id))?.agent;
    if (known === undefined || known.removedAtMs === null) return;
    for (;;) {
      const open = await this.#store.openDeliveriesOfAgent(tenant, id, WITHDRAWN_AT_ONCE);
      if (open.length === 0) break;
      await Promise.all(open.map((delivery) => this.#withdraw(principal, tenant, delivery.messageId)));
    }
    for (const state of UNFINISHED) await this.#failTasks(principal, id, state);
  }

  /** Work that the agent had taken on, its mail already acknowledged: nobody will finish it. */
  async #failTasks(principal: Principal, id: AgentId, state: TaskState): Promise<void> {
    const { tenant } = principal;
    const any = { threadId: undefined, parentId: undefined };
    let afterId = "";
    for (;;) {
      const page = { tenant, agentId: id, state, ...any, afterId, limit: WITHDRAWN_AT_ONCE };
      const tasks = await this.#store.tasks(page);
      const own = tasks.filter(({ assignee }) => assignee === id);
      await Promise.all(own.map((task) => this.#failTask(principal, task.id)));
      const last = tasks.at(-1);
      if (last === undefined) return;
      afterId = last.id;
    }
  }

  async #failTask(principal: Principal, taskId: string): Promise<void> {
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const task = await this.#store.task(tenant, taskId);
      if (task === undefined || isTerminal(task.state)) return { changes: undefined, answer: undefined };
      const reason = `${task.assignee} is no longer registered`;
      const by = { actor: actorName(principal), resultFrom: POSTMASTER };
      const changes = await failedTaskChanges(this.#store, this.#stationery(), task, reason, by);
      return { changes: combine(tenant, changes), answer: undefined };
    });
  }

  async #withdraw(principal: Principal, tenant: string, messageId: string): Promise<void> {
    await decideAndCommit(this.#store, async () => {
      const delivery = await this.#store.delivery(tenant, messageId);
      if (delivery === undefined || delivery.settledAtMs !== null) {
        return { changes: undefined, answer: undefined };
      }
      const stationery = this.#stationery();
      const reason = `${delivery.agentId} is no longer registered`;
      const by = { actor: actorName(principal), resultFrom: POSTMASTER };
      const withdrawn = withdraw(delivery, reason, stationery.nowMs);
      const changes = await undeliveredChanges(this.#store, stationery, withdrawn, by);
      return { changes: combine(tenant, changes), answer: undefined };
    });
  }

  #stationery(): Stationery {
    return { ids: this.#ids, nowMs: this.#clock.nowMs(), messageTtlMs: this.#messageTtlMs };
  }

  async #known(principal: Principal, name: string): Promise<AgentWithPresence> {
    authorize(principal, "agents.read");
    const { tenant } = principal;
    const id = await this.#directory.resolve(tenant, name, "agent_id");
    const known = await this.#store.agent(tenant, id);
    if (known !== undefined) return known;
    throw new RelayError("not_found", `there is no agent ${name}`);
  }

  async #nameTaken(tenant: string, id: AgentId, aliases: readonly string[]): Promise<RelayError> {
    for (const name of [id, ...aliases]) {
      const others = (await this.#store.agentsNamed(tenant, name)).filter((other) => other !== id);
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

  #view({ agent, lastSeenAtMs }: AgentWithPresence): AgentView {
    return {
      agent_id: agent.id,
      display_name: agent.displayName,
      slug: slugOf(agent.id),
      aliases: agent.aliases,
      skills: agent.skills,
      representative_queries: agent.representativeQueries,
      ...(agent.callbackUrl === null ? {} : { callback_url: agent.callbackUrl }),
      ...(agent.ttlMs === null ? {} : { ttl_ms: agent.ttlMs }),
      presence: presenceOf(agent, lastSeenAtMs, this.#clock.nowMs()),
      registered_at: formatInstant(agent.registeredAtMs),
      ...(lastSeenAtMs === null ? {} : { last_seen_at: formatInstant(lastSeenAtMs) }),
      agent_card: serveCard(agent, this.#publicUrl()),
    };
  }

  #event(
    type: EventDraft["type"],
    principal: Principal,
    agentId: AgentId,
    data: Readonly<Record<string, unknown>>,
  ): EventDraft {
    const actor = actorName(principal);
    const atMs = this.#clock.nowMs();
    return { type, atMs, actor, agentId, messageId: null, taskId: null, threadId: null, data };
  }
}

function readAgentId(input: string, field = "agent_id"): AgentId {
  const id = parseAgentId(input, field);
  if (!RESERVED.has(id) && !/^(skill:|https?:)/i.test(id)) return id;
  throw new RelayError("invalid_argument", `${field}: ${quote(id)} is reserved; choose another one`);
}

function fillRecord(
  tenant: string,
  id: AgentId,
  request: RegisterRequest,
  known: AgentRecord | undefined,
  nowMs: number,
): AgentRecord {
  const before = known?.removedAtMs === null ? known : undefined;
  const card = request.card ?? request.agent_card ?? before?.card ?? {};
  const cardName = typeof card["name"] === "string" && card["name"] !== "" ? card["name"] : undefined;
  const callbackUrl =
    request.callback_url === undefined ? (before?.callbackUrl ?? null) : readCallback(request.callback_url);
  return {
    tenant,
    id,
    displayName: request.display_name ?? before?.displayName ?? cardName ?? id,
    aliases: (request.aliases ?? before?.aliases ?? []).map((alias) => readAgentId(alias, "aliases")),
    card,
    skills: request.skills ?? before?.skills ?? [],
    representativeQueries: request.representative_queries ?? before?.representativeQueries ?? [],
    callbackUrl,
    ttlMs: request.ttl_ms === undefined ? (before?.ttlMs ?? null) : request.ttl_ms,
    registeredAtMs: before?.registeredAtMs ?? nowMs,
    removedAtMs: null,
    version: known?.version ?? 0,
  };
}

/** Measured as a whole: what was said earlier and stays counts too. */
function assertRecordBytes(record: AgentRecord): void {
  const limit = LIMITS.registrationBytesMax;
  const bytes = Buffer.byteLength(JSON.stringify(record));
  if (bytes <= limit) return;
  throw new RelayError(
    "too_large",
    `registration: an agent says at most ${limit} bytes of itself as JSON, this would be ${bytes}`,
    { details: { limit } },
  );
}

function readCallback(url: string | null): string | null {
  if (url === null) return null;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.username === "") return url;
  throw new RelayError(
    "invalid_argument",
    `callback_url: ${quote(url)} is not an http or https URL without credentials`,
  );
}

/** TTL says how long an agent counts as there after it was last heard; it never closes a mailbox. */
function presenceOf(agent: AgentRecord, lastSeenAtMs: number | null, nowMs: number): Presence {
  if (agent.ttlMs === null || lastSeenAtMs === null) return "unknown";
  return nowMs <= lastSeenAtMs + agent.ttlMs ? "online" : "offline";
}

/** The id as a file name or URL segment would spell it. */
function slugOf(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replaceAll(/^_+|_+$/g, "") || "agent";
}
