import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import type { Changes, CommitOutcome, RelayStore } from "../../core/ports/relay-store.ts";
import { InProcessChangeFeed } from "../in-process/change-feed.ts";
import { InProcessClaims } from "../in-process/claims.ts";
import { Capabilities, Keys, Tenants } from "./access.ts";
import { Agents } from "./agents.ts";
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
import { Journal } from "./journal.ts";
import { Messages } from "./messages.ts";
import { Endpoints, Pushes } from "./pushes.ts";
import { RemoteTasks } from "./remote-tasks.ts";
import { RetentionRows } from "./retention.ts";
import { relayErrorFrom } from "./sqlite-error.ts";
import { StoreState } from "./store-state.ts";
import { Sweeps } from "./sweeps.ts";
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
  const newHandle = await openSqliteHandles(options);
  return newHandle();
}

/**
 * Opens a database for several handles, as several relays have: each call of the answer makes one more. Closing the
 * last of them closes the database.
 */
export async function openSqliteHandles(options: SqliteStoreOptions): Promise<() => RelayStore> {
  const opened = openDatabase(options);
  const engine = orClose(opened, () => new SqliteEngine(opened, options));
  return () => orClose(opened, () => storeOn(engine));
}

function orClose<T>({ database, lock }: OpenDatabase, make: () => T): T {
  try {
    return make();
  } catch (error) {
    database.close();
    lock?.[Symbol.dispose]();
    throw relayErrorFrom(error);
  }
}

class SqliteEngine implements Engine {
  readonly database: DatabaseSync;
  readonly state: StoreState;
  readonly commits: CommitQueue;
  readonly feed = new InProcessChangeFeed();
  readonly claims = new InProcessClaims();
  readonly #lock: DatabaseLock | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  #handles = 0;
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

  addHandle(): void {
    this.#handles += 1;
  }

  /**
   * Called once for each handle; the last call runs the queued writes and leaves one file without a log. After a disk
   * failure it leaves the files alone.
   */
  async close(lastWrite: Promise<void>): Promise<void> {
    this.#handles -= 1;
    if (this.#handles > 0) return lastWrite;
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
  readonly agents: Agents;
  readonly capabilities: Capabilities;
  readonly claims: InProcessClaims;
  readonly deliveries: Deliveries;
  readonly endpoints: Endpoints;
  readonly journal: Journal;
  readonly keys: Keys;
  readonly messages: Messages;
  readonly pushes: Pushes;
  readonly remoteTasks: RemoteTasks;
  readonly retention: RetentionRows;
  readonly sweeps: Sweeps;
  readonly taskPushes: TaskPushes;
  readonly tasks: Tasks;
  readonly tenants: Tenants;
}

/** A handle that is closed refuses every act, also while another one keeps the database open. */
const CLOSED = new Proxy(refuse, { get: () => refuse });

async function refuse(): Promise<never> {
  throw new RelayError("unavailable", "the store is closed");
}

/** Everything a handle has for itself: statements, but no state. The engine holds what handles share. */
function partsOn(engine: SqliteEngine): StoreParts {
  const agents = new Agents(engine);
  const messages = new Messages(engine);
  const journal = new Journal(engine);
  const parts = {
    agents,
    capabilities: new Capabilities(engine, agents),
    claims: engine.claims,
    deliveries: new Deliveries(engine, { messages, journal, apply: (changes) => apply(all, changes) }),
    endpoints: new Endpoints(engine),
    journal,
    keys: new Keys(engine),
    messages,
    pushes: new Pushes(engine),
    remoteTasks: new RemoteTasks(engine),
    taskPushes: new TaskPushes(engine),
    tasks: new Tasks(engine),
    tenants: new Tenants(engine),
  };
  const all: StoreParts = {
    ...parts,
    retention: new RetentionRows(engine, parts),
    sweeps: new Sweeps(parts),
  };
  return all;
}

function storeOn(engine: SqliteEngine): RelayStore {
  const parts = partsOn(engine);
  engine.addHandle();
  const probe = new Statement(engine.database, PROBE);
  let closed: Promise<void> | undefined;
  const store: RelayStore = {
    ...parts,
    feed: engine.feed,
    commit: (changes) => commit(engine, parts, changes),
    probe: async (nowMs) => void (await engine.commits.submit(() => probe.run(nowMs))),
    [Symbol.asyncDispose]: () => {
      for (const name of [...Object.keys(parts), "commit", "probe"]) Object.assign(store, { [name]: CLOSED });
      return (closed ??= engine.close(parts.agents.savePresence()));
    },
  };
  return store;
}

async function commit({ commits }: Engine, parts: StoreParts, changes: Changes): Promise<CommitOutcome> {
  const outcome = await commits.attempt(() => apply(parts, changes));
  return outcome.committed ? { committed: true } : outcome;
}

function apply(parts: StoreParts, changes: Changes): void {
  const { agents, endpoints, journal, keys, pushes, taskPushes, tasks } = parts;
  if (changes.claims?.every((claim) => parts.claims.isHeld(claim)) === false) throw new ClashError("claim");
  for (const nonce of changes.nonces ?? []) keys.useNonce(changes.tenant, nonce);
  for (const key of changes.keys ?? []) keys.put(key);
  for (const tenant of changes.tenants ?? []) parts.tenants.put(tenant);
  for (const capability of changes.capabilities ?? []) parts.capabilities.put(capability);
  for (const key of changes.custodialKeys ?? []) agents.putCustodialKey(key);
  for (const agent of changes.agents ?? []) agents.put(agent);
  for (const { agentId } of changes.room ?? []) agents.assertPresent(changes.tenant, agentId);
  const acceptances = journal.acceptances(changes);
  applyMessages(parts, changes, acceptances);
  for (const task of changes.tasks ?? []) tasks.put(task);
  for (const artifact of changes.artifacts ?? []) tasks.putArtifact(artifact);
  for (const update of changes.taskUpdates ?? []) tasks.addUpdate(update);
  for (const due of changes.duePushes ?? []) taskPushes.makeDue(changes.tenant, due);
  for (const result of changes.cachedResults ?? []) tasks.putCachedResult(result);
  for (const endpoint of changes.pushEndpoints ?? []) endpoints.put(endpoint, "wake");
  for (const endpoint of changes.pushProgress ?? []) endpoints.put(endpoint, "quiet");
  for (const push of changes.pushes ?? []) pushes.put(push);
  for (const attempt of changes.pushAttempts ?? []) pushes.addAttempt(attempt);
  for (const task of changes.remoteTasks ?? []) parts.remoteTasks.put(task);
  for (const key of changes.forgottenTaskPushes ?? []) taskPushes.remove(key);
  for (const config of changes.taskPushes ?? []) taskPushes.put(config);
  for (const anchor of changes.anchors ?? []) journal.putAnchor(anchor);
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
