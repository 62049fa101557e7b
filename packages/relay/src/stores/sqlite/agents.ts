import type { AgentCard, AgentId } from "@a2a-relay/protocol";
import type { AgentRecord, AgentStore, AgentWithPresence, CustodialKey } from "../../core/ports/agents.ts";
import { ClashError, type CommitQueue, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import { parseJson, parseNullableJson } from "./rows.ts";

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
  card: "select card_json from agent where tenant = ? and id = ?",
  page: `
    select ${COLUMNS} from agent a indexed by agent_present
    left join presence p on p.tenant = a.tenant and p.agent_id = a.id
    where a.tenant = ? and a.removed_at_ms is null and a.id > ? order by a.id limit ?`,
  removed: `
    select id from agent where tenant = ? and removed_at_ms is not null and id > ? order by id limit ?`,
  count: "select count(*) from agent indexed by agent_present where tenant = ? and removed_at_ms is null",
  // Ids that begin with a scheme and two slashes: no other id has a slash.
  countRemote: `
    select count(*) from agent indexed by agent_present
    where tenant = ? and removed_at_ms is null
      and (id >= 'http://' and id < 'http:0' or id >= 'https://' and id < 'https:0')`,
  // Any agent may display any name, so a display name does not count where it is the id or alias of an agent, also of
  // a removed one.
  named: `
    select agent_id from agent_name where tenant = ?1 and name = ?2 and (kind in ('id', 'alias') or not exists (
      select 1 from agent_name where tenant = ?1 and name = ?2 and kind in ('id', 'alias')
      union all select 1 from agent where tenant = ?1 and id = ?2))
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

interface Sighting {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly seenAtMs: number;
}

interface IdPage {
  readonly afterId: string;
  readonly limit: number;
}

/** Agents, their names, and when each was last seen. */
export class Agents implements AgentStore {
  readonly #commits: CommitQueue;
  readonly #sql: Statements<typeof SQL>;
  /** Sightings that are not on disk yet. Every request is one, so they are written together. */
  readonly #sightings = new Map<string, Sighting>();
  /** Ids by tenant and name, as read; emptied when any agent changes. Reading them each time costs a send 20 %. */
  readonly #idsByName = new Map<string, readonly AgentId[]>();
  #presenceTimer: NodeJS.Timeout | undefined;

  constructor({ database, commits }: Engine) {
    this.#commits = commits;
    this.#sql = prepareAll(database, SQL);
  }

  async get(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined> {
    const row = this.#sql.select.get(tenant, id);
    return row === undefined ? undefined : this.#withSighting(row);
  }

  async card(tenant: string, id: AgentId): Promise<AgentCard | undefined> {
    const row = this.#sql.card.get(tenant, id);
    return row === undefined ? undefined : (parseJson(row[0]) as AgentCard);
  }

  async named(tenant: string, name: string): Promise<readonly AgentId[]> {
    return this.#named(tenant, name);
  }

  async list(tenant: string, { afterId, limit }: IdPage): Promise<readonly AgentWithPresence[]> {
    return this.#sql.page.all(tenant, afterId, limit).map((row) => this.#withSighting(row));
  }

  async listRemoved(tenant: string, { afterId, limit }: IdPage): Promise<readonly AgentId[]> {
    return this.#sql.removed.all(tenant, afterId, limit).map((row) => row[0] as AgentId);
  }

  async count(tenant: string): Promise<number> {
    return Number(this.#sql.count.get(tenant)?.[0]);
  }

  async countRemote(tenant: string): Promise<number> {
    return Number(this.#sql.countRemote.get(tenant)?.[0]);
  }

  async withKey(tenant: string, publicKey: string): Promise<AgentId | undefined> {
    return this.#findByKey(tenant, publicKey);
  }

  async publicKey(tenant: string, id: AgentId): Promise<string | undefined> {
    return this.findPublicKey(tenant, id);
  }

  async othersBeforeMs(tenant: string, id: AgentId): Promise<number> {
    return Number(this.#sql.owner.get(tenant, id)?.[1] ?? 0);
  }

  async custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined> {
    const privateKey = this.#sql.custodialKey.get(tenant, publicKey)?.[0];
    return typeof privateKey === "string" ? { tenant, publicKey, privateKey } : undefined;
  }

  /** Reads see a sighting at once; the disk gets it after `PRESENCE_DELAY_MS`. */
  async touch(tenant: string, agentId: AgentId, seenAtMs: number): Promise<void> {
    const key = sightingKey(tenant, agentId);
    if ((this.#sightings.get(key)?.seenAtMs ?? -1) < seenAtMs) {
      this.#sightings.set(key, { tenant, agentId, seenAtMs });
    }
    this.#presenceTimer ??= setTimeout(() => void this.savePresence(), PRESENCE_DELAY_MS).unref();
  }

  /** Sightings that cannot be written stay in memory for the next time. */
  async savePresence(): Promise<void> {
    clearTimeout(this.#presenceTimer);
    this.#presenceTimer = undefined;
    const sightings = [...this.#sightings];
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
      if (this.#sightings.get(key) === sighting) this.#sightings.delete(key);
    }
  }

  findPublicKey(tenant: string, id: AgentId): string | undefined {
    return (this.#sql.owner.get(tenant, id)?.[0] ?? undefined) as string | undefined;
  }

  /** An agent may be removed between the read of a sender and its commit. */
  assertPresent(tenant: string, id: AgentId): void {
    if (this.#named(tenant, id)[0] !== id) throw new ClashError("agent");
  }

  put(agent: AgentRecord): void {
    this.#idsByName.clear();
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

  #named(tenant: string, name: string): readonly AgentId[] {
    const key = `${tenant}\n${name}`;
    const known = this.#idsByName.get(key);
    if (known !== undefined) return known;
    const ids = this.#sql.named.all(tenant, name).map((row) => row[0] as AgentId);
    if (this.#idsByName.size >= NAMES_MAX) this.#idsByName.clear();
    this.#idsByName.set(key, ids);
    return ids;
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
    const seenAtMs = this.#sightings.get(sightingKey(agent.tenant, agent.id))?.seenAtMs ?? null;
    if (seenAtMs === null || lastSeenAtMs === null) return { agent, lastSeenAtMs: seenAtMs ?? lastSeenAtMs };
    return { agent, lastSeenAtMs: Math.max(seenAtMs, lastSeenAtMs) };
  }
}

// No tenant has a line break.
function sightingKey(tenant: string, agentId: string): string {
  return `${tenant}\n${agentId}`;
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
