import type { AgentId } from "@a2a-relay/protocol";
import type {
  AgentOwner,
  AgentPage,
  AgentRecord,
  AgentStore,
  AgentWithPresence,
  CustodialKey,
  NamedAgent,
} from "../../core/ports/agents.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import { ClashError } from "./commit-queue.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { putAll, type Table } from "./table.ts";

/** Agents that one answer lists for a name: enough for an error message to offer candidates. */
const NAMED_AGENTS_MAX = 100;

const WITH_PRESENCE = `
  select a.*, p.last_seen_at_ms from agent a
  left join presence p on p.tenant = a.tenant and p.agent_id = a.id`;

const SQL = {
  agent: `${WITH_PRESENCE} where a.tenant = $1 and a.id = $2`,
  page: `
    ${WITH_PRESENCE} where a.tenant = $1 and a.removed_at_ms is null and a.id > $2 order by a.id limit $3`,
  removed: `
    ${WITH_PRESENCE} where a.tenant = $1 and a.removed_at_ms is not null and a.id > $2 order by a.id limit $3`,
  owners: `
    select id, pubkey_b58, others_before_ms from agent
    where tenant = $1 and id = any ($2) and removed_at_ms is null`,
  // Ids of remote agents begin with a scheme and two slashes: no other id has a slash.
  count: `
    select count(*) as "all", count(*) filter (
      where id >= 'http://' and id < 'http:0' or id >= 'https://' and id < 'https:0') as remote
    from agent where tenant = $1 and removed_at_ms is null`,
  named: `
    select agent_id, kind, removed from (
      select agent_id, kind, false as removed from agent_name where tenant = $1 and name = $2
      union all
      select id, 'id', true from agent where tenant = $1 and id = $2 and removed_at_ms is not null) named
    order by case kind when 'id' then 0 when 'alias' then 1 else 2 end, agent_id
    limit ${NAMED_AGENTS_MAX}`,
  withKey: "select id from agent where tenant = $1 and pubkey_b58 = $2 and removed_at_ms is null",
  custodialKey: "select private_key from custodial_key where tenant = $1 and pubkey_b58 = $2",
  // A commit that waits for no disk: it is on disk soon enough.
  touch: `
    with quick as materialized (select set_config('synchronous_commit', 'off', true))
    insert into presence as known (tenant, agent_id, last_seen_at_ms)
    select a.tenant, a.id, seen.at_ms
    from json_to_recordset($1) as seen (tenant text, id text, at_ms bigint) cross join quick
    join agent a on a.tenant = seen.tenant and a.id = seen.id
    order by a.tenant, a.id
    on conflict (tenant, agent_id) do update set last_seen_at_ms = excluded.last_seen_at_ms
    where known.last_seen_at_ms < excluded.last_seen_at_ms`,
  putCustodialKeys: `
    insert into custodial_key (tenant, pubkey_b58, private_key)
    select tenant, public_key, private_key
    from json_to_recordset($1) as given (tenant text, public_key text, private_key text)
    order by tenant, public_key
    on conflict (tenant, pubkey_b58) do update set private_key = excluded.private_key`,
  lock: "select pg_advisory_xact_lock(hashtextextended(name, 0)) from unnest($1::text[]) name",
  keyTaken: `
    select 1 from json_to_recordset($1) as put (tenant text, id text, pubkey_b58 text)
    join agent a on a.tenant = put.tenant and a.pubkey_b58 = put.pubkey_b58 and a.removed_at_ms is null
      and a.id <> put.id
    limit 1`,
  removeNames: `
    delete from agent_name n using json_to_recordset($1) as put (tenant text, id text)
    where n.tenant = put.tenant and n.agent_id = put.id`,
  insertNames: `
    insert into agent_name (tenant, name, agent_id, kind)
    select tenant, name, agent_id, kind from json_populate_recordset(null::agent_name, $1)`,
  // The id of a removed agent stays reserved: no other agent may use it as an alias.
  nameTaken: `
    select 1 from json_to_recordset($1) as put (tenant text, id text)
    join agent_name n on n.tenant = put.tenant and n.agent_id = put.id and n.kind in ('id', 'alias')
    where exists (
        select 1 from agent_name other
        where other.tenant = n.tenant and other.name = n.name and other.agent_id <> n.agent_id
          and other.kind in ('id', 'alias'))
      or exists (select 1 from agent a where a.tenant = n.tenant and a.id = n.name and a.id <> n.agent_id)
    limit 1`,
  // Until the commit no other process removes them.
  present: `
    select 1 from json_to_recordset($1) as wanted (tenant text, id text)
    join agent a on a.tenant = wanted.tenant and a.id = wanted.id and a.removed_at_ms is null
    for share of a`,
};

const AGENTS: Table<AgentRecord> = {
  name: "agent",
  key: ["tenant", "id"],
  clash: "agent",
  columns: [
    "tenant",
    "id",
    "display_name",
    "aliases_json",
    "card_json",
    "skills_json",
    "representative_queries_json",
    "callback_url",
    "ttl_ms",
    "pubkey_b58",
    "custodial",
    "registered_at_ms",
    "others_before_ms",
    "removed_at_ms",
    "extended_card_json",
    "direct",
  ],
  row: (agent) => ({
    tenant: agent.tenant,
    id: agent.id,
    display_name: agent.displayName,
    aliases_json: JSON.stringify(agent.aliases),
    card_json: JSON.stringify(agent.card),
    skills_json: JSON.stringify(agent.skills),
    representative_queries_json: JSON.stringify(agent.representativeQueries),
    callback_url: agent.callbackUrl,
    ttl_ms: agent.ttlMs,
    pubkey_b58: agent.publicKey,
    custodial: agent.isCustodial ? 1 : 0,
    registered_at_ms: agent.registeredAtMs,
    others_before_ms: agent.othersBeforeMs,
    removed_at_ms: agent.removedAtMs,
    extended_card_json: agent.extendedCard === null ? null : JSON.stringify(agent.extendedCard),
    direct: agent.isDirect ? 1 : 0,
  }),
};

type AgentKey = Pick<AgentRecord, "tenant" | "id">;

interface Sighting extends AgentKey {
  readonly at_ms: number;
}

/** Agents, their names, and when each was last seen. */
export class Agents implements AgentStore {
  readonly #database: Database;
  /** Those that the next write takes, and that write. */
  #sightings = new Map<string, Sighting>();
  #nextSave: Promise<void> | undefined;
  #lastSave: Promise<void> = Promise.resolve();

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.agent, [tenant, id]);
    return row === undefined ? undefined : agentFromRow(row);
  }

  async owners(tenant: string, ids: readonly AgentId[]): Promise<readonly (AgentOwner | undefined)[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.owners, [tenant, ids]);
    const owners = new Map(rows.map((row) => [row["id"], ownerFromRow(row)]));
    return ids.map((id) => owners.get(id));
  }

  async named(tenant: string, name: string): Promise<readonly NamedAgent[]> {
    return (await this.#database.ofTenant(tenant).rows(SQL.named, [tenant, name])).map((row) =>
      nameFromRow(row),
    );
  }

  async withKey(tenant: string, publicKey: string): Promise<AgentId | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.withKey, [tenant, publicKey]);
    return row?.["id"] as AgentId | undefined;
  }

  async list({ tenant, isRemoved, afterId, limit }: AgentPage): Promise<readonly AgentWithPresence[]> {
    const rows = await this.#database
      .ofTenant(tenant)
      .rows(isRemoved ? SQL.removed : SQL.page, [tenant, afterId, limit]);
    return rows.map((row) => agentFromRow(row));
  }

  async count(tenant: string): Promise<{ readonly all: number; readonly remote: number }> {
    const row = await this.#database.ofTenant(tenant).row(SQL.count, [tenant]);
    return { all: Number(row?.["all"]), remote: Number(row?.["remote"]) };
  }

  async custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.custodialKey, [tenant, publicKey]);
    return row === undefined ? undefined : { tenant, publicKey, privateKey: row["private_key"] as string };
  }

  /** Sightings that come during one write share the next. */
  touch(tenant: string, id: AgentId, seenAtMs: number): Promise<void> {
    const key = textKey(tenant, id);
    if ((this.#sightings.get(key)?.at_ms ?? -1) < seenAtMs) {
      this.#sightings.set(key, { tenant, id, at_ms: seenAtMs });
    }
    this.#nextSave ??= this.#saveAfter(this.#lastSave);
    return this.#nextSave;
  }

  async putCustodialKeys(transaction: Transaction, keys: readonly CustodialKey[]): Promise<void> {
    if (keys.length === 0) return;
    // One statement cannot put a row twice.
    const rows = new Map(
      keys.map(({ tenant, publicKey, privateKey }) => [
        textKey(tenant, publicKey),
        { tenant, public_key: publicKey, private_key: privateKey },
      ]),
    );
    await transaction.run(SQL.putCustodialKeys, [JSON.stringify([...rows.values()])]);
  }

  async putAll(transaction: Transaction, agents: readonly AgentRecord[]): Promise<void> {
    if (agents.length === 0) return;
    const locks = new Set(agents.map(({ tenant }) => `agents of ${transaction.schema} ${tenant}`));
    await transaction.rows(SQL.lock, [[...locks].toSorted()]);
    const present = agents.filter(({ removedAtMs }) => removedAtMs === null);
    await assertKeysAreFree(transaction, present);
    await putAll(transaction, AGENTS, agents);
    const keys = JSON.stringify(agents.map(({ tenant, id }) => ({ tenant, id })));
    await transaction.run(SQL.removeNames, [keys]);
    await transaction.run(SQL.insertNames, [JSON.stringify(present.flatMap((agent) => namesOf(agent)))]);
    if ((await transaction.row(SQL.nameTaken, [keys])) !== undefined) throw new ClashError("agent_name");
  }

  /** An agent may be removed between the read of a sender and its commit. */
  async assertPresent(transaction: Transaction, all: readonly Changes[]): Promise<void> {
    const wanted = new Map<string, AgentKey>();
    for (const { tenant, room = [] } of all) {
      for (const { agentId: id } of room) wanted.set(textKey(tenant, id), { tenant, id });
    }
    if (wanted.size === 0) return;
    const sorted = [...wanted].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, key]) => key);
    const present = await transaction.rows(SQL.present, [JSON.stringify(sorted)]);
    if (present.length !== wanted.size) throw new ClashError("agent");
  }

  /** A sighting that cannot be written is dropped: the next one is newer. */
  async #saveAfter(lastSave: Promise<void>): Promise<void> {
    await lastSave;
    const sightings = [...this.#sightings.values()];
    this.#sightings = new Map();
    this.#lastSave = this.#nextSave ?? Promise.resolve();
    this.#nextSave = undefined;
    await this.#database.rows(SQL.touch, [JSON.stringify(sightings)]).catch(() => undefined);
  }
}

async function assertKeysAreFree(transaction: Transaction, present: readonly AgentRecord[]): Promise<void> {
  const rows = present
    .filter(({ publicKey }) => publicKey !== null)
    .map(({ tenant, id, publicKey }) => ({ tenant, id, pubkey_b58: publicKey }));
  if (rows.length === 0) return;
  const keys = new Set(rows.map(({ tenant, pubkey_b58 }) => textKey(tenant, String(pubkey_b58))));
  const agents = new Set(rows.map(({ tenant, id }) => textKey(tenant, id)));
  if (keys.size < agents.size) throw new ClashError("agent_key");
  if ((await transaction.row(SQL.keyTaken, [JSON.stringify(rows)])) !== undefined) {
    throw new ClashError("agent_key");
  }
}

// No tenant has a line break.
function textKey(tenant: string, name: string): string {
  return `${tenant}\n${name}`;
}

/** Each name once, with its strongest kind. */
function namesOf({ tenant, id, aliases, displayName }: AgentRecord): readonly Row[] {
  const kinds = new Map<string, NamedAgent["kind"]>([[displayName, "display_name"]]);
  for (const alias of aliases) kinds.set(alias, "alias");
  kinds.set(id, "id");
  return [...kinds].map(([name, kind]) => ({ tenant, name, agent_id: id, kind }));
}

function ownerFromRow(row: Row): AgentOwner {
  return {
    publicKey: row["pubkey_b58"] as string | null,
    othersBeforeMs: row["others_before_ms"] as number,
  };
}

function nameFromRow(row: Row): NamedAgent {
  return {
    agentId: row["agent_id"] as AgentId,
    kind: row["kind"] as NamedAgent["kind"],
    isRemoved: row["removed"] as boolean,
  };
}

function agentFromRow(row: Row): AgentWithPresence {
  const json = (column: string): unknown => JSON.parse(row[column] as string);
  return {
    agent: {
      tenant: row["tenant"] as string,
      id: row["id"] as AgentId,
      displayName: row["display_name"] as string,
      aliases: json("aliases_json") as AgentRecord["aliases"],
      card: json("card_json") as AgentRecord["card"],
      skills: json("skills_json") as AgentRecord["skills"],
      representativeQueries: json("representative_queries_json") as AgentRecord["representativeQueries"],
      callbackUrl: row["callback_url"] as string | null,
      ttlMs: row["ttl_ms"] as number | null,
      publicKey: row["pubkey_b58"] as string | null,
      isCustodial: row["custodial"] === 1,
      registeredAtMs: row["registered_at_ms"] as number,
      othersBeforeMs: row["others_before_ms"] as number,
      removedAtMs: row["removed_at_ms"] as number | null,
      extendedCard:
        row["extended_card_json"] === null
          ? null
          : (json("extended_card_json") as AgentRecord["extendedCard"]),
      isDirect: row["direct"] === 1,
      version: row["version"] as number,
    },
    lastSeenAtMs: row["last_seen_at_ms"] as number | null,
  };
}
