import { RelayError } from "@a2a-relay/protocol";
import type { ChainHead } from "../../core/ports/journal.ts";

/** A kind of record in an export: its columns, and the part of them that orders and identifies its records. */
export interface RecordKind {
  readonly columns: readonly string[];
  /** Undefined: in the order in which the messages were accepted. */
  readonly key?: readonly string[];
}

/**
 * What an export holds, in the order in which it can be imported. Names of kinds and columns are those that the tables
 * of both stores have in common; a test compares them. What one store has alone is left out: row numbers, counters, and
 * what belongs to running relays.
 */
export const RECORD_KINDS = {
  relay_identity: columns("private_key", []),
  tenant: columns("id capabilities created_at_ms version", ["id"]),
  api_key: columns(
    `id tenant agent_id verbs_json digest created_at_ms created_by expires_at_ms revoked_at_ms replaces replaced_by
    signing_secret version`,
    ["id"],
  ),
  capability: columns(
    `tenant id nonce subject subject_key action written_action scope_json granted_by parent_id issued_at_ms
    expires_at_ms revoked_at_ms used signature version`,
    ["tenant", "id"],
  ),
  custodial_key: columns("tenant pubkey_b58 private_key", ["tenant", "pubkey_b58"]),
  agent: columns(
    `tenant id display_name aliases_json card_json skills_json representative_queries_json callback_url ttl_ms
    pubkey_b58 custodial registered_at_ms others_before_ms removed_at_ms extended_card_json direct version`,
    ["tenant", "id"],
  ),
  agent_name: columns("tenant name agent_id kind", ["tenant", "name", "agent_id"]),
  presence: columns("tenant agent_id last_seen_at_ms", ["tenant", "agent_id"]),
  message: columns("tenant id sender recipient kind thread_id task_id accepted_at_ms json"),
  delivery: columns(
    `tenant message_id agent_id sender task_id state position delivered_at_ms attempt lease_id worker leased_at_ms
    lease_expires_at_ms reserved_for expires_at_ms settled_at_ms reason duplicate_safety idempotency_key quiet
    thread_id purpose version`,
  ),
  send_key: columns("tenant key sender recipient digest message_id thread_id task_id gone_at_ms", [
    "tenant",
    "key",
    "sender",
    "recipient",
  ]),
  task: columns(
    `tenant id requester assignee state thread_id message_id subject client_id result_key waiting parent_id
    deadline_ms status_text result_status result_message_id result_digest handoffs_json first_message_id asked_of
    plain update_count update_bytes created_at_ms updated_at_ms version`,
    ["tenant", "id"],
  ),
  artifact: columns("tenant task_id artifact_id ordinal json", ["tenant", "task_id", "artifact_id"]),
  task_update: columns("tenant task_id n at_ms kind step_json", ["tenant", "task_id", "n"]),
  cached_result: columns(
    "tenant result_key task_id stored_at_ms expires_at_ms text parts_json artifacts_json",
    ["tenant", "result_key"],
  ),
  push_endpoint: columns(
    `tenant agent_id mode url notice acknowledges secret old_secret old_secret_until_ms state reason failures
    open_until_ms after_position version`,
    ["tenant", "agent_id"],
  ),
  push: columns(
    `tenant message_id agent_id state reason attempts attempts_before created_at_ms position next_at_ms sent_at_ms
    version`,
    ["tenant", "message_id"],
  ),
  push_attempt: columns("tenant message_id attempt at_ms duration_ms status error answer", [
    "tenant",
    "message_id",
    "attempt",
  ]),
  task_push_config: columns(
    `tenant task_id id owner url origin token scheme credentials dialect state reason after_n attempts given_up
    next_at_ms sent_at_ms created_at_ms version`,
    ["tenant", "task_id", "id"],
  ),
  remote_task: columns(
    `tenant task_id agent_id requester thread_id url origin binding dialect a2a_tenant remote_task_id
    remote_context_id status_digest changed_at_ms next_at_ms failures misses version answer_json`,
    ["tenant", "task_id"],
  ),
  used_nonce: columns("tenant key_id nonce expires_at_ms", ["tenant", "key_id", "nonce"]),
  anchor: columns("tenant seq hash at_ms", ["tenant"]),
  event: columns(
    "tenant seq type at_ms actor agent_id message_id task_id thread_id data_json previous_hash hash",
    ["tenant", "seq"],
  ),
} as const satisfies Readonly<Record<string, RecordKind>>;

export type RecordKindName = keyof typeof RECORD_KINDS;

export const RECORD_KIND_NAMES = Object.keys(RECORD_KINDS) as readonly RecordKindName[];

export type RecordValue = string | number | null;

/** Its columns are those of its kind, in their order. */
export interface TransferRecord {
  readonly kind: RecordKindName;
  readonly row: Readonly<Record<string, RecordValue>>;
}

/** The journal of one tenant. */
export interface TransferChain {
  readonly tenant: string;
  readonly head: ChainHead;
  /** The last event that retention took; the genesis if it took none. */
  readonly start: ChainHead;
}

/** What stands before the records. */
export interface TransferHeader {
  /** No reader has a cursor beyond this position. */
  readonly position: number;
  /** By tenant. */
  readonly chains: readonly TransferChain[];
}

/** All of a store at one moment. The same data has the same records in the same order, whatever the store. */
export interface TransferSource {
  readonly header: TransferHeader;
  records(): AsyncIterable<TransferRecord>;
}

/** How much of a file is in the store. */
export interface TransferProgress {
  readonly lines: number;
  /** Of these lines: tells the file from others. */
  readonly digest: string;
}

/** A store into which a file is imported. `serve` refuses it from `begin` to `end`. */
export interface TransferTarget extends AsyncDisposable {
  /** Undefined before `begin`. Throws `conflict` if the store has data that no import has written. */
  progress(): Promise<TransferProgress | undefined>;
  begin(header: TransferHeader, progress: TransferProgress): Promise<void>;
  /** All of it with its progress, durable once resolved, or nothing. */
  write(records: readonly TransferRecord[], progress: TransferProgress): Promise<void>;
  /** After the last record: positions go on where those of the source ended. */
  complete(header: TransferHeader): Promise<void>;
  /** Once the import is verified: from now on a relay may use the store. */
  end(): Promise<void>;
}

export function hasData(kind: RecordKindName): RelayError {
  const how = "import into a new data directory or an empty database";
  return new RelayError("conflict", `there is data already, in ${kind}; ${how}`);
}

function columns(names: string, key?: readonly string[]): RecordKind {
  return { columns: names.split(/\s+/), ...(key === undefined ? {} : { key }) };
}
