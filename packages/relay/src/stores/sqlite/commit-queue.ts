import type { DatabaseSync } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import type { Topic } from "../../core/ports/change-feed.ts";
import type { Clash } from "../../core/ports/relay-store.ts";
import { prepareAll, type Statements } from "./database.ts";
import { isFatal, relayErrorFrom } from "./sqlite-error.ts";
import type { StateMark, StoreState } from "./store-state.ts";

/** Jobs that share one commit: beyond this the gain is small and the first caller waits long. */
const BATCH_JOBS_MAX = 256;
/** Turns of the event loop that a commit waits for more jobs, as long as each turn brings some. */
const MORE_TURNS_MAX = 4;
/** Jobs that may wait: far more than the requests that a healthy relay serves at one time. */
const QUEUED_JOBS_MAX = 50_000;

const SQL = {
  begin: "begin immediate",
  commit: "commit",
  rollBack: "rollback",
  savepoint: "savepoint job",
  release: "release job",
  rollBackTo: "rollback to job",
};

/**
 * What every part of the store works on. The async methods of a part are the port's; the other methods that write run
 * inside a job of the commit queue.
 */
export interface Engine {
  readonly database: DatabaseSync;
  readonly state: StoreState;
  readonly commits: CommitQueue;
}

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

interface QueuedJob {
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** A job that is alone does not wait for others. */
const FIRST_TURN = { jobs: 1, turns: 0 };

type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface CommitQueueHooks {
  /** After each commit, before the callers have their answers. */
  readonly onCommit: (topics: readonly Topic[]) => void;
  /** The disk did not confirm a write: the process must end. */
  readonly onFatal: (error: unknown) => void;
}

/**
 * Group commit: all queued jobs share one transaction and one fsync, in the first turn of the event loop that brings
 * no more jobs. A job that fails does not fail the others; the queue answers its callers after the commit.
 */
export class CommitQueue {
  readonly #database: DatabaseSync;
  readonly #state: StoreState;
  readonly #hooks: CommitQueueHooks;
  readonly #sql: Statements<typeof SQL>;
  #queued: QueuedJob[] = [];
  /** How many jobs the next batch had at the last turn, and how many turns it has waited. */
  #seen: { readonly jobs: number; readonly turns: number } = FIRST_TURN;
  #scheduled: NodeJS.Immediate | undefined;
  #closed: RelayError | undefined;

  constructor(database: DatabaseSync, state: StoreState, hooks: CommitQueueHooks) {
    this.#database = database;
    this.#state = state;
    this.#hooks = hooks;
    this.#sql = prepareAll(database, SQL);
  }

  /**
   * The job runs synchronously inside the next batch, and a second time if another job of the batch fails: it may
   * change only rows and the store's state. What it throws undoes it alone.
   */
  submit<T>(job: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#closed !== undefined) {
      reject(this.#closed);
    } else if (this.#queued.length >= QUEUED_JOBS_MAX) {
      reject(new RelayError("resource_exhausted", "too many writes are waiting for the disk; try again"));
    } else {
      this.#queued.push({ run: job, resolve: resolve as (value: unknown) => void, reject });
      this.#scheduled ??= setImmediate(() => this.#turn());
    }
    return promise;
  }

  /** The same with a clash as an answer. */
  async attempt<T>(job: () => T): Promise<AttemptOutcome<T>> {
    try {
      return { committed: true, value: await this.submit(job) };
    } catch (error) {
      if (error instanceof ClashError) return { committed: false, clash: error.clash };
      throw error;
    }
  }

  /** Repeats a job that changes at most `limit` rows, in a commit each, until it changes fewer. Answers the total. */
  async submitUntilDone(limit: number, job: () => number): Promise<number> {
    for (let total = 0; ;) {
      const count = await this.submit(job);
      total += count;
      if (count < limit) return total;
    }
  }

  /** Runs the queued jobs, then refuses everything with `reason`. */
  close(reason: RelayError): void {
    while (this.#queued.length > 0 && this.#closed === undefined) this.#runBatch();
    this.#refuse(reason);
  }

  #turn(): void {
    this.#scheduled = undefined;
    if (!this.#waitsForMore()) this.#runBatch();
    if (this.#queued.length > 0) this.#scheduled ??= setImmediate(() => this.#turn());
  }

  /** Callers that the last commit answered often write again at once; one turn later they share the next commit. */
  #waitsForMore(): boolean {
    const jobs = this.#queued.length;
    const { jobs: before, turns } = this.#seen;
    const waits = jobs > before && jobs < BATCH_JOBS_MAX && turns < MORE_TURNS_MAX;
    this.#seen = waits ? { jobs, turns: turns + 1 } : FIRST_TURN;
    return waits;
  }

  #runBatch(): void {
    const batch = this.#queued.splice(0, BATCH_JOBS_MAX);
    if (batch.length === 0) return;
    const start = this.#state.mark();
    let outcomes: readonly Outcome[];
    let during: "statement" | "commit" = "statement";
    try {
      this.#sql.begin.run();
      outcomes = this.#runTogether(batch) ?? this.#runApart(batch, start);
      this.#state.save();
      during = "commit";
      this.#sql.commit.run();
    } catch (error) {
      this.#abandon(batch, error, during);
      this.#state.rollBackTo(start);
      return;
    }
    // Readers write new messages to their connections before the senders get their answers: a tick that a microtask
    // asks for comes after all microtasks.
    this.#hooks.onCommit(this.#state.settle());
    queueMicrotask(() => process.nextTick(answer, batch, outcomes));
  }

  /** Without savepoints, because jobs rarely fail: SQLite need not copy every page that a job touches. */
  #runTogether(batch: readonly QueuedJob[]): readonly Outcome[] | undefined {
    try {
      return batch.map((job) => ({ value: job.run() }));
    } catch (error) {
      if (!this.#database.isTransaction || isFatal(error, "statement")) throw error;
      return undefined;
    }
  }

  /** After one job failed: runs the whole batch again, each job with its own savepoint. */
  #runApart(batch: readonly QueuedJob[], start: StateMark): readonly Outcome[] {
    this.#sql.rollBack.run();
    this.#state.rollBackTo(start);
    this.#sql.begin.run();
    return batch.map((job) => this.#runJob(job));
  }

  /** Throws only when the whole transaction is lost; SQLite may roll it back by itself when the disk is full. */
  #runJob(job: QueuedJob): Outcome {
    const start = this.#state.mark();
    this.#sql.savepoint.run();
    try {
      const value = job.run();
      this.#sql.release.run();
      return { value };
    } catch (error) {
      if (!this.#database.isTransaction || isFatal(error, "statement")) throw error;
      this.#sql.rollBackTo.run();
      this.#sql.release.run();
      this.#state.rollBackTo(start);
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
    for (const job of this.#queued.splice(0)) job.reject(reason);
  }
}

function answer(batch: readonly QueuedJob[], outcomes: readonly Outcome[]): void {
  for (const [index, job] of batch.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) continue;
    if ("error" in outcome) job.reject(errorFrom(outcome.error));
    else job.resolve(outcome.value);
  }
}

function errorFrom(reason: unknown): Error {
  return reason instanceof ClashError ? reason : relayErrorFrom(reason);
}
