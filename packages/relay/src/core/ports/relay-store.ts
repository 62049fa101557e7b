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
 * What one act changes: plain data, decided by the core, written whole or not at all. Records that are
 * updated carry the version that was read; the store refuses them if somebody else was faster.
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
   * New mail of these agents is refused while their mailbox holds that much, and once they have left. Other new
   * mail never is.
   */
  readonly room?: readonly MailboxRoom[];
  /** Version 0 is new. */
  readonly tasks?: readonly TaskRecord[];
  /** Put by id: a known artifact is replaced in its place. */
  readonly artifacts?: readonly ArtifactRecord[];
  /** Added to what is there; the version of their task keeps their numbers apart. Whoever follows it is woken. */
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
  /** Version 0 is new. Whoever waits for the topic of endpoints is woken. */
  readonly pushEndpoints?: readonly PushEndpoint[];
  /** The same for what an endpoint's own pusher changes with every message: nobody needs to be woken for it. */
  readonly pushProgress?: readonly PushEndpoint[];
  /** Version 0 is new. */
  readonly pushes?: readonly PushRecord[];
  /** Added to what is there. */
  readonly pushAttempts?: readonly PushAttempt[];
  /** Version 0 is new. Whoever waits for their topic is woken where there is a time to look at one. */
  readonly taskPushes?: readonly TaskPushConfig[];
  /** Those that are not there are no clash. */
  readonly forgottenTaskPushes?: readonly TaskPushKey[];
  /** Version 0 is new. Whoever follows them is woken for those with an answer. */
  readonly remoteTasks?: readonly RemoteTask[];
  /** Used once: one that is known clashes. */
  readonly nonces?: readonly UsedNonce[];
}

export interface MailboxRoom {
  readonly agentId: AgentId;
  readonly openMax: number;
}

/** Why nothing was written: what another caller took or changed first. */
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
 * What the core asks of storage: facts to read, and few verbs that are atomic. The behaviour is fixed by
 * `testing/relay-store.contract.ts`; a behaviour that is not there is not promised.
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
