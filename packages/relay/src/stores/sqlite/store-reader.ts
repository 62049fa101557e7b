import type { DatabaseSync } from "node:sqlite";
import {
  type AgentCard,
  type AgentId,
  type Artifact,
  type DeliveryState,
  RelayError,
} from "@a2a-relay/protocol";
import type { TaskPushConfig } from "../../core/ports/task-pushes.ts";
import type {
  CapabilityFilter,
  CapabilityRecord,
  KeyFilter,
  KeyRecord,
  PairAccess,
  TenantRecord,
} from "../../core/ports/access.ts";
import type { AgentWithPresence, CustodialKey } from "../../core/ports/agents.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import type {
  ChainHead,
  EventFilter,
  EventPage,
  EventRecord,
  RetirableMessage,
} from "../../core/ports/journal.ts";
import type {
  DeliveryPurpose,
  DeliveryRecord,
  MailboxMessage,
  MailboxReadQuery,
  QueuedDelivery,
  QueueFilter,
} from "../../core/ports/deliveries.ts";
import type {
  MessageRecord,
  MessageStore,
  SendKey,
  ThreadPage,
  ThreadQuery,
} from "../../core/ports/messages.ts";
import type { PushAttempt, PushEndpoint, PushFilter, PushRecord } from "../../core/ports/pushes.ts";
import type {
  AskedTasksPage,
  AskedTasksQuery,
  CachedResult,
  LastTaskUpdatesQuery,
  TaskFilter,
  TaskRecord,
  TaskUpdatesPage,
  TaskUpdatesQuery,
  WholeTask,
} from "../../core/ports/tasks.ts";
import type { Readers } from "./ledger.ts";
import { relayErrorFrom } from "./sqlite-error.ts";
import { createParts, type StoreParts } from "./store-parts.ts";

type Write =
  | "commit"
  | "forgetCachedResults"
  | "forgetNonces"
  | "forgetSendKeys"
  | "forgetSigningSecrets"
  | "lease"
  | "markDelivered"
  | "probe"
  | "renewLeases"
  | "retireEvents"
  | "retireMessages"
  | "touchAgent";

/** All that a store answers without a change. */
type Reads = Omit<RelayStore, Write | "feed" | typeof Symbol.asyncDispose>;

/** The reading half of the store: what needs no place in the commit queue. */
export abstract class StoreReader implements Reads {
  protected readonly database: DatabaseSync;
  protected readonly parts: StoreParts;

  constructor(database: DatabaseSync, readers: Readers) {
    this.database = database;
    this.parts = createParts(database, readers);
  }

  keyAtHand(id: string): KeyRecord | undefined {
    return this.database.isOpen ? this.parts.access.keyAtHand(id) : undefined;
  }

  key(id: string): Promise<KeyRecord | undefined> {
    return this.#read(() => this.parts.access.key(id));
  }

  keys(filter: KeyFilter): Promise<readonly KeyRecord[]> {
    return this.#read(() => this.parts.access.keys(filter));
  }

  tenants(): Promise<readonly TenantRecord[]> {
    return this.#read(() => this.parts.access.tenants());
  }

  tenant(id: string): Promise<TenantRecord | undefined> {
    return this.#read(() => this.parts.access.tenant(id));
  }

  capability(tenant: string, id: string): Promise<CapabilityRecord | undefined> {
    return this.#read(() => this.parts.capabilities.capability(tenant, id));
  }

  capabilitiesFor(tenant: string, subjectKey: string, action: string): Promise<readonly CapabilityRecord[]> {
    return this.#read(() => this.parts.capabilities.capabilitiesFor(tenant, subjectKey, action));
  }

  accessBetween(tenant: string, sender: AgentId, recipient: AgentId): Promise<PairAccess> {
    return this.#read(() => this.parts.pairAccesses.between(tenant, sender, recipient));
  }

  capabilities(filter: CapabilityFilter): Promise<readonly CapabilityRecord[]> {
    return this.#read(() => this.parts.capabilities.capabilities(filter));
  }

  agent(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined> {
    return this.#read(() => this.parts.agents.agent(tenant, id));
  }

  agentsNamed(tenant: string, name: string): Promise<readonly AgentId[]> {
    return this.#read(() => this.parts.agents.agentsNamed(tenant, name));
  }

  agents(...asked: Parameters<RelayStore["agents"]>): Promise<readonly AgentWithPresence[]> {
    return this.#read(() => this.parts.agents.agents(...asked));
  }

  removedAgents(...asked: Parameters<RelayStore["removedAgents"]>): Promise<readonly AgentId[]> {
    return this.#read(() => this.parts.agents.removedAgents(...asked));
  }

  countAgents(tenant: string): Promise<number> {
    return this.#read(() => this.parts.agents.countAgents(tenant));
  }

  countRemoteAgents(tenant: string): Promise<number> {
    return this.#read(() => this.parts.agents.countExternal(tenant));
  }

  agentWithKey(tenant: string, publicKey: string): Promise<AgentId | undefined> {
    return this.#read(() => this.parts.agents.agentWithKey(tenant, publicKey));
  }

  agentCard(tenant: string, id: AgentId): Promise<AgentCard | undefined> {
    return this.#read(() => this.parts.agents.agentCard(tenant, id));
  }

  othersBeforeMs(tenant: string, id: AgentId): Promise<number> {
    return this.#read(() => this.parts.agents.othersBeforeMs(tenant, id));
  }

  publicKeyOf(tenant: string, id: AgentId): Promise<string | undefined> {
    return this.#read(() => this.parts.agents.publicKeyOf(tenant, id));
  }

  custodialKey(tenant: string, publicKey: string): Promise<CustodialKey | undefined> {
    return this.#read(() => this.parts.agents.custodialKey(tenant, publicKey));
  }

  message(tenant: string, id: string): Promise<MessageRecord | undefined> {
    return this.#read(() => this.parts.messages.message(tenant, id));
  }

  sendKey(tenant: string, sender: AgentId, recipient: AgentId, key: string): Promise<SendKey | undefined> {
    return this.#read(() => this.parts.messages.sendKey(tenant, sender, recipient, key));
  }

  thread(query: ThreadQuery): Promise<ThreadPage> {
    return this.#read(() => this.parts.messages.thread(query));
  }

  threads(query: Parameters<MessageStore["threads"]>[0]): ReturnType<MessageStore["threads"]> {
    return this.#read(() => this.parts.threads.threads(query));
  }

  availableMessages(query: MailboxReadQuery): Promise<readonly MailboxMessage[]> {
    return this.#read(() => this.parts.mailboxes.availableMessages(query));
  }

  delivery(tenant: string, messageId: string): Promise<DeliveryRecord | undefined> {
    return this.#read(() => this.parts.mailboxes.delivery(tenant, messageId));
  }

  openDeliveriesOfTask(tenant: string, taskId: string): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.parts.mailboxes.openDeliveriesOfTask(tenant, taskId));
  }

  openDeliveriesOfAgent(tenant: string, agentId: AgentId, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.parts.mailboxes.openDeliveriesOfAgent(tenant, agentId, limit));
  }

  async countOpen(tenant: string, agentId: AgentId): Promise<number> {
    return this.parts.ledger.mailboxes.countOpen(tenant, agentId);
  }

  async oldestMailbox(tenant: string, purpose: DeliveryPurpose, nowMs: number): Promise<AgentId | undefined> {
    return this.parts.ledger.mailboxes.oldestMailbox(tenant, { purpose, nowMs });
  }

  heldWork(after: DeliveryRecord | undefined, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.parts.mailboxes.heldWork(after, limit));
  }

  expiredDeliveries(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.parts.mailboxes.expiredDeliveries(nowMs, limit));
  }

  timedOutLeases(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.parts.mailboxes.timedOutLeases(nowMs, limit));
  }

  queue(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    return this.#read(() => this.parts.queue.queue(filter));
  }

  async countOpenByState(tenant: string, agentId?: AgentId): Promise<ReadonlyMap<DeliveryState, number>> {
    return this.parts.ledger.mailboxes.countOpenByState(tenant, agentId);
  }

  task(tenant: string, id: string): Promise<TaskRecord | undefined> {
    return this.#read(() => this.parts.tasks.task(tenant, id));
  }

  tasks(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    return this.#read(() => this.parts.tasks.tasks(filter));
  }

  tasksWithClientId(
    tenant: string,
    agentId: AgentId | undefined,
    clientId: string,
  ): Promise<readonly TaskRecord[]> {
    return this.#read(() => this.parts.tasks.tasksWithClientId(tenant, agentId, clientId));
  }

  unfinishedWithResultKey(tenant: string, resultKey: string): Promise<TaskRecord | undefined> {
    return this.#read(() => this.parts.tasks.unfinishedWithResultKey(tenant, resultKey));
  }

  cachedResult(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined> {
    return this.#read(() => this.parts.resultCache.cachedResult(tenant, resultKey, nowMs));
  }

  artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]> {
    return this.#read(() => this.parts.tasks.artifacts(tenant, taskId));
  }

  countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#read(() => this.parts.tasks.countArtifacts(tenant, taskIds));
  }

  taskWithArtifacts(tenant: string, id: string): Promise<WholeTask | undefined> {
    return this.#read(() => this.parts.tasks.taskWithArtifacts(tenant, id));
  }

  askedTasks(query: AskedTasksQuery): Promise<AskedTasksPage> {
    return this.#read(() => this.parts.tasks.askedTasks(query));
  }

  taskUpdates(query: TaskUpdatesQuery): Promise<TaskUpdatesPage> {
    return this.#read(() => this.parts.taskUpdates.updates(query));
  }

  lastTaskUpdates(query: LastTaskUpdatesQuery): Promise<TaskUpdatesPage> {
    return this.#read(() => this.parts.taskUpdates.lastUpdates(query));
  }

  overdueTasks(nowMs: number, limit: number): Promise<readonly TaskRecord[]> {
    return this.#read(() => this.parts.tasks.overdueTasks(nowMs, limit));
  }

  events(filter: EventFilter): Promise<EventPage> {
    return this.#read(() => this.parts.journal.events(filter));
  }

  eventsOfMessage(tenant: string, messageId: string): Promise<readonly EventRecord[]> {
    return this.#read(() => this.parts.journal.eventsOfMessage(tenant, messageId));
  }

  async chainHead(tenant: string): Promise<ChainHead> {
    const { seq, hash } = this.parts.journal.chainHead(tenant);
    return { seq, hash };
  }

  chainAnchor(tenant: string): Promise<ChainHead> {
    return this.#read(() => this.parts.journal.chainAnchor(tenant));
  }

  retirableMessages(
    tenant: string,
    settledBeforeMs: number,
    limit: number,
  ): Promise<readonly RetirableMessage[]> {
    return this.#read(() => this.parts.retention.retirableMessages(tenant, settledBeforeMs, limit));
  }

  archiveLines(tenant: string, messageIds: readonly string[]): Promise<readonly RetirableMessage[]> {
    return this.#read(() => this.parts.retention.archiveLines(tenant, messageIds));
  }

  lastEventSeq(tenant: string): Promise<number> {
    return this.#read(() => this.parts.journal.lastEventSeq(tenant));
  }

  retirableEvents(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]> {
    return this.#read(() => this.parts.journal.retirableEvents(tenant, beforeMs, limit));
  }

  pushEndpoint(tenant: string, agentId: AgentId): Promise<PushEndpoint | undefined> {
    return this.#read(() => this.parts.pushes.endpoint(tenant, agentId));
  }

  activePushEndpoints(
    ...asked: Parameters<RelayStore["activePushEndpoints"]>
  ): Promise<readonly PushEndpoint[]> {
    return this.#read(() => this.parts.pushes.activeEndpoints(...asked));
  }

  push(tenant: string, messageId: string): Promise<PushRecord | undefined> {
    return this.#read(() => this.parts.pushes.push(tenant, messageId));
  }

  leftPushEndpoints(...asked: Parameters<RelayStore["leftPushEndpoints"]>): Promise<readonly PushEndpoint[]> {
    return this.#read(() => this.parts.pushes.leftEndpoints(...asked));
  }

  pushAttempts(...asked: Parameters<RelayStore["pushAttempts"]>): Promise<readonly PushAttempt[]> {
    return this.#read(() => this.parts.pushes.attempts(...asked));
  }

  duePushes(...asked: Parameters<RelayStore["duePushes"]>): Promise<readonly PushRecord[]> {
    return this.#read(() => this.parts.pushes.due(...asked));
  }

  pushesOf(filter: PushFilter): Promise<readonly PushRecord[]> {
    return this.#read(() => this.parts.pushes.ofAgent(filter));
  }

  countPendingPushes(tenant: string, agentId: AgentId): Promise<number> {
    return this.#read(() => this.parts.pushes.countPending(tenant, agentId));
  }

  taskPush(...asked: Parameters<RelayStore["taskPush"]>): Promise<TaskPushConfig | undefined> {
    return this.#read(() => this.parts.taskPushes.config(...asked));
  }

  taskPushes(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]> {
    return this.#read(() => this.parts.taskPushes.ofTask(tenant, taskId));
  }

  dueTaskPushes(...asked: Parameters<RelayStore["dueTaskPushes"]>): ReturnType<RelayStore["dueTaskPushes"]> {
    return this.#read(() => this.parts.taskPushes.agenda(...asked));
  }

  remoteTask(tenant: string, taskId: string): ReturnType<RelayStore["remoteTask"]> {
    return this.#read(() => this.parts.remoteTasks.task(tenant, taskId));
  }

  timedRemoteTasks(
    ...asked: Parameters<RelayStore["timedRemoteTasks"]>
  ): ReturnType<RelayStore["timedRemoteTasks"]> {
    return this.#read(() => this.parts.remoteTasks.timed(...asked));
  }

  remoteContextId(...asked: Parameters<RelayStore["remoteContextId"]>): Promise<string | undefined> {
    return this.#read(() => this.parts.remoteTasks.contextId(...asked));
  }

  /** What is known at once is answered in the next turn of the promises and not three later: all requests come here. */
  #read<T>(query: () => T | Promise<T>): Promise<T> {
    if (!this.database.isOpen) {
      return Promise.reject(new RelayError("unavailable", "the store is closed"));
    }
    try {
      const found = query();
      return found instanceof Promise ? found.catch(rethrow) : Promise.resolve(found);
    } catch (error) {
      return Promise.reject(relayErrorFrom(error));
    }
  }
}

function rethrow(error: unknown): never {
  throw relayErrorFrom(error);
}
