import type { DatabaseSync } from "node:sqlite";
import { Statement } from "./database.ts";
import { isFatal } from "./sqlite-error.ts";

/** Pages of backlog that are worth a checkpoint in an idle moment. */
const IDLE_PAGES_MIN = 500;
/** Without a commit for this long, the burst is over. */
const IDLE_AFTER_MS = 20;

// `noop` only reports. SQLite before 3.51 does not know it and would checkpoint instead.
const STATUS = "pragma wal_checkpoint(noop)";
const STATUS_SINCE = [3, 51] as const;
const PASSIVE = "pragma wal_checkpoint(passive)";
const TRUNCATE = "pragma wal_checkpoint(truncate)";

export interface CheckpointOptions {
  /** Pages of the write-ahead log after which a checkpoint does not wait for an idle moment. */
  readonly checkpointPages: number;
  readonly onFatal: (error: unknown) => void;
}

/**
 * Moves the write-ahead log into the database in idle moments, so that callers rarely wait for it. SQLite's own
 * checkpoints hide their errors, a failed fsync among them.
 */
export class Checkpoints {
  readonly #database: DatabaseSync;
  readonly #options: CheckpointOptions;
  readonly #status: Statement | undefined;
  readonly #passive: Statement;
  #check: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #commits = 0;

  constructor(database: DatabaseSync, options: CheckpointOptions) {
    this.#database = database;
    this.#options = options;
    this.#passive = new Statement(database, PASSIVE);
    if (canReportStatus()) this.#status = new Statement(database, STATUS);
    else database.exec(`pragma wal_autocheckpoint = ${options.checkpointPages}`);
  }

  /** Checks one turn later, after the callers of the commit have their answers. */
  afterCommit(): void {
    this.#commits += 1;
    this.#check ??= setImmediate(() => {
      this.#check = undefined;
      this.#attempt(() => this.#runIfDue());
    });
  }

  /** Before closing: leaves one file behind, and no log to replay. */
  finish(): void {
    this.stop();
    this.#attempt(() => this.#database.exec(TRUNCATE));
  }

  /** Leaves the file alone from now on. */
  stop(): void {
    if (this.#check !== undefined) clearImmediate(this.#check);
    clearTimeout(this.#timer);
    this.#check = undefined;
    this.#timer = undefined;
  }

  #runIfDue(): void {
    const [, pages, done] = this.#status?.get() ?? [];
    const backlogPages = Number(pages ?? 0) - Number(done ?? 0);
    if (backlogPages >= this.#options.checkpointPages) this.#passive.get();
    else if (backlogPages >= IDLE_PAGES_MIN && this.#timer === undefined) this.#runWhenIdle();
  }

  #runWhenIdle(): void {
    const commits = this.#commits;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#commits === commits) this.#attempt(() => this.#passive.get());
      else this.#runWhenIdle();
    }, IDLE_AFTER_MS).unref();
  }

  /** A failure that is not fatal leaves everything in the log for the next attempt. */
  #attempt(checkpoint: () => unknown): void {
    try {
      checkpoint();
    } catch (error) {
      if (isFatal(error, "checkpoint")) this.#options.onFatal(error);
    }
  }
}

function canReportStatus(): boolean {
  const [major = 0, minor = 0] = (process.versions["sqlite"] ?? "").split(".").map(Number);
  return major > STATUS_SINCE[0] || (major === STATUS_SINCE[0] && minor >= STATUS_SINCE[1]);
}
