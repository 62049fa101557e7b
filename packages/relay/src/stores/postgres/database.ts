import { randomUUID } from "node:crypto";
import { RelayError } from "@a2a-relay/protocol";
import type { Client, ClientConfig, CustomTypesConfig, Pool, PoolClient, QueryResult } from "pg";
import type { Topic } from "../../core/ports/change-feed.ts";
import { DatabaseClock } from "./connections/database-clock.ts";
import { migrate, refusePartOfImport } from "./migrations/migrations.ts";
import {
  CommitUnknownError,
  isLost,
  isFollowUp,
  isStalePlan,
  relayErrorFrom,
} from "./connections/postgres-error.ts";
import { beginAs, prepareTenantRole } from "./connections/row-security.ts";

export type Row = Readonly<Record<string, unknown>>;

/** How to connect. Without a timeout the server's own one counts. */
export interface ConnectionOptions {
  readonly url: string;
  /** The schema of all tables. Created when it does not exist. */
  readonly schema: string;
  /** A file with the certificate of the authority that the server's certificate must come from. */
  readonly caFile?: string | undefined;
  readonly statementTimeoutMs?: number;
  readonly lockTimeoutMs?: number;
  /** Without an answer for so long the connection is taken for dead. Without it the operating system decides. */
  readonly answerTimeoutMs?: number | undefined;
  /** How often the relay proves that wake-ups reach it. Only tests change it. */
  readonly checkMs?: number;
}

export interface PostgresOptions extends ConnectionOptions {
  /** Connections for reads; writes have one more. */
  readonly poolMax: number;
  /** Whether pending migrations run. In an empty database they always run. */
  readonly migrate?: boolean;
  /** Whether the database itself keeps tenants apart: see row-security.ts. */
  readonly isRowSecured?: boolean;
  /** The clock of this machine. Only tests change it. */
  readonly localMs?: () => number;
  /** Whether this is the import itself: all others refuse a database with a part of one. */
  readonly isImport?: boolean | undefined;
}

/** In the words of the driver; without it the connection's own limit counts. */
interface StatementLimits {
  readonly query_timeout?: number;
}

const PING = "select pg_notify($1, $2), (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms";
const INT8 = 20;
/** Until a connection is made, or one of the pool is free. */
const CONNECT_MS_MAX = 10_000;
/** A connection without traffic is probed by the operating system. */
const KEEPALIVE_MS = 10_000;
/** A relay that is cut off inside a transaction holds its locks no longer than this. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000;

/**
 * Index scans only: without statistics the planner would read whole tables for the few rows of a batch. Statements
 * keep their plan, whatever the values.
 */
const PLANNER = ["hashjoin", "mergejoin", "bitmapscan", "seqscan"]
  .map((plan) => `-c enable_${plan}=off`)
  .concat("-c plan_cache_mode=force_generic_plan")
  .join(" ");

/** Reads of one tenant, or of all. */
export interface Reader {
  rows(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  row(sql: string, values?: readonly unknown[]): Promise<Row | undefined>;
}

/** The connections of one relay. */
export class Database implements Reader, AsyncDisposable {
  readonly pool: Pool;
  readonly schema: string;
  readonly schemaVersion: number;
  readonly isRowSecured: boolean;
  readonly clock: DatabaseClock;
  #id = randomUUID();

  private constructor(pool: Pool, options: PostgresOptions, schemaVersion: number) {
    this.pool = pool;
    this.schema = options.schema;
    this.schemaVersion = schemaVersion;
    this.isRowSecured = options.isRowSecured ?? false;
    this.clock = new DatabaseClock(options.localMs ?? Date.now);
  }

  static async open(options: PostgresOptions): Promise<Database> {
    const { schema, poolMax: max } = options;
    const when = options.migrate === true ? "always" : "empty";
    const { knownVersion } = await withConnection(options, async (client) => {
      const status = await migrate(client, schema, when);
      if (options.isRowSecured === true) await prepareTenantRole(client);
      if (options.isImport !== true) await refusePartOfImport(client);
      return status;
    });
    const pg = await loadPg();
    const pool = new pg.Pool({
      ...clientConfig(options),
      max,
      types: numberTypes(pg.types),
      verify: refuseStandby,
      // A connection that is open at this end only must not keep a stopped relay alive.
      allowExitOnIdle: true,
    });
    // A connection that breaks while it is idle is replaced by the pool.
    pool.on("error", () => undefined);
    // One that breaks in a transaction fails its next statement. Without a listener it would end the process.
    pool.on("connect", (client) => client.on("error", () => undefined));
    return new Database(pool, options, knownVersion);
  }

  /** Tells the wake-ups of this relay, whose readers it has woken itself, from those of others. */
  get id(): string {
    return this.#id;
  }

  async rows(
    sql: string,
    values: readonly unknown[] = [],
    limits: StatementLimits = {},
  ): Promise<readonly Row[]> {
    try {
      const { rows } = await withFreshPlans(() => this.pool.query({ ...namedQuery(sql, values), ...limits }));
      return rows as readonly Row[];
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  async row(
    sql: string,
    values: readonly unknown[] = [],
    limits: StatementLimits = {},
  ): Promise<Row | undefined> {
    return (await this.rows(sql, values, limits))[0];
  }

  /** With row-level security the database shows it nothing of other tenants, whatever the statement says. */
  ofTenant(tenant: string): Reader {
    if (!this.isRowSecured) return this;
    const rows: Reader["rows"] = async (sql, values) => {
      try {
        return await this.transaction((transaction) => transaction.rows(sql, values), tenant);
      } catch (error) {
        throw relayErrorFrom(error);
      }
    };
    return { rows, row: async (sql, values) => (await rows(sql, values))[0] };
  }

  /** On which the relays of this schema tell each other what they commit. */
  get channel(): string {
    return `a2a_relay_${this.schema}`;
  }

  /** Notifies all listeners of the channel, and asks for the time at once. */
  async ping(payload: string, timeoutMs: number): Promise<void> {
    await this.clock.adjust(async () => {
      const row = await this.row(PING, [this.channel, payload], { query_timeout: timeoutMs });
      return row?.["now_ms"] as number;
    });
  }

  /**
   * Of one tenant, or of several (undefined). `CommitUnknownError` when only the server knows whether it committed.
   * After any other error it did not.
   */
  transaction<T>(act: (transaction: Transaction) => Promise<T>, tenant?: string): Promise<T> {
    return withFreshPlans(() => this.#attempt(act, tenant));
  }

  async #attempt<T>(act: (transaction: Transaction) => Promise<T>, tenant: string | undefined): Promise<T> {
    const client = await this.pool.connect();
    const transaction = new Transaction(client, this);
    let isCommitSent = false;
    let broken: Error | undefined;
    try {
      const begin = tenant !== undefined && this.isRowSecured ? beginAs(tenant) : "begin";
      // The first statements do not wait for its answer.
      const [, value] = await allOf([client.query(begin), act(transaction)]);
      isCommitSent = true;
      // The commit of a failed transaction succeeds as a rollback.
      const [, { command }] = await allOf([transaction.notify(), client.query("commit")]);
      if (command !== "COMMIT") throw new RelayError("unavailable", "the database rolled the write back");
      return value;
    } catch (error) {
      if (!isLost(error)) {
        await client.query("rollback").catch((reason: unknown) => {
          broken = reason as Error;
        });
        throw error;
      }
      broken = error as Error;
      if (!isCommitSent) throw error;
      // Should it still commit, its wake-ups come as if from another relay.
      this.#id = randomUUID();
      throw new CommitUnknownError(transaction.topics, error);
    } finally {
      client.release(broken);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.end();
  }
}

/** Loaded only for relays that use PostgreSQL. */
export async function loadPg() {
  try {
    return (await import("pg")).default;
  } catch (cause) {
    const what = "a PostgreSQL database needs the package pg; run: npm install pg";
    throw new RelayError("unavailable", what, { cause });
  }
}

/** 64-bit integers as numbers: no position or time comes near 2 ** 53. */
function numberTypes({ getTypeParser }: CustomTypesConfig): CustomTypesConfig {
  const parserOf = (oid: number, format?: "text" | "binary"): unknown =>
    oid === INT8 ? Number : getTypeParser(oid, format);
  return { getTypeParser: parserOf as CustomTypesConfig["getTypeParser"] };
}

function clientConfig(options: ConnectionOptions, applicationName?: string): ClientConfig {
  const { answerTimeoutMs } = options;
  return {
    connectionString: connectionString(options, applicationName),
    connectionTimeoutMillis: Math.min(CONNECT_MS_MAX, answerTimeoutMs ?? CONNECT_MS_MAX),
    query_timeout: answerTimeoutMs,
    // Statements are sent without waiting for the answers of those before.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
  };
}

/** What a standby shows is old, and it cannot write. */
function refuseStandby(client: PoolClient, done: (error?: Error) => void): void {
  client.query("show transaction_read_only", (error: Error | null, result?: QueryResult<Row>) => {
    const isStandby = result?.rows[0]?.["transaction_read_only"] === "on";
    done(isStandby ? new Error("the server is read-only, as a standby is") : (error ?? undefined));
  });
}

/** A connection of its own, beside those of the pool. The caller ends it. */
export async function connect(options: ConnectionOptions, applicationName?: string): Promise<Client> {
  const pg = await loadPg();
  try {
    const client = new pg.Client(clientConfig(options, applicationName));
    await client.connect();
    return client;
  } catch (error) {
    throw unusable(options.url, error);
  }
}

/** Runs the act, which may take hours, on a connection that ends with it. Failures are one sentence. */
export async function withConnection<T>(
  options: ConnectionOptions,
  act: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect({ ...options, answerTimeoutMs: undefined });
  // What breaks the connection fails the statement under way too.
  client.on("error", () => undefined);
  try {
    return await act(client);
  } catch (error) {
    throw error instanceof RelayError ? error : unusable(options.url, error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The driver takes nothing from beside a URL that the URL has too, so everything goes into it. */
function connectionString(options: ConnectionOptions, applicationName?: string): string {
  const { schema, caFile, statementTimeoutMs, lockTimeoutMs } = options;
  // A percent sign that a password has as it is.
  const url = new URL(options.url.replaceAll(/%(?![\da-f]{2})/gi, "%25"));
  const { searchParams } = url;
  const parameters = [searchParams.get("options") ?? "", `-c search_path=${schema}`, PLANNER];
  parameters.push(`-c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS_MAX}`);
  if (statementTimeoutMs !== undefined) parameters.push(`-c statement_timeout=${statementTimeoutMs}`);
  if (lockTimeoutMs !== undefined) parameters.push(`-c lock_timeout=${lockTimeoutMs}`);
  searchParams.set("options", parameters.join(" ").trim());
  if (caFile !== undefined) searchParams.set("sslrootcert", caFile);
  if (applicationName !== undefined) searchParams.set("application_name", applicationName);
  return url.href;
}

/** The server and the database, never the password. */
export function databaseName(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  return `${searchParams.get("host") ?? host}${pathname}`;
}

function unusable(url: string, cause: unknown): RelayError {
  // A host name with several addresses fails with an error for each.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  const why = first instanceof Error && first.message !== "" ? first.message : String(first);
  return new RelayError("unavailable", `the database ${databaseName(url)} cannot be used: ${why}`, { cause });
}

/** One transaction. What it wakes is notified when it commits. */
export class Transaction {
  readonly schema: string;
  readonly topics = new Set<Topic>();
  readonly #client: PoolClient;
  readonly #channel: string;
  readonly #databaseId: string;

  constructor(client: PoolClient, { schema, channel, id }: Database) {
    this.#client = client;
    this.schema = schema;
    this.#channel = channel;
    this.#databaseId = id;
  }

  async rows(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#client.query(namedQuery(sql, values))).rows as readonly Row[];
  }

  async row(sql: string, values: readonly unknown[] = []): Promise<Row | undefined> {
    return (await this.rows(sql, values))[0];
  }

  /** How many rows it wrote. */
  async run(sql: string, values: readonly unknown[] = []): Promise<number> {
    return (await this.#client.query(namedQuery(sql, values))).rowCount ?? 0;
  }

  /** Several statements without values. */
  async script(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  wake(topic: Topic): void {
    this.topics.add(topic);
  }

  /** Tells other relays with the commit. */
  async notify(): Promise<void> {
    if (this.topics.size === 0) return;
    const payloads = [...this.topics].map((topic) => `${this.#databaseId} ${topic}`);
    await this.rows(NOTIFY, [this.#channel, payloads]);
  }
}

const NOTIFY = "select pg_notify($1, payload) from unnest($2::text[]) payload";

type Results<Tasks extends readonly unknown[]> = { -readonly [Index in keyof Tasks]: Awaited<Tasks[Index]> };

/**
 * Waits until all have ended, so that no statement follows a rollback. Of several failures the cause is thrown: the
 * others only say that the transaction has failed already.
 */
export async function allOf<Tasks extends readonly unknown[]>(
  tasks: readonly [...Tasks],
): Promise<Results<Tasks>> {
  const settled = await Promise.allSettled(tasks);
  const failures = settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  if (failures.length > 0) throw failures.find((reason) => !isFollowUp(reason)) ?? failures[0];
  return settled.map((one) => (one.status === "fulfilled" ? one.value : undefined)) as Results<Tasks>;
}

const names = new Map<string, string>();
let lastName = 0;

/** Statements are constants, so each has one name, under which every connection prepares it once. */
function namedQuery(sql: string, values: readonly unknown[]) {
  let name = names.get(sql);
  if (name === undefined) {
    lastName += 1;
    name = `s${lastName}`;
    names.set(sql, name);
  }
  return { name, text: sql, values: values.map(withinInt8) };
}

/** After a migration that added a column all statements get new names: every connection prepares them again. */
async function withFreshPlans<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    names.clear();
    return act();
  }
}

/** A caller may ask for an age that reaches beyond all time. */
function withinInt8(value: unknown): unknown {
  if (typeof value !== "number") return value;
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(value, Number.MAX_SAFE_INTEGER));
}
