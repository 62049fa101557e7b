import { tmpdir } from "node:os";
import { Readable, Writable } from "node:stream";
import { runCli } from "../src/cli/program.ts";
import type { CliIo } from "../src/cli/terminal/output.ts";
import type { Environment } from "../src/config/setting-reader.ts";

export interface CliRunOptions {
  readonly stdin?: string;
  readonly env?: Environment;
  /** The directory of `.env`; default: one without that file. */
  readonly workingDirectory?: string;
  readonly signal?: AbortSignal;
  /** As if stdout were a terminal of this width. */
  readonly columns?: number;
  /** Called with all of stdout after each write. */
  readonly onStdout?: (soFar: string) => void;
  readonly onStderr?: (soFar: string) => void;
}

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process and keeps its output. */
export async function cliRun(argv: readonly string[], options: CliRunOptions = {}): Promise<CliRun> {
  const stdout = new Collector(options.onStdout);
  const stderr = new Collector(options.onStderr);
  if (options.columns !== undefined) stdout.pretendTerminal(options.columns);
  const io: CliIo = {
    stdin: Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stdout,
    stderr,
    env: options.env ?? {},
    workingDirectory: options.workingDirectory ?? tmpdir(),
    signal: options.signal ?? new AbortController().signal,
  };
  const code = await runCli(argv, io);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Collector extends Writable {
  text = "";
  isTTY = false;
  columns: number | undefined;
  readonly #onText: ((soFar: string) => void) | undefined;

  constructor(onText: ((soFar: string) => void) | undefined) {
    super({ decodeStrings: false });
    this.#onText = onText;
  }

  pretendTerminal(columns: number): void {
    this.isTTY = true;
    this.columns = columns;
  }

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.#onText?.(this.text);
    done();
  }
}
