import type { CliIo, CliWritable } from "./cli-io.ts";
import { createPaint, type Paint } from "./paint.ts";
import { type Column, renderTable } from "./table.ts";

export interface OutputOptions {
  readonly json: boolean;
  readonly color: boolean;
}

/**
 * What a command says. Every write is awaited, so that mail is acknowledged only after it was handed to
 * whoever reads our output.
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

  /** One of many answers that come over time: a line of JSON each for programs. */
  async showNext(value: unknown, lines: () => readonly string[]): Promise<void> {
    await this.#write(this.#stdout, this.json ? [JSON.stringify(value)] : lines());
  }

  /** Beside the answer: progress and warnings, never mixed into what a program reads. */
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
