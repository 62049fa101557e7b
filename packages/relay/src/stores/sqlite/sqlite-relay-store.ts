import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import type { AccessStore } from "../../core/ports/access.ts";
import type { AgentStore } from "../../core/ports/agents.ts";
import type { MailboxStore } from "../../core/ports/deliveries.ts";
import type { JournalStore } from "../../core/ports/journal.ts";
import type { MessageStore } from "../../core/ports/messages.ts";
import type { PushStore } from "../../core/ports/pushes.ts";
import type { Changes, CommitOutcome, RelayStore } from "../../core/ports/relay-store.ts";
import type { RemoteTaskStore } from "../../core/ports/remote-tasks.ts";
import type { TaskPushStore } from "../../core/ports/task-pushes.ts";
import type { TaskStore } from "../../core/ports/tasks.ts";
import { Access } from "./access.ts";
import { Agents } from "./agents.ts";
import { InProcessChangeFeed } from "./change-feed.ts";
import { Checkpoints } from "./checkpoints.ts";
import { ClashError, CommitQueue, type Engine } from "./commit-queue.ts";
import {
  type DatabaseLock,
  type DatabaseOptions,
  type OpenDatabase,
  openDatabase,
  Statement,
} from "./database.ts";
import { Deliveries } from "./deliveries.ts";
import { DeliveryQueue } from "./delivery-queue.ts";
import { Journal, type RetentionMethod } from "./journal.ts";
import { Messages } from "./messages.ts";
import { Pushes } from "./pushes.ts";
import { RemoteTasks } from "./remote-tasks.ts";
import { RetentionRows } from "./retention.ts";
import { relayErrorFrom } from "./sqlite-error.ts";
import { StoreState } from "./store-state.ts";
import { TaskPushes } from "./task-pushes.ts";
import { Tasks } from "./tasks.ts";

export interface SqliteStoreOptions extends DatabaseOptions {
  /** Pages of the write-ahead log after which a checkpoint does not wait for an idle moment. */
  readonly checkpointPages: number;
  /** The disk failed and its content is unknown: the process must end and start again. */
  readonly onFatal: (error: unknown) => void;
}

const PROBE = `
  insert into probe (only_row, at_ms) values (1, ?) on conflict do update set at_ms = excluded.at_ms`;

/**
 * The default store: one SQLite file, one process, one fsync for all queued writes. Every noun has a part in a file of
 * its name, which implements the port's interface of that noun; `apply` writes a commit. `unavailable`, with a sentence
 * that says what to do, when the file cannot be used.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<RelayStore> {
  const opened = openDatabase(options);
  try {
    return storeOn(new SqliteEngine(opened, options));
  } catch (error) {
    opened.database.close();
    opened.lock?.[Symbol.dispose]();
    throw relayErrorFrom(error);
  }
}

class SqliteEngine implements Engine {
  readonly database: DatabaseSync;
  readonly state: StoreState;
  readonly commits: CommitQueue;
  readonly feed = new InProcessChangeFeed();
  readonly #lock: DatabaseLock | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  #failed = false;

  constructor({ database, lock }: OpenDatabase, options: SqliteStoreOptions) {
    this.database = database;
    this.state = new StoreState(database);
    this.#lock = lock;
    const onFatal = (error: unknown): void => {
      this.#failed = true;
      this.#checkpoints?.stop();
      options.onFatal(error);
    };
    if (lock !== undefined) this.#checkpoints = new Checkpoints(database, { ...options, onFatal });
    this.commits = new CommitQueue(database, this.state, {
      onCommit: (topics) => {
        this.feed.notify(topics);
        this.#checkpoints?.afterCommit();
      },
      onFatal,
    });
  }

  /** Runs the queued writes and leaves one file without a log. After a disk failure it leaves the files alone. */
  async close(lastWrite: Promise<void>): Promise<void> {
    if (!this.database.isOpen || this.#failed) return;
    this.commits.close(new RelayError("unavailable", "the store is closed"));
    await lastWrite;
    this.feed[Symbol.dispose]();
    if (this.#failed || !this.database.isOpen) return;
    this.#checkpoints?.finish();
    this.database.close();
    this.#lock?.[Symbol.dispose]();
  }
}

interface StoreParts {
  readonly access: Access;
  readonly agents: Agents;
  readonly deliveries: Deliveries;
  readonly journal: Journal;
  readonly messages: Messages;
  readonly pushes: Pushes;
  readonly remoteTasks: RemoteTasks;
  readonly taskPushes: TaskPushes;
  readonly tasks: Tasks;
}

function partsOn(engine: Engine): StoreParts {
  const agents = new Agents(engine);
  const messages = new Messages(engine);
  const journal = new Journal(engine);
  return {
    access: new Access(engine, agents),
    agents,
    deliveries: new Deliveries(engine, messages, journal),
    journal,
    messages,
    pushes: new Pushes(engine),
    remoteTasks: new RemoteTasks(engine),
    taskPushes: new TaskPushes(engine),
    tasks: new Tasks(engine),
  };
}

function storeOn(engine: SqliteEngine): RelayStore {
  const parts = partsOn(engine);
  const probe = new Statement(engine.database, PROBE);
  return {
    ...methodsOf<AccessStore>(parts.access),
    ...methodsOf<AgentStore>(parts.agents),
    ...methodsOf<MessageStore>(parts.messages),
    ...methodsOf<Omit<MailboxStore, "queue">>(parts.deliveries),
    ...methodsOf<Pick<MailboxStore, "queue">>(new DeliveryQueue(engine)),
    ...methodsOf<TaskStore>(parts.tasks),
    ...methodsOf<Omit<JournalStore, RetentionMethod>>(parts.journal),
    ...methodsOf<Pick<JournalStore, RetentionMethod>>(new RetentionRows(engine, parts)),
    ...methodsOf<PushStore>(parts.pushes),
    ...methodsOf<RemoteTaskStore>(parts.remoteTasks),
    ...methodsOf<TaskPushStore>(parts.taskPushes),
    feed: engine.feed,
    commit: (changes) => commit(engine, parts, changes),
    probe: async (nowMs) => void (await engine.commits.submit(() => probe.run(nowMs))),
    [Symbol.asyncDispose]: () => engine.close(parts.agents.savePresence()),
  };
}

/** The methods of a part, bound to it: the port is one flat object. */
function methodsOf<Port extends object>(part: Port): Port {
  const { constructor: _, ...own } = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(part) as Port);
  const methods = Object.keys(own).map((name) => [
    name,
    (Reflect.get(part, name) as () => unknown).bind(part),
  ]);
  return Object.fromEntries(methods) as Port;
}

async function commit({ commits }: Engine, parts: StoreParts, changes: Changes): Promise<CommitOutcome> {
  try {
    await commits.submit(() => apply(parts, changes));
    return { committed: true };
  } catch (error) {
    if (error instanceof ClashError) return { committed: false, clash: error.clash };
    throw error;
  }
}

function apply(parts: StoreParts, changes: Changes): void {
  const { access, agents, journal, pushes, remoteTasks, taskPushes, tasks } = parts;
  for (const nonce of changes.nonces ?? []) access.useNonce(changes.tenant, nonce);
  for (const key of changes.keys ?? []) access.putKey(key);
  for (const tenant of changes.tenants ?? []) access.putTenant(tenant);
  for (const capability of changes.capabilities ?? []) access.putCapability(capability);
  for (const key of changes.custodialKeys ?? []) agents.putCustodialKey(key);
  for (const agent of changes.agents ?? []) agents.put(agent);
  for (const { agentId } of changes.room ?? []) agents.assertPresent(changes.tenant, agentId);
  const acceptances = journal.acceptances(changes);
  applyMessages(parts, changes, acceptances);
  for (const task of changes.tasks ?? []) tasks.put(task);
  for (const artifact of changes.artifacts ?? []) tasks.putArtifact(artifact);
  for (const update of changes.taskUpdates ?? []) {
    tasks.addUpdate(update);
    taskPushes.makeDue(update);
  }
  for (const result of changes.cachedResults ?? []) tasks.putCachedResult(result);
  for (const endpoint of changes.pushEndpoints ?? []) pushes.putEndpoint(endpoint, "wake");
  for (const endpoint of changes.pushProgress ?? []) pushes.putEndpoint(endpoint, "quiet");
  for (const push of changes.pushes ?? []) pushes.put(push);
  for (const attempt of changes.pushAttempts ?? []) pushes.addAttempt(attempt);
  for (const task of changes.remoteTasks ?? []) remoteTasks.put(task);
  for (const key of changes.forgottenTaskPushes ?? []) taskPushes.remove(key);
  for (const config of changes.taskPushes ?? []) taskPushes.put(config);
  journal.append(changes.tenant, changes.events, acceptances);
}

function applyMessages(
  { deliveries, messages }: StoreParts,
  changes: Changes,
  acceptances: ReadonlyMap<string, number>,
): void {
  const sendKeys = Map.groupBy(changes.sendKeys ?? [], ({ messageId }) => messageId);
  for (const sendKey of changes.sendKeys ?? []) messages.insertSendKey(sendKey);
  const refs = new Map<string, number>();
  for (const message of changes.messages ?? []) {
    const { id } = message;
    refs.set(id, messages.insert(message, sendKeys.get(id) ?? [], acceptances.get(id)));
  }
  const openMax = new Map(changes.room?.map((room) => [room.agentId, room.openMax]));
  for (const delivery of changes.deliveries ?? []) {
    deliveries.put(delivery, refs.get(delivery.messageId), openMax.get(delivery.agentId));
  }
}
