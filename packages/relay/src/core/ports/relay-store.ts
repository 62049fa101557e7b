import type { AgentId } from "@a2a-relay/protocol";
import type { TaskPushConfig, TaskPushKey, TaskPushStore } from "./task-pushes.ts";
import type { AccessStore, CapabilityRecord, KeyRecord, TenantRecord, UsedNonce } from "./access.ts";
import type { AgentRecord, AgentStore, CustodialKey } from "./agents.ts";
import type { EventDraft, JournalStore } from "./journal.ts";
import type { DeliveryRecord, MailboxStore } from "./deliveries.ts";
import type { MessageRecord, MessageStore, SendKey } from "./messages.ts";
import type { ArtifactRecord, CachedResult, TaskRecord, TaskStore, TaskUpdate } from "./tasks.ts";
import type { PushAttempt, PushEndpoint, PushRecord, PushStore } from "./pushes.ts";
import type { RemoteTask, RemoteTaskStore } from "./remote-tasks.ts";
import type { ChangeFeed } from "./change-feed.ts";

/**
 * The changes of one commit: plain data, decided by the core, written whole or not at all. An updated record carries
 * the version that was read; the store refuses it if another caller was faster.
 */
export interface Changes {
  readonly tenant: string;
  readonly events: readonly EventDraft[];
  /** Version 0 is a new agent. */
  readonly agents?: readonly AgentRecord[];
  readonly messages?: readonly MessageRecord[];
  readonly sendKeys?: readonly SendKey[];
  /** Version 0 is new. A delivery that is or becomes available gets the next position. */
  readonly deliveries?: readonly DeliveryRecord[];
  /**
   * The store refuses new deliveries to these agents while their mailbox is full, and once they are removed. It
   * never refuses other new deliveries.
   */
  readonly room?: readonly MailboxRoom[];
  /** Version 0 is new. */
  readonly tasks?: readonly TaskRecord[];
  /** Put by id: a replaced artifact keeps its rank. */
  readonly artifacts?: readonly ArtifactRecord[];
  /** Appended; the version of their task keeps their numbers unique. Wakes the readers of the task. */
  readonly taskUpdates?: readonly TaskUpdate[];
  /** Put by key: the newest answer counts. */
  readonly cachedResults?: readonly CachedResult[];
  readonly custodialKeys?: readonly CustodialKey[];
  /** Version 0 is new. */
  readonly keys?: readonly KeyRecord[];
  /** Version 0 is new. */
  readonly tenants?: readonly TenantRecord[];
  /** Version 0 is new. */
  readonly capabilities?: readonly CapabilityRecord[];
  /** Version 0 is new. Wakes the readers of `PUSH_ENDPOINTS_TOPIC`. */
  readonly pushEndpoints?: readonly PushEndpoint[];
  /** The same for what a pusher changes with every message, without waking readers. */
  readonly pushProgress?: readonly PushEndpoint[];
  /** Version 0 is new. */
  readonly pushes?: readonly PushRecord[];
  /** Appended. */
  readonly pushAttempts?: readonly PushAttempt[];
  /** Version 0 is new. Wakes the readers of `TASK_PUSHES_TOPIC` for those with a due time. */
  readonly taskPushes?: readonly TaskPushConfig[];
  /** An unknown one is no clash. */
  readonly forgottenTaskPushes?: readonly TaskPushKey[];
  /** Version 0 is new. Wakes the readers of `REMOTE_TASKS_TOPIC` for those with an answer. */
  readonly remoteTasks?: readonly RemoteTask[];
  /** A nonce that was used before clashes. */
  readonly nonces?: readonly UsedNonce[];
}

export interface MailboxRoom {
  readonly agentId: AgentId;
  readonly openMax: number;
}

/** Why nothing was written: another caller took or changed this first. */
export type Clash =
  | "agent"
  | "agent_key"
  | "agent_name"
  | "capability"
  | "delivery"
  | "key"
  | "mailbox"
  | "message_id"
  | "nonce"
  | "push"
  | "push_endpoint"
  | "remote_task"
  | "send_key"
  | "task"
  | "task_client_id"
  | "task_push"
  | "tenant";

export type CommitOutcome =
  | { readonly committed: true }
  | { readonly committed: false; readonly clash: Clash };

/**
 * The storage of the core: reads, and a few atomic verbs. `testing/relay-store.contract.ts` defines its behaviour; a
 * store promises nothing beyond that.
 *
 * Every write is durable once its promise resolves. A full disk is `storage_full`, and nothing of that
 * caller's change is written.
 */
export interface RelayStore
  extends
    AccessStore,
    AgentStore,
    MessageStore,
    MailboxStore,
    TaskStore,
    JournalStore,
    PushStore,
    RemoteTaskStore,
    TaskPushStore,
    AsyncDisposable {
  readonly feed: ChangeFeed;
  /** Writes all of it in one commit together with its events, or nothing. */
  commit(changes: Changes): Promise<CommitOutcome>;
  /** A real, durable write that leaves no trace in the journal. */
  probe(nowMs: number): Promise<void>;
}
