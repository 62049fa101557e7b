import { RelayError } from "@a2a-relay/protocol";
import type { Topic } from "../../core/ports/change-feed.ts";
import type { Changes, Clash } from "../../core/ports/relay-store.ts";
import { allOf, type Database, type Transaction } from "./database.ts";
import {
  CommitUnknownError,
  isLost,
  isPartitionMissing,
  isStalePlan,
  isTransient,
  relayErrorFrom,
} from "./connections/postgres-error.ts";

/** Jobs that share one transaction. */
const BATCH_JOBS_MAX = 256;
const QUEUED_JOBS_MAX = 50_000;
/** A batch is repeated after a deadlock or a serialization failure. */
const REPEATS_MAX = 5;
/** And after its connection was lost before the commit. */
const RECONNECTS_MAX = 1;

/** Ends a job because another caller changed the record first; the queue undoes what the job has written. */
export class ClashError extends Error {
  override readonly name: string = "ClashError";
  readonly clash: Clash;

  constructor(clash: Clash) {
    super(`another caller was faster: ${clash}`);
    this.clash = clash;
  }
}

export type AttemptOutcome<T> =
  | { readonly committed: true; readonly value: T }
  | { readonly committed: false; readonly clash: Clash };

/** Changes and then an act, in one transaction. */
interface Job {
  /** Undefined: of several tenants. */
  readonly tenant: string | undefined;
  readonly changes: Changes | undefined;
  readonly act: (transaction: Transaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface CommitQueueHooks {
  /** Writes the changes of all callers, each list in one statement. */
  readonly apply: (transaction: Transaction, all: readonly Changes[]) => Promise<void>;
  /** After a long sleep of the machine the partition of the day may be missing. */
  readonly addPartitions: () => Promise<void>;
  readonly onCommit: (topics: readonly Topic[]) => void;
}

/** Group commit: what waits while one transaction runs shares the next one. */
export class CommitQueue {
  readonly #database: Database;
  readonly #hooks: CommitQueueHooks;
  #queued: Job[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(database: Database, hooks: CommitQueueHooks) {
    this.#database = database;
    this.#hooks = hooks;
  }

  submit<T>(
    tenant: string | undefined,
    act: (transaction: Transaction) => Promise<T>,
    changes?: Changes,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#isClosed) {
      reject(new RelayError("unavailable", "the store is closed"));
    } else if (this.#queued.length >= QUEUED_JOBS_MAX) {
      reject(new RelayError("resource_exhausted", "too many writes are waiting for the database; try again"));
    } else {
      this.#queued.push({ tenant, changes, act, resolve: resolve as (value: unknown) => void, reject });
      this.#running ??= this.#run();
    }
    return promise;
  }

  /** The same with a clash as an answer. */
  async attempt<T>(
    tenant: string | undefined,
    act: (transaction: Transaction) => Promise<T>,
    changes?: Changes,
  ): Promise<AttemptOutcome<T>> {
    try {
      return { committed: true, value: await this.submit(tenant, act, changes) };
    } catch (error) {
      if (error instanceof ClashError) return { committed: false, clash: error.clash };
      throw error;
    }
  }

  /** Runs the queued jobs, then refuses everything. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Callers of the same turn share the first transaction.
    await Promise.resolve();
    while (this.#queued.length > 0) {
      const batch = this.#nextBatch();
      try {
        const { outcomes, topics } = await this.#runBatch(batch, 0);
        this.#hooks.onCommit(topics);
        answer(batch, outcomes);
      } catch (error) {
        if (error instanceof CommitUnknownError) this.#hooks.onCommit(error.topics);
        const reason = relayErrorFrom(error);
        for (const job of batch) job.reject(reason);
      }
    }
    this.#running = undefined;
  }

  /** With row-level security a transaction has one tenant. The order of one tenant's jobs stays. */
  #nextBatch(): readonly Job[] {
    if (!this.#database.isRowSecured) return this.#queued.splice(0, BATCH_JOBS_MAX);
    const tenant = this.#queued[0]?.tenant;
    const batch = this.#queued.filter((job) => job.tenant === tenant).slice(0, BATCH_JOBS_MAX);
    const taken = new Set(batch);
    this.#queued = this.#queued.filter((job) => !taken.has(job));
    return batch;
  }

  async #runBatch(batch: readonly Job[], repeats: number): Promise<BatchResult> {
    try {
      return await this.#together(batch);
    } catch (error) {
      if (mayRepeat(error, repeats)) return this.#runBatch(batch, repeats + 1);
      if (isPartitionMissing(error) && repeats === 0) {
        await this.#hooks.addPartitions();
        return this.#runBatch(batch, 1);
      }
      if (!isOfJob(error)) throw error;
      return batch.length === 1 ? { outcomes: [{ error }], topics: [] } : this.#apart(batch, 0);
    }
  }

  #together(batch: readonly Job[]): Promise<BatchResult> {
    return this.#database.transaction(async (transaction) => {
      await this.#hooks.apply(
        transaction,
        batch.flatMap(({ changes }) => changes ?? []),
      );
      // Their statements do not wait for each other's answers; the server runs them in this order.
      const values = await allOf(batch.map((job) => job.act(transaction)));
      return { outcomes: values.map((value) => ({ value })), topics: [...transaction.topics] };
    }, batch[0]?.tenant);
  }

  /** After one job failed: runs the whole batch again, each job with its own savepoint. */
  async #apart(batch: readonly Job[], repeats: number): Promise<BatchResult> {
    try {
      return await this.#database.transaction(async (transaction) => {
        const outcomes: Outcome[] = [];
        for (const job of batch) outcomes.push(await this.#runJob(transaction, job));
        return { outcomes, topics: [...transaction.topics] };
      }, batch[0]?.tenant);
    } catch (error) {
      if (!mayRepeat(error, repeats)) throw error;
      return this.#apart(batch, repeats + 1);
    }
  }

  async #runJob(transaction: Transaction, job: Job): Promise<Outcome> {
    const topicsBefore = new Set(transaction.topics);
    await transaction.script("savepoint job");
    try {
      if (job.changes !== undefined) await this.#hooks.apply(transaction, [job.changes]);
      const value = await job.act(transaction);
      await transaction.script("release savepoint job");
      return { value };
    } catch (error) {
      if (!isOfJob(error)) throw error;
      await transaction.script("rollback to savepoint job; release savepoint job");
      for (const topic of transaction.topics) if (!topicsBefore.has(topic)) transaction.topics.delete(topic);
      return { error };
    }
  }
}

/** Nothing of the transaction was written, and it may succeed the next time. */
function mayRepeat(error: unknown, repeats: number): boolean {
  if (isTransient(error)) return repeats < REPEATS_MAX;
  return isLost(error) && repeats < RECONNECTS_MAX;
}

/** Says something about one caller, not about the transaction of all. */
function isOfJob(error: unknown): boolean {
  return (
    ![isTransient, isLost, isStalePlan].some((is) => is(error)) && !(error instanceof CommitUnknownError)
  );
}

interface BatchResult {
  readonly outcomes: readonly Outcome[];
  readonly topics: readonly Topic[];
}

function answer(batch: readonly Job[], outcomes: readonly Outcome[]): void {
  for (const [index, job] of batch.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) continue;
    if ("value" in outcome) job.resolve(outcome.value);
    else if (outcome.error instanceof ClashError) job.reject(outcome.error);
    else job.reject(relayErrorFrom(outcome.error));
  }
}
