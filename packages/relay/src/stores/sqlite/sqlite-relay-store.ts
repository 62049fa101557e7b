import type { DatabaseSync } from "node:sqlite";
import { type AgentId, type Artifact, type DeliveryState, RelayError } from "@a2a-relay/protocol";
import type { AgentWithPresence } from "../../core/agents/agent-record.ts";
import type { ChangeFeed } from "../../core/environment/change-feed.ts";
import type { Changes, CommitOutcome, RelayStore } from "../../core/environment/relay-store.ts";
import type { ChainHead, EventDraft, EventRecord } from "../../core/journal/event.ts";
import type { EventFilter, EventPage, RetiredMail } from "../../core/journal/journal-store.ts";
import type { DeliveryRecord } from "../../core/mailboxes/delivery-record.ts";
import type {
  Mail,
  MailboxLeaseQuery,
  MailboxReadQuery,
  QueuedMail,
  QueueFilter,
} from "../../core/mailboxes/mailbox-store.ts";
import type { MessageRecord, SendKey } from "../../core/messages/message-record.ts";
import type { MessageStore, ThreadPage, ThreadQuery } from "../../core/messages/message-store.ts";
import type { TaskRecord } from "../../core/tasks/task-record.ts";
import type { TaskFilter } from "../../core/tasks/task-store.ts";
import { Agents } from "./agents.ts";
import { InProcessChangeFeed } from "./change-feed.ts";
import { Checkpoints } from "./checkpoints.ts";
import { ClashError } from "./clash.ts";
import { CommitQueue } from "./commit-queue.ts";
import {
  type DatabaseOptions,
  type OpenDatabase,
  openDatabase,
  prepare,
  type Statement,
} from "./database.ts";
import type { DatabaseLock } from "./database-lock.ts";
import { DeliveryQueue } from "./delivery-queue.ts";
import { Journal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { Mailboxes } from "./mailboxes.ts";
import { Messages } from "./messages.ts";
import { Retention } from "./retention.ts";
import { relayErrorFrom } from "./sqlite-error.ts";
import { Tasks } from "./tasks.ts";
import { Threads } from "./threads.ts";

export interface SqliteRelayStoreOptions extends DatabaseOptions {
  /** Pages of the write-ahead log after which a checkpoint does not wait for an idle moment. */
  readonly checkpointPages: number;
  /** The disk failed and nobody knows what is on it: the process must end and start anew. */
  readonly onFatal: (error: unknown) => void;
}

/** Presence reaches the disk at most this much later than it was reported, and always on a normal stop. */
const PRESENCE_DELAY_MS = 1_000;
/** Send keys forgotten in one commit. */
const FORGOTTEN_KEYS_MAX = 1_000;

const PROBE = `
  insert into probe (only_row, at_ms) values (1, ?) on conflict do update set at_ms = excluded.at_ms`;

/** The default store: one SQLite file, one process, and one fsync for everything that waits in a turn. */
export class SqliteRelayStore implements RelayStore {
  readonly #database: DatabaseSync;
  readonly #lock: DatabaseLock | undefined;
  readonly #feed = new InProcessChangeFeed();
  readonly #ledger: Ledger;
  readonly #commits: CommitQueue;
  readonly #checkpoints: Checkpoints | undefined;
  readonly #agents: Agents;
  readonly #messages: Messages;
  readonly #threads: Threads;
  readonly #mailboxes: Mailboxes;
  readonly #queue: DeliveryQueue;
  readonly #tasks: Tasks;
  readonly #journal: Journal;
  readonly #retention: Retention;
  readonly #probe: Statement;
  #presenceTimer: NodeJS.Timeout | undefined;
  #failed = false;

  private constructor({ database, lock }: OpenDatabase, options: SqliteRelayStoreOptions) {
    this.#database = database;
    this.#lock = lock;
    this.#ledger = new Ledger(database);
    this.#agents = new Agents(database);
    this.#messages = new Messages(database, this.#ledger);
    this.#threads = new Threads(database);
    this.#journal = new Journal(database, this.#ledger);
    this.#mailboxes = new Mailboxes(database, this.#ledger, this.#messages, this.#journal);
    this.#queue = new DeliveryQueue(database, this.#ledger);
    this.#tasks = new Tasks(database);
    this.#retention = new Retention(database, {
      messages: this.#messages,
      mailboxes: this.#mailboxes,
      tasks: this.#tasks,
    });
    this.#probe = prepare(database, PROBE);
    const onFatal = (error: unknown): void => {
      this.#failed = true;
      options.onFatal(error);
    };
    if (lock !== undefined) this.#checkpoints = new Checkpoints(database, { ...options, onFatal });
    this.#commits = new CommitQueue(database, this.#ledger, {
      onCommit: (topics) => {
        this.#feed.notify(topics);
        this.#checkpoints?.afterCommit();
      },
      onFatal,
    });
  }

  /** `unavailable`, with a sentence that says what to do, when the file cannot be used. */
  static async open(options: SqliteRelayStoreOptions): Promise<SqliteRelayStore> {
    const opened = openDatabase(options);
    try {
      return new SqliteRelayStore(opened, options);
    } catch (error) {
      opened.database.close();
      opened.lock?.[Symbol.dispose]();
      throw relayErrorFrom(error);
    }
  }

  get feed(): ChangeFeed {
    return this.#feed;
  }

  async commit(changes: Changes): Promise<CommitOutcome> {
    try {
      await this.#write(() => this.#apply(changes));
      return { committed: true };
    } catch (error) {
      if (error instanceof ClashError) return { committed: false, clash: error.clash };
      throw error;
    }
  }

  async probe(nowMs: number): Promise<void> {
    await this.#write(() => this.#probe.run(nowMs));
  }

  async agent(tenant: string, id: AgentId): Promise<AgentWithPresence | undefined> {
    return this.#read(() => this.#agents.agent(tenant, id));
  }

  async agentsNamed(tenant: string, name: string): Promise<readonly AgentId[]> {
    return this.#read(() => this.#agents.agentsNamed(tenant, name));
  }

  async agents(...asked: Parameters<RelayStore["agents"]>): Promise<readonly AgentWithPresence[]> {
    return this.#read(() => this.#agents.agents(...asked));
  }

  async removedAgents(...asked: Parameters<RelayStore["removedAgents"]>): Promise<readonly AgentId[]> {
    return this.#read(() => this.#agents.removedAgents(...asked));
  }

  async countAgents(tenant: string): Promise<number> {
    return this.#read(() => this.#agents.countAgents(tenant));
  }

  async touchAgent(tenant: string, id: AgentId, seenAtMs: number): Promise<void> {
    this.#agents.touch(tenant, id, seenAtMs);
    this.#presenceTimer ??= setTimeout(() => {
      this.#presenceTimer = undefined;
      // A sighting that could not be written stays in memory and goes with the next.
      this.#savePresence().catch(() => undefined);
    }, PRESENCE_DELAY_MS).unref();
  }

  async message(tenant: string, id: string): Promise<MessageRecord | undefined> {
    return this.#read(() => this.#messages.message(tenant, id));
  }

  async sendKey(
    tenant: string,
    sender: AgentId,
    recipient: AgentId,
    key: string,
  ): Promise<SendKey | undefined> {
    return this.#read(() => this.#messages.sendKey(tenant, sender, recipient, key));
  }

  async thread(query: ThreadQuery): Promise<ThreadPage> {
    return this.#read(() => this.#messages.thread(query));
  }

  async threads(query: Parameters<MessageStore["threads"]>[0]): ReturnType<MessageStore["threads"]> {
    return this.#read(() => this.#threads.threads(query));
  }

  async availableMail(query: MailboxReadQuery): Promise<readonly Mail[]> {
    return this.#read(() => this.#mailboxes.availableMail(query));
  }

  async markDelivered(
    tenant: string,
    messageIds: readonly string[],
    deliveredAtMs: number,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<void> {
    if (messageIds.length === 0) return;
    await this.#write(() => this.#mailboxes.markDelivered(tenant, messageIds, deliveredAtMs, event));
  }

  /** A mailbox that is empty and stays so in this turn is answered without a transaction. */
  async lease(
    query: MailboxLeaseQuery,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<readonly Mail[]> {
    const isEmpty = this.#ledger.mailboxes.countAvailable(query.tenant, query.agentId) === 0;
    if (isEmpty && this.#commits.isIdle) return [];
    return this.#write(() => this.#mailboxes.lease(query, event));
  }

  async renewLeases(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>> {
    return this.#write(() => this.#mailboxes.renewLeases(tenant, agentId, leases, leaseExpiresAtMs));
  }

  async delivery(tenant: string, messageId: string): Promise<DeliveryRecord | undefined> {
    return this.#read(() => this.#mailboxes.delivery(tenant, messageId));
  }

  async openDeliveriesOfTask(tenant: string, taskId: string): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.#mailboxes.openDeliveriesOfTask(tenant, taskId));
  }

  async openDeliveriesOfAgent(
    tenant: string,
    agentId: AgentId,
    limit: number,
  ): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.#mailboxes.openDeliveriesOfAgent(tenant, agentId, limit));
  }

  async countOpen(tenant: string, agentId: AgentId): Promise<number> {
    return this.#ledger.mailboxes.countOpen(tenant, agentId);
  }

  async expiredDeliveries(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.#mailboxes.expiredDeliveries(nowMs, limit));
  }

  async timedOutLeases(nowMs: number, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.#mailboxes.timedOutLeases(nowMs, limit));
  }

  async queue(filter: QueueFilter): Promise<readonly QueuedMail[]> {
    return this.#read(() => this.#queue.queue(filter));
  }

  async leasedMail(tenant: string, limit: number): Promise<readonly DeliveryRecord[]> {
    return this.#read(() => this.#mailboxes.leasedMail(tenant, limit));
  }

  async countOpenByState(tenant: string): Promise<ReadonlyMap<DeliveryState, number>> {
    return this.#ledger.mailboxes.countOpenByState(tenant);
  }

  async task(tenant: string, id: string): Promise<TaskRecord | undefined> {
    return this.#read(() => this.#tasks.task(tenant, id));
  }

  async tasks(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    return this.#read(() => this.#tasks.tasks(filter));
  }

  async artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]> {
    return this.#read(() => this.#tasks.artifacts(tenant, taskId));
  }

  async countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#read(() => this.#tasks.countArtifacts(tenant, taskIds));
  }

  async overdueTasks(nowMs: number, limit: number): Promise<readonly TaskRecord[]> {
    return this.#read(() => this.#tasks.overdueTasks(nowMs, limit));
  }

  async events(filter: EventFilter): Promise<EventPage> {
    return this.#read(() => this.#journal.events(filter));
  }

  async eventsOfMessage(tenant: string, messageId: string): Promise<readonly EventRecord[]> {
    return this.#read(() => this.#journal.eventsOfMessage(tenant, messageId));
  }

  async chainHead(tenant: string): Promise<ChainHead> {
    const { seq, hash } = this.#journal.chainHead(tenant);
    return { seq, hash };
  }

  async chainAnchor(tenant: string): Promise<ChainHead> {
    return this.#read(() => this.#journal.chainAnchor(tenant));
  }

  async retirableMail(
    tenant: string,
    settledBeforeMs: number,
    limit: number,
  ): Promise<readonly RetiredMail[]> {
    return this.#read(() => this.#retention.retirableMail(tenant, settledBeforeMs, limit));
  }

  async retireMail(
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
    event?: EventDraft,
  ): Promise<void> {
    await this.#write(() => {
      this.#retention.retireMail(tenant, messageIds, nowMs);
      if (event !== undefined) this.#journal.append(tenant, event);
    });
  }

  async lastEventSeq(tenant: string): Promise<number> {
    return this.#read(() => this.#journal.lastEventSeq(tenant));
  }

  async retirableEvents(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]> {
    return this.#read(() => this.#journal.retirableEvents(tenant, beforeMs, limit));
  }

  async retireEvents(tenant: string, anchor: ChainHead): Promise<void> {
    await this.#write(() => this.#journal.retireEvents(tenant, anchor));
  }

  /** In several commits, so that a long list of old keys holds nobody up. */
  async forgetSendKeys(goneBeforeMs: number): Promise<number> {
    for (let forgotten = 0; ;) {
      const count = await this.#write(() => this.#retention.forgetSendKeys(goneBeforeMs, FORGOTTEN_KEYS_MAX));
      forgotten += count;
      if (count < FORGOTTEN_KEYS_MAX) return forgotten;
    }
  }

  /** Finishes what waits and leaves one tidy file. After a disk failure it leaves the file alone. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#presenceTimer);
    if (!this.#database.isOpen || this.#failed) return;
    const presence = this.#savePresence().catch(() => undefined);
    this.#commits.close(new RelayError("unavailable", "the store is closed"));
    await presence;
    this.#feed[Symbol.dispose]();
    if (this.#failed || !this.#database.isOpen) return;
    this.#checkpoints?.finish();
    this.#database.close();
    this.#lock?.[Symbol.dispose]();
  }

  #apply(changes: Changes): void {
    const {
      agents = [],
      messages = [],
      sendKeys = [],
      deliveries = [],
      tasks = [],
      artifacts = [],
    } = changes;
    for (const agent of agents) this.#agents.put(agent);
    for (const { agentId } of changes.room ?? []) this.#agents.assertPresent(changes.tenant, agentId);
    for (const sendKey of sendKeys) this.#messages.insertSendKey(sendKey);
    const refs = this.#messages.insertAll(messages, sendKeys);
    const openMax = new Map(changes.room?.map((room) => [room.agentId, room.openMax]));
    for (const delivery of deliveries) {
      this.#mailboxes.assertRoom(delivery, openMax.get(delivery.agentId));
      this.#mailboxes.put(delivery, refs.get(delivery.messageId));
    }
    for (const task of tasks) this.#tasks.put(task);
    for (const artifact of artifacts) this.#tasks.putArtifact(artifact);
    for (const event of changes.events) this.#journal.append(changes.tenant, event);
  }

  async #savePresence(): Promise<void> {
    this.#agents.forgetSightings(await this.#write(() => this.#agents.savePresence()));
  }

  async #read<T>(query: () => T | Promise<T>): Promise<T> {
    if (!this.#database.isOpen) throw new RelayError("unavailable", "the store is closed");
    try {
      return await query();
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  async #write<T>(job: () => T): Promise<T> {
    try {
      return await this.#commits.submit(job);
    } catch (error) {
      if (error instanceof ClashError) throw error;
      throw relayErrorFrom(error);
    }
  }
}
