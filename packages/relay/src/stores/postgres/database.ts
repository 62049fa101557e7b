import { randomUUID } from "node:crypto";
import { RelayError } from "@a2a-relay/protocol";
import type { Client, CustomTypesConfig, Pool, PoolClient } from "pg";
import type { Topic } from "../../core/ports/change-feed.ts";
import { migrate } from "./migrations/migrations.ts";
import { CommitUnknownError, isLost, relayErrorFrom } from "./postgres-error.ts";

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
}

export interface PostgresOptions extends ConnectionOptions {
  /** Connections for reads; writes have one more. */
  readonly poolMax: number;
  /** Whether pending migrations run. In an empty database they always run. */
  readonly migrate?: boolean;
}

const INT8 = 20;
const CONNECT_MS_MAX = 10_000;

/**
 * Index scans only: without statistics the planner would read whole tables for the few rows of a batch. Statements
 * keep their plan, whatever the values.
 */
const PLANNER = ["hashjoin", "mergejoin", "bitmapscan", "seqscan"]
  .map((plan) => `-c enable_${plan}=off`)
  .concat("-c plan_cache_mode=force_generic_plan")
  .join(" ");

/** The connections of one relay. */
export class Database implements AsyncDisposable {
  readonly pool: Pool;
  readonly schema: string;
  readonly schemaVersion: number;
  #id = randomUUID();

  private constructor(pool: Pool, schema: string, schemaVersion: number) {
    this.pool = pool;
    this.schema = schema;
    this.schemaVersion = schemaVersion;
  }

  static async open(options: PostgresOptions): Promise<Database> {
    const { schema, poolMax: max } = options;
    const when = options.migrate === true ? "always" : "empty";
    const { knownVersion } = await withConnection(options, (client) => migrate(client, schema, when));
    const pg = await loadPg();
    const pool = new pg.Pool({
      connectionString: connectionString(options),
      max,
      types: numberTypes(pg.types),
    });
    // A connection that breaks while it is idle is replaced by the pool.
    pool.on("error", () => undefined);
    // One that breaks in a transaction fails its next statement. Without a listener it would end the process.
    pool.on("connect", (client) => client.on("error", () => undefined));
    return new Database(pool, schema, knownVersion);
  }

  /** Tells the wake-ups of this relay, whose readers it has woken itself, from those of others. */
  get id(): string {
    return this.#id;
  }

  async rows(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    try {
      return (await this.pool.query(namedQuery(sql, values))).rows as readonly Row[];
    } catch (error) {
      throw relayErrorFrom(error);
    }
  }

  async row(sql: string, values: readonly unknown[] = []): Promise<Row | undefined> {
    return (await this.rows(sql, values))[0];
  }

  /** `CommitUnknownError` when only the server knows whether it committed. After any other error it did not. */
  async transaction<T>(act: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const transaction = new Transaction(client, this);
    let isCommitSent = false;
    let broken: Error | undefined;
    try {
      await client.query("begin");
      const value = await act(transaction);
      isCommitSent = true;
      // The commit of a failed transaction succeeds as a rollback.
      const { command } = await client.query("commit");
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

/** A connection of its own, beside those of the pool. The caller ends it. */
export async function connect(options: ConnectionOptions, applicationName?: string): Promise<Client> {
  const pg = await loadPg();
  try {
    const client = new pg.Client({
      connectionString: connectionString(options, applicationName),
      connectionTimeoutMillis: CONNECT_MS_MAX,
    });
    await client.connect();
    return client;
  } catch (error) {
    throw unusable(options.url, error);
  }
}

/** Runs the act on a connection that ends with it. Failures are one sentence. */
export async function withConnection<T>(
  options: ConnectionOptions,
  act: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect(options);
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
  readonly databaseId: string;
  readonly topics = new Set<Topic>();
  readonly #client: PoolClient;

  constructor(client: PoolClient, { schema, id }: Pick<Database, "schema" | "id">) {
    this.#client = client;
    this.schema = schema;
    this.databaseId = id;
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
}

const names = new Map<string, string>();

/** Statements are constants, so each has one name, under which every connection prepares it once. */
function namedQuery(sql: string, values: readonly unknown[]) {
  let name = names.get(sql);
  if (name === undefined) {
    name = `s${names.size}`;
    names.set(sql, name);
  }
  return { name, text: sql, values: values.map(withinInt8) };
}

/** A caller may ask for an age that reaches beyond all time. */
function withinInt8(value: unknown): unknown {
  if (typeof value !== "number") return value;
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(value, Number.MAX_SAFE_INTEGER));
}
