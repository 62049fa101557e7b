import type { DatabaseSync } from "node:sqlite";
import type { CapabilityFilter, CapabilityRecord } from "../../core/ports/access.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import { KnownPairs } from "./known.ts";
import { CAPABILITY_COLUMNS, capabilityFromRow } from "./rows.ts";

/** Answers that are remembered: one for each pair of agents that work together, as a rule. */
const KNOWN_MAX = 10_000;

const SELECT = `select ${CAPABILITY_COLUMNS} from capability where tenant = ? and id = ?`;
const IN_FORCE = `
  select ${CAPABILITY_COLUMNS} from capability indexed by capability_in_force
  where tenant = ? and subject_key = ? and action = ? and revoked_at_ms is null order by issued_at_ms, id`;
const PAGE = `
  select ${CAPABILITY_COLUMNS} from capability where tenant = ? and id > ? order by id limit ?`;
const PAGE_OF_PARTY = `
  select ${CAPABILITY_COLUMNS} from capability where tenant = ?1 and id in (
    select id from (
      select id from capability indexed by capability_of_subject
      where tenant = ?1 and subject_key = ?2 and id > ?4 order by id limit ?5)
    union
    select id from (
      select id from capability indexed by capability_granted_by
      where tenant = ?1 and granted_by = ?3 and id > ?4 order by id limit ?5))
  order by id limit ?5`;

const INSERT = `
  insert into capability (nonce, subject, subject_key, action, written_action, scope_json, granted_by, parent_id,
    issued_at_ms, expires_at_ms, revoked_at_ms, used, signature, version, tenant, id)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) on conflict do nothing`;
const UPDATE = `
  update capability set nonce = ?, subject = ?, subject_key = ?, action = ?, written_action = ?, scope_json = ?,
    granted_by = ?, parent_id = ?, issued_at_ms = ?, expires_at_ms = ?, revoked_at_ms = ?, used = ?,
    signature = ?, version = version + 1
  where tenant = ? and id = ? and version = ?`;

/** Signed permissions, by whose they are. */
export class Capabilities {
  readonly #select: Statement;
  readonly #inForce: Statement;
  readonly #page: Statement;
  readonly #pageOfParty: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  /** Every task asks, also for what nobody was granted. Emptied whenever a capability is written. */
  readonly #known = new KnownPairs<readonly CapabilityRecord[]>(KNOWN_MAX);
  #changes = 0;

  constructor(database: DatabaseSync) {
    this.#select = prepare(database, SELECT);
    this.#inForce = prepare(database, IN_FORCE);
    this.#page = prepare(database, PAGE);
    this.#pageOfParty = prepare(database, PAGE_OF_PARTY);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
  }

  capability(tenant: string, id: string): CapabilityRecord | undefined {
    const row = this.#select.get(tenant, id);
    return row === undefined ? undefined : capabilityFromRow(row);
  }

  capabilitiesFor(tenant: string, subjectKey: string, action: string): readonly CapabilityRecord[] {
    const known = this.#known.get(tenant, subjectKey, action);
    if (known !== undefined) return known;
    const found = this.#inForce.all(tenant, subjectKey, action).map((row) => capabilityFromRow(row));
    this.#known.set(tenant, subjectKey, action, found);
    return found;
  }

  /** Grows with each write. */
  get changes(): number {
    return this.#changes;
  }

  capabilities({ tenant, party, afterId, limit }: CapabilityFilter): readonly CapabilityRecord[] {
    const rows =
      party === undefined
        ? this.#page.all(tenant, afterId, limit)
        : this.#pageOfParty.all(tenant, party.subjectKey, party.grantedBy, afterId, limit);
    return rows.map((row) => capabilityFromRow(row));
  }

  /** Inside a commit. */
  put(capability: CapabilityRecord): void {
    this.#known.clear();
    this.#changes += 1;
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
    const { changes } =
      capability.version === 0
        ? this.#insert.run(...values)
        : this.#update.run(...values, capability.version);
    if (changes === 0) throw new ClashError("capability");
  }
}
