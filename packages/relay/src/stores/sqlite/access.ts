import type { DatabaseSync } from "node:sqlite";
import type { KeyFilter, KeyRecord, TenantRecord } from "../../core/ports/access.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import { KEY_COLUMNS, keyFromRow, TENANT_COLUMNS, tenantFromRow } from "./rows.ts";

/** Records that are remembered of each kind: more than most relays have. */
const KNOWN_MAX = 10_000;

const KEY = `select ${KEY_COLUMNS} from api_key where id = ?`;
const KEYS = `
  select ${KEY_COLUMNS} from api_key indexed by api_key_of_tenant
  where tenant = ? and id > ? order by id limit ?`;
const KEYS_OF_AGENT = `
  select ${KEY_COLUMNS} from api_key indexed by api_key_of_agent
  where tenant = ? and agent_id is not null and agent_id = ? and id > ? order by id limit ?`;
const INSERT_KEY = `
  insert into api_key (agent_id, verbs_json, digest, created_at_ms, created_by, expires_at_ms, revoked_at_ms,
    replaces, replaced_by, signing_secret, version, id, tenant)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`;
const UPDATE_KEY = `
  update api_key set agent_id = ?, verbs_json = ?, digest = ?, created_at_ms = ?, created_by = ?,
    expires_at_ms = ?, revoked_at_ms = ?, replaces = ?, replaced_by = ?, signing_secret = ?,
    version = version + 1
  where id = ? and tenant = ? and version = ?`;
const FORGET_SECRETS = `
  update api_key indexed by api_key_secret_expiry set signing_secret = '', version = version + 1
  where signing_secret <> '' and expires_at_ms <= ?`;

const TENANT = `select ${TENANT_COLUMNS} from tenant where id = ?`;
const TENANTS = `select ${TENANT_COLUMNS} from tenant order by id`;
const INSERT_TENANT = `
  insert into tenant (capabilities, created_at_ms, version, id) values (?, ?, 1, ?) on conflict do nothing`;
const UPDATE_TENANT = `
  update tenant set capabilities = ?, created_at_ms = ?, version = version + 1 where id = ? and version = ?`;

/** Who may come in, and to which tenant. Every request asks for a key and its tenant, and hardly any changes one. */
export class Access {
  readonly #key: Statement;
  readonly #keys: Statement;
  readonly #keysOfAgent: Statement;
  readonly #insertKey: Statement;
  readonly #updateKey: Statement;
  readonly #forgetSecrets: Statement;
  readonly #tenant: Statement;
  readonly #tenants: Statement;
  readonly #insertTenant: Statement;
  readonly #updateTenant: Statement;
  /** Emptied whenever a key is written. What is not there is not remembered: anybody can ask for it. */
  readonly #knownKeys = new Map<string, KeyRecord>();
  /** Emptied whenever a tenant is written. */
  readonly #knownTenants = new Map<string, TenantRecord>();

  constructor(database: DatabaseSync) {
    this.#key = prepare(database, KEY);
    this.#keys = prepare(database, KEYS);
    this.#keysOfAgent = prepare(database, KEYS_OF_AGENT);
    this.#insertKey = prepare(database, INSERT_KEY);
    this.#updateKey = prepare(database, UPDATE_KEY);
    this.#forgetSecrets = prepare(database, FORGET_SECRETS);
    this.#tenant = prepare(database, TENANT);
    this.#tenants = prepare(database, TENANTS);
    this.#insertTenant = prepare(database, INSERT_TENANT);
    this.#updateTenant = prepare(database, UPDATE_TENANT);
  }

  key(id: string): KeyRecord | undefined {
    const known = this.#knownKeys.get(id);
    if (known !== undefined) return known;
    const row = this.#key.get(id);
    return row === undefined ? undefined : remember(this.#knownKeys, keyFromRow(row));
  }

  keyAtHand(id: string): KeyRecord | undefined {
    return this.#knownKeys.get(id);
  }

  keys({ tenant, agentId, afterId, limit }: KeyFilter): readonly KeyRecord[] {
    const rows =
      agentId === undefined
        ? this.#keys.all(tenant, afterId, limit)
        : this.#keysOfAgent.all(tenant, agentId, afterId, limit);
    return rows.map((row) => keyFromRow(row));
  }

  tenant(id: string): TenantRecord | undefined {
    const known = this.#knownTenants.get(id);
    if (known !== undefined) return known;
    const row = this.#tenant.get(id);
    return row === undefined ? undefined : remember(this.#knownTenants, tenantFromRow(row));
  }

  tenants(): readonly TenantRecord[] {
    return this.#tenants.all().map((row) => tenantFromRow(row));
  }

  /** Inside a commit. */
  putKey(key: KeyRecord): void {
    this.#knownKeys.clear();
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
    const { changes } =
      key.version === 0 ? this.#insertKey.run(...values) : this.#updateKey.run(...values, key.version);
    if (changes === 0) throw new ClashError("key");
  }

  /** Inside a commit. Answers how many. */
  forgetSigningSecrets(nowMs: number): number {
    const count = Number(this.#forgetSecrets.run(nowMs).changes);
    if (count > 0) this.#knownKeys.clear();
    return count;
  }

  /** Inside a commit. */
  putTenant(tenant: TenantRecord): void {
    this.#knownTenants.clear();
    const values = [tenant.capabilities ? 1 : 0, tenant.createdAtMs, tenant.id];
    const { changes } =
      tenant.version === 0
        ? this.#insertTenant.run(...values)
        : this.#updateTenant.run(...values, tenant.version);
    if (changes === 0) throw new ClashError("tenant");
  }
}

function remember<Known extends { readonly id: string }>(all: Map<string, Known>, one: Known): Known {
  if (all.size >= KNOWN_MAX) all.clear();
  all.set(one.id, one);
  return one;
}
