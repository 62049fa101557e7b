import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { RelayError } from "@a2a-relay/protocol";
import { type TextLine, textLines } from "../archive/text-lines.ts";
import {
  EXPORT_LINE_CHARS_MAX,
  type ExportHeader,
  readHeader,
  readTrailer,
  TRAILER_BYTES_MAX,
} from "./export-format.ts";

/** Text that is collected before it is written. */
const WRITE_CHARS = 1024 * 1024;

/** Where the lines of an export go. */
export interface ExportTarget extends AsyncDisposable {
  /** The first line of an unfinished export that may be continued. */
  readonly begun: ExportHeader | undefined;
  /** How many lines an earlier run had written that are still right. */
  readonly keptLines: number;
  /** Whether lines of an earlier run were replaced, because the data has changed since. */
  readonly hasChanged: boolean;
  write(line: string): Promise<void>;
  /** After the last line. Answers once all of it is on disk. */
  finish(): Promise<void>;
}

/**
 * A file that only its owner can read. An unfinished export is continued: as long as the lines are the same as those in
 * the file, they are compared instead of written. The first other one replaces all that follows.
 */
export class ExportFile implements ExportTarget {
  readonly begun: ExportHeader | undefined;
  readonly #file: FileHandle;
  /** Undefined once the rest is written. */
  #existing: AsyncGenerator<TextLine, void, void> | undefined;
  #keptLines = 0;
  #hasChanged = false;
  #offset = 0;
  #pending = "";

  private constructor(file: FileHandle, path: string, begun: ExportHeader | undefined) {
    this.#file = file;
    this.begun = begun;
    if (begun !== undefined) this.#existing = linesOf(path);
  }

  /** Refuses a file that is complete, or no export. */
  static async open(path: string): Promise<ExportFile> {
    await using stack = new AsyncDisposableStack();
    const file = stack.use(await openOrCreate(path));
    const stats = await file.stat();
    if (!stats.isFile()) throw new RelayError("conflict", `${path} is not a file; - writes to stdout`);
    const begun = stats.size === 0 ? undefined : await unfinishedHeader(file, path, stats.size);
    await file.chmod(0o600);
    stack.move();
    return new ExportFile(file, path, begun);
  }

  get keptLines(): number {
    return this.#keptLines;
  }

  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  async write(line: string): Promise<void> {
    if (this.#existing !== undefined && (await this.#isKept(line))) return;
    this.#pending += `${line}\n`;
    if (this.#pending.length >= WRITE_CHARS) await this.#flush();
  }

  async finish(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#existing?.return();
    await this.#file.close();
  }

  async #isKept(line: string): Promise<boolean> {
    const next = await this.#existing?.next();
    const old = next?.done === true ? undefined : next?.value;
    if (old?.ended === true && old.text === line) {
      this.#keptLines += 1;
      this.#offset += Buffer.byteLength(line) + 1;
      return true;
    }
    this.#hasChanged = old?.ended === true;
    await this.#existing?.return();
    this.#existing = undefined;
    await this.#file.truncate(this.#offset);
    return false;
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#pending);
    this.#pending = "";
    for (let written = 0; written < bytes.length;) {
      const { bytesWritten } = await this.#file.write(bytes, written, bytes.length - written, this.#offset);
      written += bytesWritten;
      this.#offset += bytesWritten;
    }
  }
}

async function openOrCreate(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx+", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return await open(path, "r+");
  }
}

async function unfinishedHeader(file: FileHandle, path: string, size: number): Promise<ExportHeader> {
  const header = await firstHeader(path);
  if (header === undefined) {
    throw new RelayError("conflict", `${path} exists already and is no export; choose another name`);
  }
  if (await hasTrailer(file, size)) {
    throw new RelayError("conflict", `${path} is a complete export already; choose another name`);
  }
  return header;
}

async function firstHeader(path: string): Promise<ExportHeader | undefined> {
  for await (const { text, ended } of linesOf(path)) return ended ? readHeader(text) : undefined;
  return undefined;
}

function linesOf(path: string): AsyncGenerator<TextLine, void, void> {
  return textLines(createReadStream(path), EXPORT_LINE_CHARS_MAX);
}

async function hasTrailer(file: FileHandle, size: number): Promise<boolean> {
  const tail = Buffer.alloc(Math.min(size, TRAILER_BYTES_MAX));
  await file.read(tail, 0, tail.length, size - tail.length);
  const [last, end] = tail.toString("utf8").split("\n").slice(-2);
  return end === "" && readTrailer(last ?? "") !== undefined;
}
