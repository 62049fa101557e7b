import type { AgentId } from "@a2a-relay/protocol";
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
} from "../../core/ports/access.ts";
import type { Changes } from "../../core/ports/relay-store.ts";
import { pairedAction } from "../../core/rules/paired-action.ts";
import type { Database, Row, Transaction } from "./database.ts";
import type { Engine } from "./postgres-relay-store.ts";
import { insertAll, putAll, type Table } from "./table.ts";

const SQL = {
  key: "select * from api_key where id = $1",
  keys: "select * from api_key where tenant = $1 and id > $2 order by id limit $3",
  keysOfAgent: "select * from api_key where tenant = $1 and agent_id = $2 and id > $3 order by id limit $4",
  // The first candidate stays.
  identity: `
    insert into relay_identity as kept (only_row, private_key) values (1, $1)
    on conflict (only_row) do update set private_key = kept.private_key returning private_key`,
  removeNonces: `
    delete from used_nonce where ctid = any (array(select ctid from used_nonce where expires_at_ms < $1 limit $2))`,
  clearSecrets: `
    update api_key set signing_secret = '', version = version + 1 where id in (
      select id from api_key where signing_secret <> '' and expires_at_ms <= $1 limit $2)`,
  tenant: "select * from tenant where id = $1",
  tenants: "select * from tenant order by id",
  capability: "select * from capability where tenant = $1 and id = $2",
  inForce: `
    select * from capability where tenant = $1 and subject_key = $2 and action = $3 and revoked_at_ms is null
    order by issued_at_ms, id`,
  publicKeys: `
    select id, pubkey_b58 from agent where tenant = $1 and id = any ($2) and removed_at_ms is null`,
  capabilities: "select * from capability where tenant = $1 and id > $2 order by id limit $3",
  capabilitiesOfParty: `
    select * from capability where tenant = $1 and (subject_key = $2 or granted_by = $3) and id > $4
    order by id limit $5`,
};

const KEYS: Table<KeyRecord> = {
  name: "api_key",
  key: ["id", "tenant"],
  clash: "key",
  columns: [
    "id",
    "tenant",
    "agent_id",
    "verbs_json",
    "digest",
    "created_at_ms",
    "created_by",
    "expires_at_ms",
    "revoked_at_ms",
    "replaces",
    "replaced_by",
    "signing_secret",
  ],
  row: (key) => ({
    id: key.id,
    tenant: key.tenant,
    agent_id: key.agentId,
    verbs_json: key.verbs === null ? null : JSON.stringify(key.verbs),
    digest: key.digest,
    created_at_ms: key.createdAtMs,
    created_by: key.createdBy,
    expires_at_ms: key.expiresAtMs,
    revoked_at_ms: key.revokedAtMs,
    replaces: key.replaces,
    replaced_by: key.replacedBy,
    signing_secret: key.signingSecret,
  }),
};

const TENANTS: Table<TenantRecord> = {
  name: "tenant",
  key: ["id"],
  clash: "tenant",
  columns: ["id", "capabilities", "created_at_ms"],
  row: ({ id, capabilities, createdAtMs }) => ({
    id,
    capabilities: capabilities ? 1 : 0,
    created_at_ms: createdAtMs,
  }),
};

const CAPABILITIES: Table<CapabilityRecord> = {
  name: "capability",
  key: ["tenant", "id"],
  clash: "capability",
  columns: [
    "tenant",
    "id",
    "nonce",
    "subject",
    "subject_key",
    "action",
    "written_action",
    "scope_json",
    "granted_by",
    "parent_id",
    "issued_at_ms",
    "expires_at_ms",
    "revoked_at_ms",
    "used",
    "signature",
  ],
  row: (capability) => ({
    tenant: capability.tenant,
    id: capability.id,
    nonce: capability.nonce,
    subject: capability.subject,
    subject_key: capability.subjectKey,
    action: capability.action,
    written_action: capability.writtenAction,
    scope_json: JSON.stringify(capability.scope),
    granted_by: capability.grantedBy,
    parent_id: capability.parentId,
    issued_at_ms: capability.issuedAtMs,
    expires_at_ms: capability.expiresAtMs,
    revoked_at_ms: capability.revokedAtMs,
    used: capability.used,
    signature: capability.signature,
  }),
};

/** Keys, the relay's identity, and the nonces of signed messages. */
export class Keys implements KeyStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(id: string): Promise<KeyRecord | undefined> {
    const row = await this.#database.row(SQL.key, [id]);
    return row === undefined ? undefined : keyFromRow(row);
  }

  async list({ tenant, agentId, afterId, limit }: KeyFilter): Promise<readonly KeyRecord[]> {
    const rows =
      agentId === undefined
        ? await this.#database.ofTenant(tenant).rows(SQL.keys, [tenant, afterId, limit])
        : await this.#database.ofTenant(tenant).rows(SQL.keysOfAgent, [tenant, agentId, afterId, limit]);
    return rows.map((row) => keyFromRow(row));
  }

  async identity(candidate: string): Promise<string> {
    const row = await this.#database.row(SQL.identity, [candidate]);
    return row?.["private_key"] as string;
  }

  putAll(transaction: Transaction, keys: readonly KeyRecord[]): Promise<void> {
    return putAll(transaction, KEYS, keys);
  }

  useNonces(transaction: Transaction, all: readonly Changes[]): Promise<void> {
    const rows = all.flatMap(({ tenant, nonces = [] }) =>
      nonces.map(({ keyId, nonce, expiresAtMs }) => ({
        tenant,
        key_id: keyId,
        nonce,
        expires_at_ms: expiresAtMs,
      })),
    );
    const columns = ["tenant", "key_id", "nonce", "expires_at_ms"];
    return insertAll(transaction, { name: "used_nonce", clash: "nonce" }, rows, columns);
  }

  removeNonces(transaction: Transaction, expiredBeforeMs: number, limit: number): Promise<number> {
    return transaction.run(SQL.removeNonces, [expiredBeforeMs, limit]);
  }

  /** Empties the signing secrets of expired keys. */
  clearSecrets(transaction: Transaction, nowMs: number, limit: number): Promise<number> {
    return transaction.run(SQL.clearSecrets, [nowMs, limit]);
  }
}

export class Tenants implements TenantStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(id: string): Promise<TenantRecord | undefined> {
    const row = await this.#database.row(SQL.tenant, [id]);
    return row === undefined ? undefined : tenantFromRow(row);
  }

  async list(): Promise<readonly TenantRecord[]> {
    return (await this.#database.rows(SQL.tenants)).map((row) => tenantFromRow(row));
  }

  putAll(transaction: Transaction, tenants: readonly TenantRecord[]): Promise<void> {
    return putAll(transaction, TENANTS, tenants);
  }
}

export class Capabilities implements CapabilityStore {
  readonly #database: Database;

  constructor({ database }: Engine) {
    this.#database = database;
  }

  async get(tenant: string, id: string): Promise<CapabilityRecord | undefined> {
    const row = await this.#database.ofTenant(tenant).row(SQL.capability, [tenant, id]);
    return row === undefined ? undefined : capabilityFromRow(row);
  }

  async of(tenant: string, subjectKey: string, action: string): Promise<readonly CapabilityRecord[]> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.inForce, [tenant, subjectKey, action]);
    return rows.map((row) => capabilityFromRow(row));
  }

  async between(tenant: string, sender: AgentId, recipient: AgentId): Promise<PairAccess> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.publicKeys, [tenant, [sender, recipient]]);
    const keys = new Map(
      rows.map((row) => [row["id"], (row["pubkey_b58"] ?? undefined) as string | undefined]),
    );
    const [senderKey, recipientKey] = [keys.get(sender), keys.get(recipient)];
    if (senderKey === undefined || recipientKey === undefined) {
      return { senderKey, recipientKey, permissions: [], consents: [] };
    }
    const [permissions, consents] = await Promise.all([
      this.of(tenant, senderKey, pairedAction("send", recipientKey)),
      this.of(tenant, recipientKey, pairedAction("recv", senderKey)),
    ]);
    return { senderKey, recipientKey, permissions, consents };
  }

  async list({ tenant, party, afterId, limit }: CapabilityFilter): Promise<readonly CapabilityRecord[]> {
    const rows =
      party === undefined
        ? await this.#database.ofTenant(tenant).rows(SQL.capabilities, [tenant, afterId, limit])
        : await this.#database
            .ofTenant(tenant)
            .rows(SQL.capabilitiesOfParty, [tenant, party.subjectKey, party.grantedBy, afterId, limit]);
    return rows.map((row) => capabilityFromRow(row));
  }

  putAll(transaction: Transaction, capabilities: readonly CapabilityRecord[]): Promise<void> {
    return putAll(transaction, CAPABILITIES, capabilities);
  }
}

function keyFromRow(row: Row): KeyRecord {
  return {
    id: row["id"] as string,
    tenant: row["tenant"] as string,
    agentId: row["agent_id"] as AgentId | null,
    verbs:
      row["verbs_json"] === null ? null : (JSON.parse(row["verbs_json"] as string) as KeyRecord["verbs"]),
    digest: row["digest"] as string,
    createdAtMs: row["created_at_ms"] as number,
    createdBy: row["created_by"] as string,
    expiresAtMs: row["expires_at_ms"] as number | null,
    revokedAtMs: row["revoked_at_ms"] as number | null,
    replaces: row["replaces"] as string | null,
    replacedBy: row["replaced_by"] as string | null,
    signingSecret: row["signing_secret"] as string | null,
    version: row["version"] as number,
  };
}

function tenantFromRow(row: Row): TenantRecord {
  return {
    id: row["id"] as string,
    capabilities: row["capabilities"] === 1,
    createdAtMs: row["created_at_ms"] as number,
    version: row["version"] as number,
  };
}

function capabilityFromRow(row: Row): CapabilityRecord {
  return {
    tenant: row["tenant"] as string,
    id: row["id"] as string,
    nonce: row["nonce"] as string,
    subject: row["subject"] as AgentId,
    subjectKey: row["subject_key"] as string,
    action: row["action"] as string,
    writtenAction: row["written_action"] as string,
    scope: JSON.parse(row["scope_json"] as string) as CapabilityRecord["scope"],
    grantedBy: row["granted_by"] as string,
    parentId: row["parent_id"] as string | null,
    issuedAtMs: row["issued_at_ms"] as number,
    expiresAtMs: row["expires_at_ms"] as number | null,
    revokedAtMs: row["revoked_at_ms"] as number | null,
    used: row["used"] as number,
    signature: row["signature"] as string,
    version: row["version"] as number,
  };
}
