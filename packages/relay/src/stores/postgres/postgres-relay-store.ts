import { RelayError } from "@a2a-relay/protocol";
import type { Changes, CommitOutcome, RelayStore } from "../../core/ports/relay-store.ts";
import { Capabilities, Keys, Tenants } from "./access.ts";
import { Agents } from "./agents.ts";
import { ListeningChangeFeed } from "./change-feed.ts";
import { Claims } from "./claims.ts";
import { CommitQueue } from "./commit-queue.ts";
import { Database, databaseName, type PostgresOptions, type Transaction } from "./database.ts";
import { Deliveries } from "./deliveries.ts";
import { Journal } from "./journal.ts";
import { Messages } from "./messages.ts";
import { Endpoints, Pushes } from "./pushes.ts";
import { RemoteTasks } from "./remote-tasks.ts";
import { RetentionRows } from "./retention.ts";
import { Sweeps } from "./sweeps.ts";
import { TaskPushes } from "./task-pushes.ts";
import { Tasks } from "./tasks.ts";

const PROBE = `
  insert into probe (only_row, at_ms) values (1, $1) on conflict (only_row) do update set at_ms = excluded.at_ms`;
/** A relay whose database takes longer to answer is not ready. */
const PROBE_MS_MAX = 5_000;

/** What every part of the store works on. */
export interface Engine {
  readonly database: Database;
  readonly commits: CommitQueue;
}

interface StoreParts {
  readonly agents: Agents;
  readonly capabilities: Capabilities;
  readonly claims: Claims;
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

export interface PostgresStore extends RelayStore {
  /** By the clock of the database. */
  nowMs(): number;
  /** What a relay says about its database when it starts: `host/name`, and how many relays were on it already. */
  readonly database: {
    readonly name: string;
    readonly schemaVersion: number;
    readonly otherRelays: number;
  };
}

/** A handle that is closed refuses every act. */
const CLOSED = new Proxy(refuse, { get: () => refuse });

async function refuse(): Promise<never> {
  throw new RelayError("unavailable", "the store is closed");
}

/** The store that several relays share: one PostgreSQL database. Every noun has a part in a file of its name. */
export async function openPostgresStore(options: PostgresOptions): Promise<PostgresStore> {
  const database = await Database.open(options);
  const feed = await ListeningChangeFeed.open(options, database).catch(async (reason: unknown) => {
    await database[Symbol.asyncDispose]();
    throw reason;
  });
  const commits: CommitQueue = new CommitQueue(database, {
    apply: (transaction, all) => apply(parts, transaction, all),
    onCommit: (topics) => feed.notify(topics),
  });
  const parts = partsOn({ database, commits });
  const probeLimits = { query_timeout: Math.min(PROBE_MS_MAX, options.answerTimeoutMs ?? PROBE_MS_MAX) };
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await commits.close();
    await feed.close();
    await database[Symbol.asyncDispose]();
  };
  const store: PostgresStore = {
    ...parts,
    feed,
    nowMs: database.clock.nowMs,
    database: {
      name: databaseName(options.url),
      schemaVersion: database.schemaVersion,
      otherRelays: await feed.otherRelays(),
    },
    commit: (changes) => commit(commits, changes),
    probe: async (nowMs) => void (await database.rows(PROBE, [nowMs], probeLimits)),
    [Symbol.asyncDispose]: () => {
      for (const name of [...Object.keys(parts), "commit", "probe"]) Object.assign(store, { [name]: CLOSED });
      return (closed ??= close());
    },
  };
  return store;
}

function partsOn(engine: Engine): StoreParts {
  const messages = new Messages(engine);
  const journal = new Journal(engine);
  const deliveries = new Deliveries(engine, journal);
  const tasks = new Tasks(engine);
  const keys = new Keys(engine);
  return {
    agents: new Agents(engine),
    capabilities: new Capabilities(engine),
    claims: new Claims(engine.database),
    deliveries,
    endpoints: new Endpoints(engine),
    journal,
    keys,
    messages,
    pushes: new Pushes(engine),
    remoteTasks: new RemoteTasks(engine),
    retention: new RetentionRows(engine, { deliveries, journal, keys, messages, tasks }),
    sweeps: new Sweeps(engine),
    taskPushes: new TaskPushes(engine),
    tasks,
    tenants: new Tenants(engine),
  };
}

async function commit(commits: CommitQueue, changes: Changes): Promise<CommitOutcome> {
  const outcome = await commits.attempt(async () => undefined, changes);
  return outcome.committed ? { committed: true } : outcome;
}

/** Writes the changes of several callers, each list in one statement. Mailboxes are locked as late as possible. */
async function apply(parts: StoreParts, transaction: Transaction, all: readonly Changes[]): Promise<void> {
  const listOf = <Name extends keyof Changes>(name: Name): NonNullable<Changes[Name]> =>
    all.flatMap((changes) => (changes[name] ?? []) as readonly unknown[]) as unknown as NonNullable<
      Changes[Name]
    >;
  await parts.claims.assertHeld(transaction, listOf("claims"));
  await parts.keys.useNonces(transaction, all);
  await parts.keys.putAll(transaction, listOf("keys"));
  await parts.tenants.putAll(transaction, listOf("tenants"));
  await parts.capabilities.putAll(transaction, listOf("capabilities"));
  await parts.agents.putCustodialKeys(transaction, listOf("custodialKeys"));
  await parts.agents.putAll(transaction, listOf("agents"));
  await parts.agents.assertPresent(transaction, all);
  await parts.messages.insertSendKeys(transaction, listOf("sendKeys"));
  await parts.messages.insertAll(transaction, listOf("messages"));
  await parts.tasks.putAll(transaction, listOf("tasks"));
  await parts.tasks.putArtifacts(transaction, listOf("artifacts"));
  await parts.tasks.addUpdates(transaction, listOf("taskUpdates"));
  await parts.taskPushes.makeDue(transaction, all);
  await parts.tasks.putCachedResults(transaction, listOf("cachedResults"));
  await parts.endpoints.putAll(transaction, listOf("pushEndpoints"), "wake");
  await parts.endpoints.putAll(transaction, listOf("pushProgress"), "quiet");
  await parts.pushes.putAll(transaction, listOf("pushes"));
  await parts.pushes.addAttempts(transaction, listOf("pushAttempts"));
  await parts.remoteTasks.putAll(transaction, listOf("remoteTasks"));
  await parts.taskPushes.removeAll(transaction, listOf("forgottenTaskPushes"));
  await parts.taskPushes.putAll(transaction, listOf("taskPushes"));
  await parts.journal.putAnchors(transaction, listOf("anchors"));
  await parts.deliveries.putAll(transaction, all);
  await parts.journal.append(transaction, all);
}
