import type { Readable, Writable } from "node:stream";
import type { Environment } from "../../config/environment.ts";

/** A stream that may be a terminal. */
export interface CliWritable extends Writable {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Everything a command may touch of the process it runs in; a test gives its own. */
export interface CliIo {
  readonly stdin: Readable;
  readonly stdout: CliWritable;
  readonly stderr: CliWritable;
  readonly env: Environment;
  /** Where `.env` is looked for. */
  readonly workingDirectory: string;
  /** Aborted when the command should end: on Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}
