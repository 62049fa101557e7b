import type { AgentId } from "@a2a-relay/protocol";
import type { DueTaskPush, TaskPushConfig, TaskPushKey, TaskPushStore } from "./task-pushes.ts";
import type {
  CapabilityRecord,
  CapabilityStore,
  KeyRecord,
  KeyStore,
  TenantRecord,
  TenantStore,
  UsedNonce,
} from "./access.ts";
import type { AgentRecord, AgentStore, CustodialKey } from "./agents.ts";
import type { Anchor } from "./archive.ts";
import type { Claim, ClaimStore } from "./claims.ts";
import type { EventDraft, JournalStore, RetentionStore } from "./journal.ts";
import type { DeliveryRecord, DeliveryStore } from "./deliveries.ts";
import type { MessageRecord, MessageStore, SendKey } from "./messages.ts";
import type { ArtifactRecord, CachedResult, TaskRecord, TaskStore, TaskUpdate } from "./tasks.ts";
import type { EndpointStore, PushAttempt, PushEndpoint, PushRecord, PushStore } from "./pushes.ts";
import type { RemoteTask, RemoteTaskStore } from "./remote-tasks.ts";
import type { ChangeFeed } from "./change-feed.ts";
import type { SweepStore } from "./sweeps.ts";

/**
 * What one act changes: plain data, decided by the core, written whole or not at all. Records that are
 * updated carry the version that was read; the store refuses them if another caller was faster.
 */
export interface Changes {
  readonly tenant: string;
  readonly events: readonly EventDraft[];
  /** Each must still be held, or nothing is written: background work that another process took over is its work. */
  readonly claims?: readonly Claim[];
  /** Version 0 is a new agent. */
  readonly agents?: readonly AgentRecord[];
  readonly messages?: readonly MessageRecord[];
  readonly sendKeys?: readonly SendKey[];
  /** Version 0 is new. A delivery that is or becomes available gets the next position. */
  readonly deliveries?: readonly DeliveryRecord[];
  /**
   * New deliveries to these agents are refused while their mailbox is full, and once they are removed. Other new
   * deliveries never are.
   */
  readonly room?: readonly MailboxRoom[];
  /**
   * Version 0 is new. Of the unfinished tasks with one result key, one at most does not wait: a second one is a clash,
   * and so is a new one that waits for no other.
   */
  readonly tasks?: readonly TaskRecord[];
  /** Put by id: an artifact that exists is replaced and keeps its position. */
  readonly artifacts?: readonly ArtifactRecord[];
  /** Appended; the version of their task keeps their numbers apart. Wakes the followers of the task. */
  readonly taskUpdates?: readonly TaskUpdate[];
  /** Makes the active push configurations of these tasks due, unless they have a due time, with a new version. */
  readonly duePushes?: readonly DueTaskPush[];
  /** Put by key: the newest result wins. */
  readonly cachedResults?: readonly CachedResult[];
  readonly custodialKeys?: readonly CustodialKey[];
  /** Version 0 is new. */
  readonly keys?: readonly KeyRecord[];
  /** Version 0 is new. */
  readonly tenants?: readonly TenantRecord[];
  /** Version 0 is new. */
  readonly capabilities?: readonly CapabilityRecord[];
  /** Version 0 is new. Wakes the watchers of endpoints. */
  readonly pushEndpoints?: readonly PushEndpoint[];
  /** The same for the progress that an endpoint's own pusher writes with every message: wakes no watcher. */
  readonly pushProgress?: readonly PushEndpoint[];
  /** Version 0 is new. */
  readonly pushes?: readonly PushRecord[];
  /** Appended. */
  readonly pushAttempts?: readonly PushAttempt[];
  /** Version 0 is new. Wakes the watchers of task pushes for those with a due time that are not under way. */
  readonly taskPushes?: readonly TaskPushConfig[];
  /** Deleting one that does not exist is no clash. */
  readonly forgottenTaskPushes?: readonly TaskPushKey[];
  /** Version 0 is new. Wakes the watchers of remote tasks for those with an answer. */
  readonly remoteTasks?: readonly RemoteTask[];
  /** Kept outside the store already. Put by tenant: the newest wins. */
  readonly anchors?: readonly Anchor[];
  /** A nonce that exists is a clash. */
  readonly nonces?: readonly UsedNonce[];
}

export interface MailboxRoom {
  readonly agentId: AgentId;
  readonly openMax: number;
}

/** Why nothing was written: the record that another caller wrote first. */
export type Clash =
  | "agent"
  | "agent_key"
  | "agent_name"
  | "capability"
  | "claim"
  | "delivery"
  | "key"
  | "mailbox"
  | "message_id"
  | "nonce"
  | "push"
  | "push_endpoint"
  | "remote_task"
  | "result_key"
  | "send_key"
  | "task"
  | "task_client_id"
  | "task_push"
  | "tenant";

export type CommitOutcome =
  | { readonly committed: true }
  | { readonly committed: false; readonly clash: Clash };

/**
 * What the core asks of storage: records to read, and few atomic verbs. The behaviour is fixed by
 * `testing/relay-store.contract.ts`; a behaviour that it does not test is not promised.
 *
 * Every write is durable once its promise resolves. A full disk is `storage_full`, and nothing of that
 * caller's change is written. Commits that run at the same time are written in any order; positions and numbers of
 * events follow the order in which they are written, so that a reader behind a cursor never misses one.
 */
export interface RelayStore extends AsyncDisposable {
  readonly agents: AgentStore;
  readonly capabilities: CapabilityStore;
  readonly claims: ClaimStore;
  readonly deliveries: DeliveryStore;
  readonly endpoints: EndpointStore;
  readonly feed: ChangeFeed;
  readonly journal: JournalStore;
  readonly keys: KeyStore;
  readonly messages: MessageStore;
  readonly pushes: PushStore;
  readonly remoteTasks: RemoteTaskStore;
  readonly retention: RetentionStore;
  readonly sweeps: SweepStore;
  readonly taskPushes: TaskPushStore;
  readonly tasks: TaskStore;
  readonly tenants: TenantStore;
  /** Writes all of it in one commit together with its events, or nothing. */
  commit(changes: Changes): Promise<CommitOutcome>;
  /** A real, durable write that leaves no trace in the journal. */
  probe(nowMs: number): Promise<void>;
}
