import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import type { Client } from "pg";
import type { Topic } from "../../core/ports/change-feed.ts";
import { InProcessChangeFeed } from "../in-process/change-feed.ts";
import { connect, type ConnectionOptions, type Database } from "./database.ts";

/** How long a database that cannot be reached is left alone before the next attempt. */
const RECONNECT_MS = 1_000;
/** How often a relay proves that wake-ups reach it. A proof may take as long. */
const CHECK_MS = 5_000;
/** A server that does not say goodbye. */
const CLOSE_MS_MAX = 1_000;

/** The listening connection of a relay has a name that only such connections have. */
const OTHER_LISTENERS = `
  select from pg_stat_activity
  where datname = current_database() and application_name = current_setting('application_name')
    and pid <> pg_backend_pid()`;

/**
 * The change feed of a relay beside others: it listens for what they commit on a connection of its own. Every few
 * seconds it notifies itself through another connection. When that does not arrive, or the connection is lost, it
 * listens on a new one and wakes all readers, because it may have missed something.
 */
export class ListeningChangeFeed extends InProcessChangeFeed {
  readonly #options: ConnectionOptions;
  readonly #database: Database;
  readonly #checkMs: number;
  readonly #checks = new EventEmitter();
  readonly #closing = new AbortController();
  /** Of the newest connection. */
  #lost = new AbortController();
  #client: Client | undefined;
  #running: Promise<void> | undefined;

  private constructor(options: ConnectionOptions, database: Database) {
    super();
    this.#options = options;
    this.#database = database;
    this.#checkMs = options.checkMs ?? CHECK_MS;
  }

  static async open(options: ConnectionOptions, database: Database): Promise<ListeningChangeFeed> {
    const feed = new ListeningChangeFeed(options, database);
    try {
      await feed.#listen();
    } catch (error) {
      destroy(feed.#client);
      throw error;
    }
    feed.#running = feed.#keepListening();
    return feed;
  }

  /** How many relays listen on the same schema beside this one. */
  async otherRelays(): Promise<number> {
    const result = await this.#client?.query(OTHER_LISTENERS);
    return result?.rowCount ?? 0;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this[Symbol.dispose]();
    const late = setTimeout(() => destroy(this.#client), CLOSE_MS_MAX);
    await this.#client?.end().catch(() => undefined);
    clearTimeout(late);
    // It may have been about to connect.
    void this.#running?.then(() => destroy(this.#client));
  }

  async #keepListening(): Promise<void> {
    const closing = this.#closing.signal;
    while (!closing.aborted) {
      const lost = this.#lost.signal;
      const waitMs = lost.aborted ? RECONNECT_MS : this.#checkMs;
      const signal = lost.aborted ? closing : AbortSignal.any([closing, lost]);
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      if (closing.aborted) return;
      try {
        await (lost.aborted ? this.#listenAgain() : this.#check());
      } catch {
        this.#lost.abort();
      }
    }
  }

  async #listenAgain(): Promise<void> {
    destroy(this.#client);
    await this.#listen();
    this.notifyAll();
  }

  async #listen(): Promise<void> {
    const client = await connect(this.#options, `a2a-relay ${this.#options.schema}`);
    const lost = new AbortController();
    client.on("notification", ({ payload = "" }) => this.#received(payload));
    client.on("error", () => lost.abort());
    client.on("end", () => lost.abort());
    this.#client = client;
    this.#lost = lost;
    await client.query(`listen ${this.#database.channel}`);
    await this.#check();
  }

  /** Fails unless what another connection notifies arrives on this one in time. */
  async #check(): Promise<void> {
    const token = `check-${randomUUID()}`;
    const signal = AbortSignal.any([this.#lost.signal, AbortSignal.timeout(this.#checkMs)]);
    try {
      await Promise.all([once(this.#checks, token, { signal }), this.#database.ping(token, this.#checkMs)]);
    } catch (cause) {
      const what = "the database does not deliver notifications";
      throw new RelayError("unavailable", `${what}; a pooler before it must be in session mode`, { cause });
    }
  }

  /** A check, or a topic with the name of the relay that has notified it. What this relay commits, it knows. */
  #received(payload: string): void {
    const end = payload.indexOf(" ");
    if (payload.startsWith("check-")) this.#checks.emit(payload);
    else if (payload.slice(0, end) !== this.#database.id) this.notify([payload.slice(end + 1) as Topic]);
  }
}

/** Without a goodbye, for which a connection that is lost would wait. */
function destroy(client: Client | undefined): void {
  client?.connection.stream.destroy();
}
