import type { AgentId } from "@a2a-relay/protocol";
import type {
  NamedAgent,
  AgentOwner,
  AgentPage,
  AgentRecord,
  AgentStore,
  AgentWithPresence,
  CustodialKey,
} from "../../core/ports/agents.ts";
import { ClashError, type CommitQueue, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import { parseJson, parseNullableJson } from "./rows.ts";
import type { StoreState } from "./store-state.ts";

/** Agents that one answer lists for a name: enough for an error message to offer candidates. */
const NAMED_AGENTS_MAX = 100;
/** Presence reaches the disk at most this much later than it was reported, and always on a normal stop. */
const PRESENCE_DELAY_MS = 1_000;
/** Names in the cache; a full cache starts again empty. */
const NAMES_MAX = 10_000;

const COLUMNS = `a.tenant, a.id, a.display_name, a.aliases_json, a.card_json, a.skills_json,
  a.representative_queries_json, a.callback_url, a.ttl_ms, a.pubkey_b58, a.custodial, a.registered_at_ms,
  a.others_before_ms, a.removed_at_ms, a.version, a.extended_card_json, a.direct, p.last_seen_at_ms`;

const SQL = {
  select: `
    select ${COLUMNS} from agent a
    left join presence p on p.tenant = a.tenant and p.agent_id = a.id
    where a.tenant = ? and a.id = ?`,
  page: `
    select ${COLUMNS} from agent a indexed by agent_present
    left join presence p on p.tenant = a.tenant and p.agent_id = a.id
    where a.tenant = ? and a.removed_at_ms is null and a.id > ? order by a.id limit ?`,
  removed: `
    select ${COLUMNS} from agent a
    left join presence p on p.tenant = a.tenant and p.agent_id = a.id
    where a.tenant = ? and a.removed_at_ms is not null and a.id > ? order by a.id limit ?`,
  // Ids of remote agents begin with a scheme and two slashes: no other id has a slash.
  count: `
    select count(*), count(*) filter (
      where id >= 'http://' and id < 'http:0' or id >= 'https://' and id < 'https:0')
    from agent indexed by agent_present where tenant = ? and removed_at_ms is null`,
  named: `
    select agent_id, kind, removed from (
      select agent_id, kind, 0 as removed from agent_name where tenant = ?1 and name = ?2
      union all select id, 'id', 1 from agent where tenant = ?1 and id = ?2 and removed_at_ms is not null)
    order by case kind when 'id' then 0 when 'alias' then 1 else 2 end, agent_id
    limit ${NAMED_AGENTS_MAX}`,
  withKey: `
    select id from agent indexed by agent_key
    where tenant = ? and pubkey_b58 is not null and pubkey_b58 = ? and removed_at_ms is null`,
  owner: `
    select pubkey_b58, others_before_ms from agent where tenant = ? and id = ? and removed_at_ms is null`,
  custodialKey: "select private_key from custodial_key where tenant = ? and pubkey_b58 = ?",
  insert: `
    insert into agent (display_name, aliases_json, card_json, skills_json, representative_queries_json,
      callback_url, ttl_ms, pubkey_b58, custodial, registered_at_ms, others_before_ms, removed_at_ms,
      extended_card_json, direct, version, tenant, id)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`,
  update: `
    update agent set display_name = ?, aliases_json = ?, card_json = ?, skills_json = ?,
      representative_queries_json = ?, callback_url = ?, ttl_ms = ?, pubkey_b58 = ?, custodial = ?,
      registered_at_ms = ?, others_before_ms = ?, removed_at_ms = ?, extended_card_json = ?, direct = ?,
      version = version + 1
    where tenant = ? and id = ? and version = ?`,
  // The id of a removed agent stays reserved: no other agent may use it as an alias.
  nameTaken: `
    select 1 from agent_name where tenant = ?1 and name = ?2 and agent_id <> ?3 and kind in ('id', 'alias')
    union all
    select 1 from agent where tenant = ?1 and id = ?2 and id <> ?3
    limit 1`,
  removeNames: `
    delete from agent_name indexed by agent_name_of_agent where tenant = ? and agent_id = ?`,
  // `put` writes the strongest kind of a name first, and it stays.
  insertName: `
    insert into agent_name (tenant, name, agent_id, kind) values (?, ?, ?, ?) on conflict do nothing`,
  putCustodialKey: `
    insert into custodial_key (tenant, pubkey_b58, private_key) values (?, ?, ?)
    on conflict do update set private_key = excluded.private_key`,
  savePresence: `
    insert into presence (tenant, agent_id, last_seen_at_ms)
    select tenant, id, ?3 from agent where tenant = ?1 and id = ?2
    on conflict do update set last_seen_at_ms = max(last_seen_at_ms, excluded.last_seen_at_ms)`,
};

/** Agents, their names, and when each was last seen. */
export class Agents implements AgentStore {
  readonly #state: StoreState;
  readonly #commits: CommitQueue;
  readonly #sql: Statements<typeof SQL>;
  #presenceTimer: NodeJS.Timeout | undefined;

  constructor({ database, state, commits }: Engine) {
    this.#state = state;
    this.#commits = commits;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined> {
    const row = this.#sql.select.get(tenant, id);
    return row === undefined ? undefined : this.#withSighting(row);
  }

  async owners(tenant: string, ids: readonly AgentId[]): Promise<readonly (AgentOwner | undefined)[]> {
    return ids.map((id) => this.findOwner(tenant, id));
  }

  async named(tenant: string, name: string): Promise<readonly NamedAgent[]> {
    return this.#named(tenant, name);
  }

  async list({ tenant, isRemoved, afterId, limit }: AgentPage): Promise<readonly AgentWithPresence[]> {
    const page = isRemoved ? this.#sql.removed : this.#sql.page;
    return page.all(tenant, afterId, limit).map((row) => this.#withSighting(row));
  }

  async count(tenant: string): Promise<{ readonly all: number; readonly remote: number }> {
    const [all, remote] = this.#sql.count.get(tenant) ?? [];
    return { all: Number(all), remote: Number(remote) };
  }

  async withKey(tenant: string, publicKey: string): Promise<AgentId | undefined> {
    return this.#findByKey(tenant, publicKey);
  }

  async custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined> {
    const privateKey = this.#sql.custodialKey.get(tenant, publicKey)?.[0];
    return typeof privateKey === "string" ? { tenant, publicKey, privateKey } : undefined;
  }

  /** Reads see a sighting at once; the disk gets it after `PRESENCE_DELAY_MS`. */
  async touch(tenant: string, agentId: AgentId, seenAtMs: number): Promise<void> {
    const key = sightingKey(tenant, agentId);
    const { sightings } = this.#state;
    if ((sightings.get(key)?.seenAtMs ?? -1) < seenAtMs) sightings.set(key, { tenant, agentId, seenAtMs });
    this.#presenceTimer ??= setTimeout(() => void this.savePresence(), PRESENCE_DELAY_MS).unref();
  }

  /** Sightings that cannot be written stay in memory for the next time. */
  async savePresence(): Promise<void> {
    clearTimeout(this.#presenceTimer);
    this.#presenceTimer = undefined;
    const sightings = [...this.#state.sightings];
    const save = (): void => {
      for (const [, { tenant, agentId, seenAtMs }] of sightings) {
        this.#sql.savePresence.run(tenant, agentId, seenAtMs);
      }
    };
    try {
      await this.#commits.submit(save);
    } catch {
      return;
    }
    for (const [key, sighting] of sightings) {
      if (this.#state.sightings.get(key) === sighting) this.#state.sightings.delete(key);
    }
  }

  findOwner(tenant: string, id: AgentId): AgentOwner | undefined {
    const row = this.#sql.owner.get(tenant, id);
    if (row === undefined) return undefined;
    return { publicKey: row[0] as string | null, othersBeforeMs: row[1] as number };
  }

  /** An agent may be removed between the read of a sender and its commit. */
  assertPresent(tenant: string, id: AgentId): void {
    const isPresent = this.#named(tenant, id).some(({ kind, isRemoved }) => kind === "id" && !isRemoved);
    if (!isPresent) throw new ClashError("agent");
  }

  put(agent: AgentRecord): void {
    this.#state.namesByText.clear();
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
    const { insert, update } = this.#sql;
    const written = agent.version === 0 ? insert.run(...values) : update.run(...values, agent.version);
    if (written === 0) throw new ClashError("agent");
    this.#sql.removeNames.run(agent.tenant, agent.id);
    if (agent.removedAtMs === null) this.#putNames(agent);
  }

  putCustodialKey({ tenant, publicKey, privateKey }: CustodialKey): void {
    this.#sql.putCustodialKey.run(tenant, publicKey, privateKey);
  }

  #findByKey(tenant: string, publicKey: string): AgentId | undefined {
    return this.#sql.withKey.get(tenant, publicKey)?.[0] as AgentId | undefined;
  }

  #named(tenant: string, name: string): readonly NamedAgent[] {
    const key = `${tenant}\n${name}`;
    const { namesByText } = this.#state;
    const known = namesByText.get(key);
    if (known !== undefined) return known;
    const names = this.#sql.named.all(tenant, name).map((row) => nameFromRow(row));
    if (namesByText.size >= NAMES_MAX) namesByText.clear();
    namesByText.set(key, names);
    return names;
  }

  #assertKeyIsFree({ tenant, id, publicKey, removedAtMs }: AgentRecord): void {
    if (publicKey === null || removedAtMs !== null) return;
    const owner = this.#findByKey(tenant, publicKey);
    if (owner !== undefined && owner !== id) throw new ClashError("agent_key");
  }

  #putNames(agent: AgentRecord): void {
    for (const name of [agent.id, ...agent.aliases]) {
      const isTaken = this.#sql.nameTaken.get(agent.tenant, name, agent.id) !== undefined;
      if (isTaken) throw new ClashError("agent_name");
    }
    this.#sql.insertName.run(agent.tenant, agent.id, agent.id, "id");
    for (const alias of agent.aliases) this.#sql.insertName.run(agent.tenant, alias, agent.id, "alias");
    this.#sql.insertName.run(agent.tenant, agent.displayName, agent.id, "display_name");
  }

  #withSighting(row: Row): AgentWithPresence {
    const { agent, lastSeenAtMs } = agentFromRow(row);
    const seenAtMs = this.#state.sightings.get(sightingKey(agent.tenant, agent.id))?.seenAtMs ?? null;
    if (seenAtMs === null || lastSeenAtMs === null) return { agent, lastSeenAtMs: seenAtMs ?? lastSeenAtMs };
    return { agent, lastSeenAtMs: Math.max(seenAtMs, lastSeenAtMs) };
  }
}

// No tenant has a line break.
function sightingKey(tenant: string, agentId: string): string {
  return `${tenant}\n${agentId}`;
}

function nameFromRow(row: Row): NamedAgent {
  return { agentId: row[0] as AgentId, kind: row[1] as NamedAgent["kind"], isRemoved: row[2] === 1 };
}

function agentFromRow(row: Row): AgentWithPresence {
  return {
    agent: {
      tenant: row[0] as string,
      id: row[1] as AgentId,
      displayName: row[2] as string,
      aliases: parseJson(row[3]) as AgentRecord["aliases"],
      card: parseJson(row[4]) as AgentRecord["card"],
      skills: parseJson(row[5]) as AgentRecord["skills"],
      representativeQueries: parseJson(row[6]) as AgentRecord["representativeQueries"],
      callbackUrl: row[7] as string | null,
      ttlMs: row[8] as number | null,
      publicKey: row[9] as string | null,
      isCustodial: row[10] === 1,
      registeredAtMs: row[11] as number,
      othersBeforeMs: row[12] as number,
      removedAtMs: row[13] as number | null,
      version: row[14] as number,
      extendedCard: parseNullableJson(row[15]) as AgentRecord["extendedCard"],
      isDirect: row[16] === 1,
    },
    lastSeenAtMs: row[17] as number | null,
  };
}
