import type { DatabaseSync } from "node:sqlite";
import type { AgentCard, AgentId } from "@a2a-relay/protocol";
import type { AgentRecord, AgentWithPresence, CustodialKey } from "../../core/ports/agents.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import { Known } from "./known.ts";
import { AGENT_COLUMNS, agentFromRow } from "./rows.ts";

/** Names whose owners are remembered: more than most relays have agents. */
const KNOWN_NAMES_MAX = 10_000;
/** Cards that are remembered: each may have as many bytes as a registration. */
const KNOWN_CARDS_MAX = 1_000;
/** Enough for an error message to name candidates; more would only cost a reader of a popular name. */
const NAMED_AGENTS_MAX = 100;

const SELECT = `
  select ${AGENT_COLUMNS} from agent a
  left join presence p on p.tenant = a.tenant and p.agent_id = a.id
  where a.tenant = ? and a.id = ?`;
const PAGE = `
  select ${AGENT_COLUMNS} from agent a indexed by agent_present
  left join presence p on p.tenant = a.tenant and p.agent_id = a.id
  where a.tenant = ? and a.removed_at_ms is null and a.id > ? order by a.id limit ?`;
const REMOVED = `
  select id from agent where tenant = ? and removed_at_ms is not null and id > ? order by id limit ?`;
const PRESENT =
  "select 1 from agent indexed by agent_present where tenant = ? and id = ? and removed_at_ms is null";
const COUNT =
  "select count(*) from agent indexed by agent_present where tenant = ? and removed_at_ms is null";
// All that begins with a scheme and two slashes: no other id has a slash.
const COUNT_EXTERNAL = `
  select count(*) from agent indexed by agent_present
  where tenant = ? and removed_at_ms is null
    and (id >= 'http://' and id < 'http:0' or id >= 'https://' and id < 'https:0')`;
// Anybody may show any name, so one that is shown means nobody where it is the id or alias of somebody, also of
// somebody who has left.
const NAMED = `
  select agent_id from agent_name where tenant = ?1 and name = ?2 and (kind in ('id', 'alias') or not exists (
    select 1 from agent_name where tenant = ?1 and name = ?2 and kind in ('id', 'alias')
    union all select 1 from agent where tenant = ?1 and id = ?2))
  order by case kind when 'id' then 0 when 'alias' then 1 else 2 end, agent_id
  limit ${NAMED_AGENTS_MAX}`;
const WITH_KEY = `
  select id from agent indexed by agent_key
  where tenant = ? and pubkey_b58 is not null and pubkey_b58 = ? and removed_at_ms is null`;
const OWNER = `
  select pubkey_b58, others_before_ms from agent where tenant = ? and id = ? and removed_at_ms is null`;
const CUSTODIAL_KEY = "select private_key from custodial_key where tenant = ? and pubkey_b58 = ?";

const INSERT = `
  insert into agent (display_name, aliases_json, card_json, skills_json, representative_queries_json,
    callback_url, ttl_ms, pubkey_b58, custodial, registered_at_ms, others_before_ms, removed_at_ms,
    extended_card_json, direct, version, tenant, id)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`;
const UPDATE = `
  update agent set display_name = ?, aliases_json = ?, card_json = ?, skills_json = ?,
    representative_queries_json = ?, callback_url = ?, ttl_ms = ?, pubkey_b58 = ?, custodial = ?,
    registered_at_ms = ?, others_before_ms = ?, removed_at_ms = ?, extended_card_json = ?, direct = ?,
    version = version + 1
  where tenant = ? and id = ? and version = ?`;

// The id of a removed agent stays reserved, so it is no alias for others.
const NAME_TAKEN = `
  select 1 from agent_name where tenant = ?1 and name = ?2 and agent_id <> ?3 and kind in ('id', 'alias')
  union all
  select 1 from agent where tenant = ?1 and id = ?2 and id <> ?3
  limit 1`;
const FORGET_NAMES = `
  delete from agent_name indexed by agent_name_of_agent where tenant = ? and agent_id = ?`;
// The strongest kind is written first and stays.
const INSERT_NAME = `
  insert into agent_name (tenant, name, agent_id, kind) values (?, ?, ?, ?) on conflict do nothing`;
const PUT_CUSTODIAL_KEY = `
  insert into custodial_key (tenant, pubkey_b58, private_key) values (?, ?, ?)
  on conflict do update set private_key = excluded.private_key`;

const SAVE_PRESENCE = `
  insert into presence (tenant, agent_id, last_seen_at_ms)
  select tenant, id, ?3 from agent where tenant = ?1 and id = ?2
  on conflict do update set last_seen_at_ms = max(last_seen_at_ms, excluded.last_seen_at_ms)`;

interface Sighting {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly seenAtMs: number;
}

/** Whose the id is: by which key, and since when. */
interface Owner {
  readonly publicKey: string | undefined;
  readonly othersBeforeMs: number;
}

/** Agents, the names they answer to, and when they were last seen. */
export class Agents {
  readonly #select: Statement;
  readonly #page: Statement;
  readonly #present: Statement;
  readonly #removed: Statement;
  readonly #count: Statement;
  readonly #countExternal: Statement;
  readonly #named: Statement;
  readonly #withKey: Statement;
  readonly #owner: Statement;
  readonly #custodialKey: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #nameTaken: Statement;
  readonly #forgetNames: Statement;
  readonly #insertName: Statement;
  readonly #putCustodialKey: Statement;
  readonly #savePresence: Statement;
  /** Sightings not yet on disk: every request is one, so they are gathered. */
  readonly #sightings = new Map<string, Sighting>();
  /** Who owns a name: every request asks, and hardly any changes it. Emptied whenever an agent is written. */
  readonly #ownersByName = new Known<readonly AgentId[]>(KNOWN_NAMES_MAX);
  /** Cards of those who were asked lately, likewise. */
  readonly #cards = new Known<AgentCard>(KNOWN_CARDS_MAX);
  /** Public keys by agent, likewise. */
  readonly #owners = new Known<Owner>(KNOWN_NAMES_MAX);
  #changes = 0;

  constructor(database: DatabaseSync) {
    this.#select = prepare(database, SELECT);
    this.#page = prepare(database, PAGE);
    this.#present = prepare(database, PRESENT);
    this.#removed = prepare(database, REMOVED);
    this.#count = prepare(database, COUNT);
    this.#countExternal = prepare(database, COUNT_EXTERNAL);
    this.#named = prepare(database, NAMED);
    this.#withKey = prepare(database, WITH_KEY);
    this.#owner = prepare(database, OWNER);
    this.#custodialKey = prepare(database, CUSTODIAL_KEY);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#nameTaken = prepare(database, NAME_TAKEN);
    this.#forgetNames = prepare(database, FORGET_NAMES);
    this.#insertName = prepare(database, INSERT_NAME);
    this.#putCustodialKey = prepare(database, PUT_CUSTODIAL_KEY);
    this.#savePresence = prepare(database, SAVE_PRESENCE);
  }

  agent(tenant: string, id: AgentId): AgentWithPresence | undefined {
    const row = this.#select.get(tenant, id);
    return row === undefined ? undefined : this.#withSighting(row);
  }

  agentCard(tenant: string, id: AgentId): AgentCard | undefined {
    const known = this.#cards.get(tenant, id);
    if (known !== undefined) return known;
    const card = this.agent(tenant, id)?.agent.card;
    if (card !== undefined) this.#cards.set(tenant, id, card);
    return card;
  }

  agentsNamed(tenant: string, name: string): readonly AgentId[] {
    const known = this.#ownersByName.get(tenant, name);
    if (known !== undefined) return known;
    const owners = this.#named.all(tenant, name).map((row) => row[0] as AgentId);
    if (owners.length > 0) this.#ownersByName.set(tenant, name, owners);
    return owners;
  }

  agents(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): readonly AgentWithPresence[] {
    return this.#page.all(tenant, page.afterId, page.limit).map((row) => this.#withSighting(row));
  }

  removedAgents(
    tenant: string,
    page: { readonly afterId: string; readonly limit: number },
  ): readonly AgentId[] {
    return this.#removed.all(tenant, page.afterId, page.limit).map((row) => row[0] as AgentId);
  }

  countAgents(tenant: string): number {
    return Number(this.#count.get(tenant)?.[0]);
  }

  countExternal(tenant: string): number {
    return Number(this.#countExternal.get(tenant)?.[0]);
  }

  agentWithKey(tenant: string, publicKey: string): AgentId | undefined {
    return this.#withKey.get(tenant, publicKey)?.[0] as AgentId | undefined;
  }

  /** Grows with each write, but for presence. */
  get changes(): number {
    return this.#changes;
  }

  publicKeyOf(tenant: string, id: AgentId): string | undefined {
    return this.#ownerOf(tenant, id)?.publicKey;
  }

  othersBeforeMs(tenant: string, id: AgentId): number {
    return this.#ownerOf(tenant, id)?.othersBeforeMs ?? 0;
  }

  #ownerOf(tenant: string, id: AgentId): Owner | undefined {
    const known = this.#owners.get(tenant, id);
    if (known !== undefined) return known;
    const row = this.#owner.get(tenant, id);
    if (row === undefined) return undefined;
    const [publicKey, othersBeforeMs] = row as readonly [string | null, number];
    const owner = { publicKey: publicKey ?? undefined, othersBeforeMs };
    this.#owners.set(tenant, id, owner);
    return owner;
  }

  custodialKey(tenant: string, publicKey: string): CustodialKey | undefined {
    const privateKey = this.#custodialKey.get(tenant, publicKey)?.[0];
    return typeof privateKey === "string" ? { tenant, publicKey, privateKey } : undefined;
  }

  /**
   * Inside a commit: the agent may have left since it was resolved. What is looked up here is not remembered,
   * because the commit may still fail.
   */
  assertPresent(tenant: string, id: AgentId): void {
    if (this.#ownersByName.get(tenant, id)?.includes(id) === true) return;
    if (this.#present.get(tenant, id) === undefined) throw new ClashError("agent");
  }

  /** Inside a commit. */
  put(agent: AgentRecord): void {
    this.#ownersByName.clear();
    this.#owners.clear();
    this.#cards.clear();
    this.#changes += 1;
    this.#assertKeyIsFree(agent);
    const values = [
      agent.displayName,
      JSON.stringify(agent.aliases),
      JSON.stringify(agent.card),
      JSON.stringify(agent.skills),
      JSON.stringify(agent.representativeQueries),
      agent.callbackUrl,
      agent.ttlMs,
      agent.publicKey,
      agent.isCustodial ? 1 : 0,
      agent.registeredAtMs,
      agent.othersBeforeMs,
      agent.removedAtMs,
      agent.extendedCard === null ? null : JSON.stringify(agent.extendedCard),
      agent.isDirect ? 1 : 0,
      agent.tenant,
      agent.id,
    ];
    const { changes } =
      agent.version === 0 ? this.#insert.run(...values) : this.#update.run(...values, agent.version);
    if (changes === 0) throw new ClashError("agent");
    this.#forgetNames.run(agent.tenant, agent.id);
    if (agent.removedAtMs === null) this.#putNames(agent);
  }

  /** Inside a commit. */
  putCustodialKey({ tenant, publicKey, privateKey }: CustodialKey): void {
    this.#putCustodialKey.run(tenant, publicKey, privateKey);
  }

  /** Presence waits in memory until `savePresence`; reads see it at once. */
  touch(tenant: string, agentId: AgentId, seenAtMs: number): void {
    const key = pairKey(tenant, agentId);
    const known = this.#sightings.get(key);
    if (known !== undefined && known.seenAtMs >= seenAtMs) return;
    this.#sightings.set(key, { tenant, agentId, seenAtMs });
  }

  /** Inside a commit. Answers what was written, to be forgotten once it is on disk. */
  savePresence(): readonly Sighting[] {
    const sightings = [...this.#sightings.values()];
    for (const { tenant, agentId, seenAtMs } of sightings) this.#savePresence.run(tenant, agentId, seenAtMs);
    return sightings;
  }

  forgetSightings(saved: readonly Sighting[]): void {
    for (const sighting of saved) {
      const key = pairKey(sighting.tenant, sighting.agentId);
      if (this.#sightings.get(key) === sighting) this.#sightings.delete(key);
    }
  }

  #assertKeyIsFree({ tenant, id, publicKey, removedAtMs }: AgentRecord): void {
    if (publicKey === null || removedAtMs !== null) return;
    const owner = this.agentWithKey(tenant, publicKey);
    if (owner !== undefined && owner !== id) throw new ClashError("agent_key");
  }

  #putNames(agent: AgentRecord): void {
    for (const name of [agent.id, ...agent.aliases]) {
      if (this.#nameTaken.get(agent.tenant, name, agent.id) !== undefined) throw new ClashError("agent_name");
    }
    this.#insertName.run(agent.tenant, agent.id, agent.id, "id");
    for (const alias of agent.aliases) this.#insertName.run(agent.tenant, alias, agent.id, "alias");
    this.#insertName.run(agent.tenant, agent.displayName, agent.id, "display_name");
  }

  #withSighting(row: Row): AgentWithPresence {
    const { agent, lastSeenAtMs } = agentFromRow(row);
    const seenAtMs = this.#sightings.get(pairKey(agent.tenant, agent.id))?.seenAtMs ?? null;
    if (seenAtMs === null || lastSeenAtMs === null) return { agent, lastSeenAtMs: seenAtMs ?? lastSeenAtMs };
    return { agent, lastSeenAtMs: Math.max(seenAtMs, lastSeenAtMs) };
  }
}

// No tenant and no name that can be asked for holds a line break.
function pairKey(tenant: string, name: string): string {
  return `${tenant}\n${name}`;
}
