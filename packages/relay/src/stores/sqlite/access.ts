import type { AgentId } from "@a2a-relay/protocol";
import { pairedAction } from "../../core/rules/paired-action.ts";
import type {
  CapabilityFilter,
  CapabilityRecord,
  CapabilityStore,
  KeyFilter,
  KeyRecord,
  KeyStore,
  PairAccess,
  TenantRecord,
  TenantStore,
  UsedNonce,
} from "../../core/ports/access.ts";
import type { Agents } from "./agents.ts";
import { ClashError, type CommitQueue, type Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import { parseJson, parseNullableJson } from "./rows.ts";

const KEY_COLUMNS = `id, tenant, agent_id, verbs_json, digest, created_at_ms, created_by, expires_at_ms,
  revoked_at_ms, replaces, replaced_by, signing_secret, version`;
const TENANT_COLUMNS = "id, capabilities, created_at_ms, version";
const CAPABILITY_COLUMNS = `tenant, id, nonce, subject, subject_key, action, written_action, scope_json,
  granted_by, parent_id, issued_at_ms, expires_at_ms, revoked_at_ms, used, signature, version`;

const KEY_SQL = {
  select: `select ${KEY_COLUMNS} from api_key where id = ?`,
  page: `
    select ${KEY_COLUMNS} from api_key indexed by api_key_of_tenant
    where tenant = ? and id > ? order by id limit ?`,
  pageOfAgent: `
    select ${KEY_COLUMNS} from api_key indexed by api_key_of_agent
    where tenant = ? and agent_id is not null and agent_id = ? and id > ? order by id limit ?`,
  insert: `
    insert into api_key (agent_id, verbs_json, digest, created_at_ms, created_by, expires_at_ms, revoked_at_ms,
      replaces, replaced_by, signing_secret, version, id, tenant)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`,
  update: `
    update api_key set agent_id = ?, verbs_json = ?, digest = ?, created_at_ms = ?, created_by = ?,
      expires_at_ms = ?, revoked_at_ms = ?, replaces = ?, replaced_by = ?, signing_secret = ?,
      version = version + 1
    where id = ? and tenant = ? and version = ?`,
  clearSecrets: `
    update api_key set signing_secret = '', version = version + 1 where id in (
      select id from api_key indexed by api_key_secret_expiry
      where signing_secret <> '' and expires_at_ms <= ? limit ?)`,
  insertNonce: `
    insert into used_nonce (tenant, key_id, nonce, expires_at_ms) values (?, ?, ?, ?) on conflict do nothing`,
  removeNonces: `
    delete from used_nonce where (tenant, key_id, nonce) in (
      select tenant, key_id, nonce from used_nonce indexed by used_nonce_expiry
      where expires_at_ms < ? limit ?)`,
  identity: "select private_key from relay_identity where only_row = 1",
  insertIdentity: "insert into relay_identity (only_row, private_key) values (1, ?) on conflict do nothing",
};

const TENANT_SQL = {
  select: `select ${TENANT_COLUMNS} from tenant where id = ?`,
  all: `select ${TENANT_COLUMNS} from tenant order by id`,
  insert: `
    insert into tenant (capabilities, created_at_ms, version, id) values (?, ?, 1, ?) on conflict do nothing`,
  update: `
    update tenant set capabilities = ?, created_at_ms = ?, version = version + 1 where id = ? and version = ?`,
};

const CAPABILITY_SQL = {
  select: `select ${CAPABILITY_COLUMNS} from capability where tenant = ? and id = ?`,
  inForce: `
    select ${CAPABILITY_COLUMNS} from capability indexed by capability_in_force
    where tenant = ? and subject_key = ? and action = ? and revoked_at_ms is null order by issued_at_ms, id`,
  page: `
    select ${CAPABILITY_COLUMNS} from capability where tenant = ? and id > ? order by id limit ?`,
  pageOfParty: `
    select ${CAPABILITY_COLUMNS} from capability where tenant = ?1 and id in (
      select id from (
        select id from capability indexed by capability_of_subject
        where tenant = ?1 and subject_key = ?2 and id > ?4 order by id limit ?5)
      union
      select id from (
        select id from capability indexed by capability_granted_by
        where tenant = ?1 and granted_by = ?3 and id > ?4 order by id limit ?5))
    order by id limit ?5`,
  insert: `
    insert into capability (nonce, subject, subject_key, action, written_action, scope_json, granted_by, parent_id,
      issued_at_ms, expires_at_ms, revoked_at_ms, used, signature, version, tenant, id)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`,
  update: `
    update capability set nonce = ?, subject = ?, subject_key = ?, action = ?, written_action = ?, scope_json = ?,
      granted_by = ?, parent_id = ?, issued_at_ms = ?, expires_at_ms = ?, revoked_at_ms = ?, used = ?,
      signature = ?, version = version + 1
    where tenant = ? and id = ? and version = ?`,
};

/** Keys, the relay's own too, and the nonces of signed messages. */
export class Keys implements KeyStore {
  readonly #commits: CommitQueue;
  readonly #sql: Statements<typeof KEY_SQL>;

  constructor({ database, commits }: Engine) {
    this.#commits = commits;
    this.#sql = prepareAll(database, KEY_SQL);
  }

  async get(id: string): Promise<KeyRecord | undefined> {
    const row = this.#sql.select.get(id);
    return row === undefined ? undefined : keyFromRow(row);
  }

  async list({ tenant, agentId, afterId, limit }: KeyFilter): Promise<readonly KeyRecord[]> {
    const rows =
      agentId === undefined
        ? this.#sql.page.all(tenant, afterId, limit)
        : this.#sql.pageOfAgent.all(tenant, agentId, afterId, limit);
    return rows.map((row) => keyFromRow(row));
  }

  async identity(candidate: string): Promise<string> {
    const kept = this.#sql.identity.get()?.[0];
    if (typeof kept === "string") return kept;
    return this.#commits.submit(() => {
      this.#sql.insertIdentity.run(candidate);
      return String(this.#sql.identity.get()?.[0]);
    });
  }

  removeNonces(expiredBeforeMs: number, limit: number): number {
    return this.#sql.removeNonces.run(expiredBeforeMs, limit);
  }

  /** Empties the signing secrets of expired keys. */
  clearSecrets(nowMs: number, limit: number): number {
    return this.#sql.clearSecrets.run(nowMs, limit);
  }

  put(key: KeyRecord): void {
    const values = [
      key.agentId,
      key.verbs === null ? null : JSON.stringify(key.verbs),
      key.digest,
      key.createdAtMs,
      key.createdBy,
      key.expiresAtMs,
      key.revokedAtMs,
      key.replaces,
      key.replacedBy,
      key.signingSecret,
      key.id,
      key.tenant,
    ];
    const { insert, update } = this.#sql;
    const written = key.version === 0 ? insert.run(...values) : update.run(...values, key.version);
    if (written === 0) throw new ClashError("key");
  }

  useNonce(tenant: string, { keyId, nonce, expiresAtMs }: UsedNonce): void {
    if (this.#sql.insertNonce.run(tenant, keyId, nonce, expiresAtMs) === 0) throw new ClashError("nonce");
  }
}

export class Tenants implements TenantStore {
  readonly #sql: Statements<typeof TENANT_SQL>;

  constructor({ database }: Engine) {
    this.#sql = prepareAll(database, TENANT_SQL);
  }

  async get(id: string): Promise<TenantRecord | undefined> {
    const row = this.#sql.select.get(id);
    return row === undefined ? undefined : tenantFromRow(row);
  }

  async list(): Promise<readonly TenantRecord[]> {
    return this.#sql.all.all().map((row) => tenantFromRow(row));
  }

  put({ id, capabilities, createdAtMs, version }: TenantRecord): void {
    const values = [capabilities ? 1 : 0, createdAtMs, id];
    const { insert, update } = this.#sql;
    const written = version === 0 ? insert.run(...values) : update.run(...values, version);
    if (written === 0) throw new ClashError("tenant");
  }
}

export class Capabilities implements CapabilityStore {
  readonly #agents: Agents;
  readonly #sql: Statements<typeof CAPABILITY_SQL>;

  constructor({ database }: Engine, agents: Agents) {
    this.#agents = agents;
    this.#sql = prepareAll(database, CAPABILITY_SQL);
  }

  async get(tenant: string, id: string): Promise<CapabilityRecord | undefined> {
    const row = this.#sql.select.get(tenant, id);
    return row === undefined ? undefined : capabilityFromRow(row);
  }

  async of(tenant: string, subjectKey: string, action: string): Promise<readonly CapabilityRecord[]> {
    return this.#inForce(tenant, subjectKey, action);
  }

  async between(tenant: string, sender: AgentId, recipient: AgentId): Promise<PairAccess> {
    const senderKey = this.#agents.findOwner(tenant, sender)?.publicKey ?? undefined;
    const recipientKey = this.#agents.findOwner(tenant, recipient)?.publicKey ?? undefined;
    if (senderKey === undefined || recipientKey === undefined) {
      return { senderKey, recipientKey, permissions: [], consents: [] };
    }
    return {
      senderKey,
      recipientKey,
      permissions: this.#inForce(tenant, senderKey, pairedAction("send", recipientKey)),
      consents: this.#inForce(tenant, recipientKey, pairedAction("recv", senderKey)),
    };
  }

  async list({ tenant, party, afterId, limit }: CapabilityFilter): Promise<readonly CapabilityRecord[]> {
    const rows =
      party === undefined
        ? this.#sql.page.all(tenant, afterId, limit)
        : this.#sql.pageOfParty.all(tenant, party.subjectKey, party.grantedBy, afterId, limit);
    return rows.map((row) => capabilityFromRow(row));
  }

  put(capability: CapabilityRecord): void {
    const values = [
      capability.nonce,
      capability.subject,
      capability.subjectKey,
      capability.action,
      capability.writtenAction,
      JSON.stringify(capability.scope),
      capability.grantedBy,
      capability.parentId,
      capability.issuedAtMs,
      capability.expiresAtMs,
      capability.revokedAtMs,
      capability.used,
      capability.signature,
      capability.tenant,
      capability.id,
    ];
    const { version } = capability;
    const { insert, update } = this.#sql;
    const written = version === 0 ? insert.run(...values) : update.run(...values, version);
    if (written === 0) throw new ClashError("capability");
  }

  #inForce(tenant: string, subjectKey: string, action: string): readonly CapabilityRecord[] {
    return this.#sql.inForce.all(tenant, subjectKey, action).map((row) => capabilityFromRow(row));
  }
}

function keyFromRow(row: Row): KeyRecord {
  return {
    id: row[0] as string,
    tenant: row[1] as string,
    agentId: row[2] as AgentId | null,
    verbs: parseNullableJson(row[3]) as KeyRecord["verbs"],
    digest: row[4] as string,
    createdAtMs: row[5] as number,
    createdBy: row[6] as string,
    expiresAtMs: row[7] as number | null,
    revokedAtMs: row[8] as number | null,
    replaces: row[9] as string | null,
    replacedBy: row[10] as string | null,
    signingSecret: row[11] as string | null,
    version: row[12] as number,
  };
}

function tenantFromRow(row: Row): TenantRecord {
  return {
    id: row[0] as string,
    capabilities: row[1] === 1,
    createdAtMs: row[2] as number,
    version: row[3] as number,
  };
}

function capabilityFromRow(row: Row): CapabilityRecord {
  return {
    tenant: row[0] as string,
    id: row[1] as string,
    nonce: row[2] as string,
    subject: row[3] as AgentId,
    subjectKey: row[4] as string,
    action: row[5] as string,
    writtenAction: row[6] as string,
    scope: parseJson(row[7]) as CapabilityRecord["scope"],
    grantedBy: row[8] as string,
    parentId: row[9] as string | null,
    issuedAtMs: row[10] as number,
    expiresAtMs: row[11] as number | null,
    revokedAtMs: row[12] as number | null,
    used: row[13] as number,
    signature: row[14] as string,
    version: row[15] as number,
  };
}
