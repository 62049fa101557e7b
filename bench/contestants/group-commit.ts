import type { DatabaseSync, StatementSync } from "node:sqlite";

interface WaitOptions {
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** The same as the relay's: past it, the gain is small and the first caller waits long. */
const BATCH_JOBS_MAX = 256;

/** Group commit at its plainest: what waits in one turn of the event loop shares a transaction. */
export class GroupCommit {
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  #waiting: WaitOptions[] = [];

  constructor(database: DatabaseSync) {
    this.#begin = database.prepare("begin immediate");
    this.#commit = database.prepare("commit");
    this.#rollback = database.prepare("rollback");
  }

  /** Resolves once the job's writes are on disk. */
  submit<Value>(run: () => Value): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    this.#waiting.push({ run, resolve: resolve as (value: unknown) => void, reject });
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
    return promise;
  }

  #turn(): void {
    const batch = this.#waiting.slice(0, BATCH_JOBS_MAX);
    this.#waiting = this.#waiting.slice(BATCH_JOBS_MAX);
    if (this.#waiting.length > 0) setImmediate(() => this.#turn());
    try {
      this.#begin.run();
      const values = batch.map((job) => job.run());
      this.#commit.run();
      for (const [index, job] of batch.entries()) job.resolve(values[index]);
    } catch (reason) {
      this.#rollback.run();
      for (const job of batch) job.reject(reason);
    }
  }
}
