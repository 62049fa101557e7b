import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import type { Topic } from "../../core/ports/change-feed.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger, LedgerMark } from "./ledger.ts";
import { isFatal, relayErrorFrom } from "./sqlite-error.ts";

/** Jobs that share one commit: past this the gain is small and the first caller waits long. */
const BATCH_JOBS_MAX = 256;
/** KeyedMutex that a commit waits for more, as long as each of them brings some: the first caller waits for them too. */
const MORE_TURNS_MAX = 4;
/** Jobs that may wait: far more than the requests a healthy relay has under way. */
const WAITING_JOBS_MAX = 50_000;

interface QueuedJob {
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** A job that is alone has its commit at once. */
const NOBODY_YET = { jobs: 1, turns: 0 };

type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface CommitQueueHooks {
  /** After each commit, before the callers have their answers. */
  readonly onCommit: (topics: readonly Topic[]) => void;
  /** The disk did not confirm a write: the process must end. */
  readonly onFatal: (error: unknown) => void;
}

/**
 * Group commit: all jobs that wait share one transaction and one fsync, which come in the first turn of the event loop
 * that brings no more of them. The failure of a job is its own; nobody is answered before the commit.
 */
export class CommitQueue {
  readonly #database: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #hooks: CommitQueueHooks;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollBack: Statement;
  readonly #savepoint: Statement;
  readonly #release: Statement;
  readonly #rollBackTo: Statement;
  #waiting: QueuedJob[] = [];
  /** Of the batch to come: how many waited when it was looked at last, and how often that was. */
  #seen: { readonly jobs: number; readonly turns: number } = NOBODY_YET;
  #scheduled: NodeJS.Immediate | undefined;
  #closed: RelayError | undefined;

  constructor(database: DatabaseSync, ledger: Ledger, hooks: CommitQueueHooks) {
    this.#database = database;
    this.#ledger = ledger;
    this.#hooks = hooks;
    this.#begin = prepare(database, "begin immediate");
    this.#commit = prepare(database, "commit");
    this.#rollBack = prepare(database, "rollback");
    this.#savepoint = prepare(database, "savepoint job");
    this.#release = prepare(database, "release job");
    this.#rollBackTo = prepare(database, "rollback to job");
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /**
   * The job runs synchronously inside the next batch, and once more if another one of the batch fails: it
   * changes nothing but rows and the ledger. What it throws undoes it alone.
   */
  submit<T>(job: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#closed !== undefined) {
      reject(this.#closed);
    } else if (this.#waiting.length >= WAITING_JOBS_MAX) {
      reject(new RelayError("resource_exhausted", "too many writes are waiting for the disk; try again"));
    } else {
      this.#waiting.push({ run: job, resolve: resolve as (value: unknown) => void, reject });
      this.#scheduled ??= setImmediate(() => this.#turn());
    }
    return promise;
  }

  /** Runs what still waits, then refuses everything with `reason`. */
  close(reason: RelayError): void {
    while (this.#waiting.length > 0 && this.#closed === undefined) this.#runBatch();
    this.#refuse(reason);
  }

  #turn(): void {
    this.#scheduled = undefined;
    if (!this.#waitsForMore()) this.#runBatch();
    if (this.#waiting.length > 0) this.#scheduled ??= setImmediate(() => this.#turn());
  }

  /** Whoever a commit answered is soon back with the next write; one turn more, and it shares the next commit. */
  #waitsForMore(): boolean {
    const jobs = this.#waiting.length;
    const { jobs: before, turns } = this.#seen;
    const waits = jobs > before && jobs < BATCH_JOBS_MAX && turns < MORE_TURNS_MAX;
    this.#seen = waits ? { jobs, turns: turns + 1 } : NOBODY_YET;
    return waits;
  }

  #runBatch(): void {
    const batch = this.#waiting.splice(0, BATCH_JOBS_MAX);
    if (batch.length === 0) return;
    const start = this.#ledger.mark();
    let outcomes: readonly Outcome[];
    let during: "statement" | "commit" = "statement";
    try {
      this.#begin.run();
      outcomes = this.#runTogether(batch) ?? this.#runApart(batch, start);
      this.#ledger.save();
      during = "commit";
      this.#commit.run();
    } catch (error) {
      this.#abandon(batch, error, during);
      this.#ledger.rollBackTo(start);
      return;
    }
    // Those who wait for mail have it written to their connections before its senders hear that it is kept: a tick
    // that is asked for by a microtask comes when there are no more of those.
    this.#hooks.onCommit(this.#ledger.settle());
    queueMicrotask(() => process.nextTick(answer, batch, outcomes));
  }

  /** Nearly always nobody fails. Without savepoints SQLite need not copy every page that a job touches. */
  #runTogether(batch: readonly QueuedJob[]): readonly Outcome[] | undefined {
    try {
      const outcomes = batch.map((job) => ({ value: job.run() }));
      this.#ledger.flush();
      return outcomes;
    } catch (error) {
      if (!this.#database.isTransaction || isFatal(error, "statement")) throw error;
      return undefined;
    }
  }

  /** One of them failed: all of it again from the beginning, each with its own savepoint. */
  #runApart(batch: readonly QueuedJob[], start: LedgerMark): readonly Outcome[] {
    this.#rollBack.run();
    this.#ledger.rollBackTo(start);
    this.#begin.run();
    return batch.map((job) => this.#runJob(job));
  }

  /** Throws only when the whole transaction is lost, which a full disk may do on its own. */
  #runJob(job: QueuedJob): Outcome {
    const start = this.#ledger.mark();
    this.#savepoint.run();
    try {
      const value = job.run();
      this.#ledger.flush();
      this.#release.run();
      return { value };
    } catch (error) {
      if (!this.#database.isTransaction || isFatal(error, "statement")) throw error;
      this.#rollBackTo.run();
      this.#release.run();
      this.#ledger.rollBackTo(start);
      return { error };
    }
  }

  #abandon(batch: readonly QueuedJob[], error: unknown, during: "statement" | "commit"): void {
    const fatal = isFatal(error, during);
    if (!fatal && this.#database.isTransaction) this.#database.exec("rollback");
    const reason = relayErrorFrom(error);
    for (const job of batch) job.reject(reason);
    if (!fatal) return;
    this.#refuse(new RelayError("unavailable", "the disk failed; the relay is stopping", { cause: error }));
    this.#hooks.onFatal(error);
  }

  #refuse(reason: RelayError): void {
    if (this.#scheduled !== undefined) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#closed ??= reason;
    for (const job of this.#waiting.splice(0)) job.reject(reason);
  }
}

function answer(batch: readonly QueuedJob[], outcomes: readonly Outcome[]): void {
  for (const [index, job] of batch.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) continue;
    if ("error" in outcome) job.reject(outcome.error);
    else job.resolve(outcome.value);
  }
}
