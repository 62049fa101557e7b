import type { DatabaseSync } from "node:sqlite";
import { prepare, type Statement } from "./database.ts";
import { isFatal } from "./sqlite-error.ts";

/** A backlog worth a checkpoint as soon as nothing else is to do. */
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
 * Moves the write-ahead log into the database in idle moments, so that callers hardly ever wait for it. It
 * is done by hand because SQLite's own checkpoints hide their errors, a failed fsync among them.
 */
export class Checkpoints {
  readonly #database: DatabaseSync;
  readonly #options: CheckpointOptions;
  readonly #status: Statement | undefined;
  readonly #passive: Statement;
  #look: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #commits = 0;

  constructor(database: DatabaseSync, options: CheckpointOptions) {
    this.#database = database;
    this.#options = options;
    this.#passive = prepare(database, PASSIVE);
    if (canReportStatus()) this.#status = prepare(database, STATUS);
    else database.exec(`pragma wal_autocheckpoint = ${options.checkpointPages}`);
  }

  /** Looks a turn later, when all who waited for the commit have their answers. */
  afterCommit(): void {
    this.#commits += 1;
    this.#look ??= setImmediate(() => {
      this.#look = undefined;
      this.#attempt(() => this.#runIfDue());
    });
  }

  /** Before closing: leaves one file behind, and no log to replay. */
  finish(): void {
    this.stop();
    this.#attempt(() => this.#database.exec(TRUNCATE));
  }

  /** The file is left as it is. */
  stop(): void {
    if (this.#look !== undefined) clearImmediate(this.#look);
    clearTimeout(this.#timer);
    this.#look = undefined;
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
      if (this.#commits === commits) this.#run();
      else this.#runWhenIdle();
    }, IDLE_AFTER_MS).unref();
  }

  #run(): void {
    this.#attempt(() => this.#passive.get());
  }

  /** Any other failure leaves everything in the log, and the next attempt may do better. */
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
