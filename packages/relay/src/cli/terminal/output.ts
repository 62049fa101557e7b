import type { Readable, Writable } from "node:stream";
import type { Environment } from "../../config/setting-reader.ts";
import { type Column, renderTable } from "./table.ts";
import { createPaint, type Paint } from "./text.ts";

interface OutputOptions {
  readonly json: boolean;
  readonly color: boolean;
}

/**
 * Writes what a command prints. Every write is awaited, so that a message is acknowledged only after the reader of
 * our output has it.
 */
export class Output {
  readonly json: boolean;
  readonly paint: Paint;
  readonly #paintNotes: Paint;
  readonly #stdout: CliWritable;
  readonly #stderr: CliWritable;

  constructor(io: CliIo, options: OutputOptions) {
    this.json = options.json;
    this.paint = createPaint(io.stdout, io.env, options.color);
    this.#paintNotes = createPaint(io.stderr, io.env, options.color);
    this.#stdout = io.stdout;
    this.#stderr = io.stderr;
  }

  /** The one answer of a command: JSON for programs, lines for people. */
  async show(value: unknown, lines: () => readonly string[]): Promise<void> {
    await this.#write(this.#stdout, this.json ? [JSON.stringify(value, null, 2)] : lines());
  }

  /** One of many answers over time: for programs a line of JSON each. */
  async showNext(value: unknown, lines: () => readonly string[]): Promise<void> {
    await this.#write(this.#stdout, this.json ? [JSON.stringify(value)] : lines());
  }

  /** Progress and warnings. They go to stderr, never into what a program reads. */
  async note(text: string): Promise<void> {
    await this.#write(this.#stderr, [this.#paintNotes("dim", text)]);
  }

  async error(text: string, details: readonly string[] = []): Promise<void> {
    await this.#write(this.#stderr, [`${this.#paintNotes("red", "error:")} ${text}`, ...details]);
  }

  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): readonly string[] {
    const width = this.#stdout.isTTY === true ? this.#stdout.columns : undefined;
    return renderTable(rows, columns, { paint: this.paint, width });
  }

  #write(stream: CliWritable, lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      stream.write(`${lines.join("\n")}\n`, (reason) => {
        if (reason instanceof Error) reject(reason);
        else resolve();
      });
    });
  }
}

/** A stream that may be a terminal. */
export interface CliWritable extends Writable {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** All of the process that a command may use; tests pass their own. */
export interface CliIo {
  readonly stdin: Readable;
  readonly stdout: CliWritable;
  readonly stderr: CliWritable;
  readonly env: Environment;
  /** The directory of `.env`. */
  readonly workingDirectory: string;
  /** Aborted when the command should end: on Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}
