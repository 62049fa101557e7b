import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { ChangeFeed } from "../../core/ports/change-feed.ts";
import type { Changes, CommitOutcome, RelayStore } from "../../core/ports/relay-store.ts";
import type { ChainHead, EventDraft } from "../../core/ports/journal.ts";
import type { DeliveryRecord, MailboxLeaseQuery, MailboxMessage } from "../../core/ports/deliveries.ts";
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
import { relayErrorFrom } from "./sqlite-error.ts";
import { StoreReader } from "./store-reader.ts";

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
/** Nonces forgotten in one commit. */
const FORGOTTEN_NONCES_MAX = 1_000;
/** Results forgotten in one commit: they may be long. */
const FORGOTTEN_RESULTS_MAX = 100;

const PROBE = `
  insert into probe (only_row, at_ms) values (1, ?) on conflict do update set at_ms = excluded.at_ms`;

/** What most commits consist of. None of it looks for messages, so they can stay gathered until the commit. */
const MAIL: ReadonlySet<string> = new Set<keyof Changes>([
  "tenant",
  "messages",
  "deliveries",
  "events",
  "room",
  "sendKeys",
  "tasks",
]);

/** The default store: one SQLite file, one process, and one fsync for everything that waits in a turn. */
export class SqliteRelayStore extends StoreReader implements RelayStore {
  readonly #lock: DatabaseLock | undefined;
  readonly #feed: InProcessChangeFeed;
  readonly #commits: CommitQueue;
  readonly #checkpoints: Checkpoints | undefined;
  readonly #probe: Statement;
  #presenceTimer: NodeJS.Timeout | undefined;
  #failed = false;

  private constructor({ database, lock }: OpenDatabase, options: SqliteRelayStoreOptions) {
    const feed = new InProcessChangeFeed();
    super(database, feed);
    this.#feed = feed;
    this.#lock = lock;
    this.#probe = prepare(database, PROBE);
    const onFatal = (error: unknown): void => {
      this.#failed = true;
      this.#checkpoints?.stop();
      options.onFatal(error);
    };
    if (lock !== undefined) this.#checkpoints = new Checkpoints(database, { ...options, onFatal });
    this.#commits = new CommitQueue(database, this.parts.ledger, {
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
      await this.#commits.submit(() => this.#apply(changes));
      return { committed: true };
    } catch (error) {
      if (error instanceof ClashError) return { committed: false, clash: error.clash };
      throw relayErrorFrom(error);
    }
  }

  async probe(nowMs: number): Promise<void> {
    await this.#write(() => this.#probe.run(nowMs));
  }

  async touchAgent(tenant: string, id: AgentId, seenAtMs: number): Promise<void> {
    this.parts.agents.touch(tenant, id, seenAtMs);
    this.#presenceTimer ??= setTimeout(() => {
      this.#presenceTimer = undefined;
      // A sighting that could not be written stays in memory and goes with the next.
      this.#savePresence().catch(() => undefined);
    }, PRESENCE_DELAY_MS).unref();
  }

  async markDelivered(
    tenant: string,
    messageIds: readonly string[],
    deliveredAtMs: number,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<void> {
    if (messageIds.length === 0) return;
    await this.#writeAfterAll(() =>
      this.parts.mailboxes.markDelivered(tenant, messageIds, deliveredAtMs, event),
    );
  }

  /** A mailbox that is empty and stays so in this turn is answered without a transaction. */
  async lease(
    query: MailboxLeaseQuery,
    event: (delivery: DeliveryRecord) => EventDraft,
  ): Promise<readonly MailboxMessage[]> {
    const isEmpty = this.parts.ledger.mailboxes.countAvailable(query.tenant, query.agentId) === 0;
    if (isEmpty && this.#commits.isIdle) return [];
    return this.#write(() => this.parts.mailboxes.lease(query, event));
  }

  async renewLeases(
    tenant: string,
    agentId: AgentId,
    leases: readonly { readonly messageId: string; readonly leaseId: string }[],
    leaseExpiresAtMs: number,
  ): Promise<ReadonlyMap<string, DeliveryRecord>> {
    return this.#writeAfterAll(() =>
      this.parts.mailboxes.renewLeases(tenant, agentId, leases, leaseExpiresAtMs),
    );
  }

  async retireMessages(
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
    event?: EventDraft,
  ): Promise<void> {
    await this.#writeAfterAll(() => {
      this.parts.retention.retireMessages(tenant, messageIds, nowMs);
      if (event !== undefined) this.parts.journal.append(tenant, [event]);
    });
  }

  async retireEvents(tenant: string, anchor: ChainHead): Promise<void> {
    await this.#writeAfterAll(() => this.parts.journal.retireEvents(tenant, anchor));
  }

  /** In several commits, so that a long list of old keys holds nobody up. */
  async forgetSendKeys(goneBeforeMs: number): Promise<number> {
    for (let forgotten = 0; ;) {
      const count = await this.#write(() =>
        this.parts.retention.forgetSendKeys(goneBeforeMs, FORGOTTEN_KEYS_MAX),
      );
      forgotten += count;
      if (count < FORGOTTEN_KEYS_MAX) return forgotten;
    }
  }

  /** In several commits as well. */
  async forgetCachedResults(nowMs: number, keptMax: number): Promise<number> {
    for (let forgotten = 0; ;) {
      const count = await this.#write(() =>
        this.parts.resultCache.forget(nowMs, keptMax, FORGOTTEN_RESULTS_MAX),
      );
      forgotten += count;
      if (count < FORGOTTEN_RESULTS_MAX) return forgotten;
    }
  }

  /** In several commits as well. */
  async forgetNonces(expiredBeforeMs: number): Promise<number> {
    for (let forgotten = 0; ;) {
      const count = await this.#write(() => this.parts.nonces.forget(expiredBeforeMs, FORGOTTEN_NONCES_MAX));
      forgotten += count;
      if (count < FORGOTTEN_NONCES_MAX) return forgotten;
    }
  }

  /** At once: few keys sign, and fewer end within a minute. */
  async forgetSigningSecrets(nowMs: number): Promise<number> {
    return this.#write(() => this.parts.access.forgetSigningSecrets(nowMs));
  }

  /** Finishes what waits and leaves one tidy file. After a disk failure it leaves the file alone. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#presenceTimer);
    if (!this.database.isOpen || this.#failed) return;
    const presence = this.#savePresence().catch(() => undefined);
    this.#commits.close(new RelayError("unavailable", "the store is closed"));
    await presence;
    this.#feed[Symbol.dispose]();
    if (this.#failed || !this.database.isOpen) return;
    this.#checkpoints?.finish();
    this.database.close();
    this.#lock?.[Symbol.dispose]();
  }

  #apply(changes: Changes): void {
    const { access, agents, capabilities, journal, mailboxes, messages, resultCache, tasks } = this.parts;
    const { nonces, pushes, taskPushes, taskUpdates } = this.parts;
    const { sendKeys = [] } = changes;
    for (const nonce of changes.nonces ?? []) nonces.use(changes.tenant, nonce);
    for (const key of changes.keys ?? []) access.putKey(key);
    for (const tenant of changes.tenants ?? []) access.putTenant(tenant);
    for (const capability of changes.capabilities ?? []) capabilities.put(capability);
    for (const key of changes.custodialKeys ?? []) agents.putCustodialKey(key);
    for (const agent of changes.agents ?? []) agents.put(agent);
    for (const { agentId } of changes.room ?? []) agents.assertPresent(changes.tenant, agentId);
    for (const sendKey of sendKeys) messages.insertSendKey(sendKey);
    const records = changes.messages ?? [];
    const acceptances = journal.acceptances(changes);
    const refs = messages.insertAll(records, sendKeys, acceptances);
    const openMax = new Map(changes.room?.map((room) => [room.agentId, room.openMax]));
    mailboxes.putAll(changes.deliveries ?? [], { messages: records, refs }, openMax);
    if (!isMailAlone(changes)) this.parts.ledger.flush();
    for (const task of changes.tasks ?? []) tasks.put(task);
    for (const artifact of changes.artifacts ?? []) tasks.putArtifact(artifact);
    for (const update of changes.taskUpdates ?? []) {
      taskUpdates.add(update);
      taskPushes.makeDue(update);
    }
    for (const result of changes.cachedResults ?? []) resultCache.put(result);
    for (const endpoint of changes.pushEndpoints ?? []) pushes.putEndpoint(endpoint, "wake");
    for (const endpoint of changes.pushProgress ?? []) pushes.putEndpoint(endpoint, "quiet");
    for (const push of changes.pushes ?? []) pushes.put(push);
    for (const attempt of changes.pushAttempts ?? []) pushes.addAttempt(attempt);
    for (const task of changes.remoteTasks ?? []) this.parts.remoteTasks.put(task);
    for (const key of changes.forgottenTaskPushes ?? []) taskPushes.forget(key);
    for (const config of changes.taskPushes ?? []) taskPushes.put(config);
    journal.append(changes.tenant, changes.events, acceptances);
  }

  async #savePresence(): Promise<void> {
    this.parts.agents.forgetSightings(await this.#write(() => this.parts.agents.savePresence()));
  }

  /** For what looks for rows that may have come in the same commit. */
  #writeAfterAll<T>(job: () => T): Promise<T> {
    return this.#write(() => {
      this.parts.ledger.flush();
      return job();
    });
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

function isMailAlone(changes: Changes): boolean {
  for (const sort in changes) if (!MAIL.has(sort)) return false;
  return true;
}
