import type { Client } from "pg";
import type { Topic } from "../../core/ports/change-feed.ts";
import { InProcessChangeFeed } from "../in-process/change-feed.ts";
import { connect, type ConnectionOptions, type Database } from "./database.ts";

/** How long a lost connection is left alone before the next attempt. */
const RECONNECT_MS = 1_000;

/** The listening connection of a relay has a name that only such connections have. */
const OTHER_LISTENERS = `
  select from pg_stat_activity
  where datname = current_database() and application_name = current_setting('application_name')
    and pid <> pg_backend_pid()`;

/**
 * The change feed of a relay beside others: it listens for what they commit on a connection of its own. After a lost
 * connection it wakes all readers, because it may have missed something.
 */
export class ListeningChangeFeed extends InProcessChangeFeed {
  readonly #options: ConnectionOptions;
  readonly #database: Database;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isOver = false;

  private constructor(options: ConnectionOptions, database: Database) {
    super();
    this.#options = options;
    this.#database = database;
  }

  static async open(options: ConnectionOptions, database: Database): Promise<ListeningChangeFeed> {
    const feed = new ListeningChangeFeed(options, database);
    await feed.#listen();
    return feed;
  }

  /** How many relays listen on the same schema beside this one. */
  async otherRelays(): Promise<number> {
    const result = await this.#client?.query(OTHER_LISTENERS);
    return result?.rowCount ?? 0;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#retry);
    this[Symbol.dispose]();
    await this.#client?.end().catch(() => undefined);
  }

  async #listen(): Promise<void> {
    const { schema } = this.#options;
    const client = await connect(this.#options, `a2a-relay ${schema}`);
    client.on("notification", ({ payload = "" }) => this.#received(payload));
    client.on("error", () => this.#lost());
    client.on("end", () => this.#lost());
    await client.query(`listen a2a_relay_${schema}`);
    this.#client = client;
  }

  /** What this relay commits, it has notified itself. */
  #received(payload: string): void {
    const end = payload.indexOf(" ");
    if (payload.slice(0, end) !== this.#database.id) this.notify([payload.slice(end + 1) as Topic]);
  }

  #lost(): void {
    if (this.#isOver || this.#retry !== undefined) return;
    this.#client = undefined;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#listen().then(
        () => this.notifyAll(),
        () => this.#lost(),
      );
    }, RECONNECT_MS);
  }
}
