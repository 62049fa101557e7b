import { RelayError } from "@a2a-relay/protocol";
import { textLines } from "../archive/text-lines.ts";
import type { ExportTarget } from "./export-file.ts";
import {
  EXPORT_LINE_CHARS_MAX,
  type ExportHeader,
  headerLine,
  LineDigest,
  readHeader,
  readRecord,
  readTrailer,
  recordLine,
  trailerLine,
} from "./export-format.ts";
import type {
  RecordKindName,
  TransferHeader,
  TransferProgress,
  TransferRecord,
  TransferSource,
  TransferTarget,
} from "./records.ts";

/** Lines after which the progress is reported. */
const REPORT_LINES = 100_000;
/** What one transaction imports. */
const BATCH_LINES = 1_000;
const BATCH_CHARS = 4 * 1024 * 1024;

export interface TransferOptions {
  readonly signal: AbortSignal;
  /** Called now and then with the number of lines so far. */
  readonly report: (lines: number) => Promise<void>;
}

/** What was exported or imported. */
export interface Transferred {
  readonly header: TransferHeader;
  /** Without the trailer. */
  readonly lines: number;
  /** SHA-256 of these lines. */
  readonly digest: string;
  readonly records: Readonly<Partial<Record<RecordKindName, number>>>;
}

export interface Exported extends Transferred, Pick<ExportTarget, "keptLines" | "hasChanged"> {}

export async function exportAll(
  source: TransferSource,
  target: ExportTarget,
  { signal, report }: TransferOptions,
): Promise<Exported> {
  const { header } = source;
  const digest = new LineDigest();
  const records: Partial<Record<RecordKindName, number>> = {};
  const write = async (line: string): Promise<void> => {
    signal.throwIfAborted();
    digest.add(line);
    await target.write(line);
    if (digest.lines % REPORT_LINES === 0) await report(digest.lines);
  };
  await write(headerLine({ ...header, exportedAtMs: exportTime(header, target.begun) }));
  for await (const record of source.records()) {
    await write(recordLine(record));
    records[record.kind] = (records[record.kind] ?? 0) + 1;
  }
  const { progress } = digest;
  await target.write(trailerLine(progress));
  await target.finish();
  const { keptLines, hasChanged } = target;
  return { header, ...progress, records, keptLines, hasChanged };
}

/** A file that is continued keeps its time, if nothing else of its header has changed. */
function exportTime(header: TransferHeader, begun: ExportHeader | undefined): number {
  if (begun === undefined) return Date.now();
  const { exportedAtMs } = begun;
  return headerLine({ ...header, exportedAtMs }) === headerLine(begun) ? exportedAtMs : Date.now();
}

/**
 * Imports a file, or what an earlier run has left of it. Each batch is written with its progress, so that the next run
 * continues after it. The caller verifies the journal and ends the import.
 */
export async function importAll(
  target: TransferTarget,
  chunks: AsyncIterable<Uint8Array>,
  { signal, report }: TransferOptions,
): Promise<Transferred> {
  const run = new ImportRun(target, await target.progress());
  for await (const { text, ended } of textLines(chunks, EXPORT_LINE_CHARS_MAX)) {
    signal.throwIfAborted();
    await run.take(text, ended);
    if (run.lines % REPORT_LINES === 0) await report(run.lines);
  }
  return run.finish();
}

class ImportRun {
  readonly #target: TransferTarget;
  /** What an earlier run has imported. */
  readonly #earlier: TransferProgress | undefined;
  readonly #digest = new LineDigest();
  readonly #records: Partial<Record<RecordKindName, number>> = {};
  #header: ExportHeader | undefined;
  #isComplete = false;
  #batch: TransferRecord[] = [];
  #batchChars = 0;

  constructor(target: TransferTarget, earlier: TransferProgress | undefined) {
    this.#target = target;
    this.#earlier = earlier;
  }

  get lines(): number {
    return this.#digest.lines;
  }

  async take(text: string, ended: boolean): Promise<void> {
    if (this.#isComplete) throw damaged(`line ${this.lines + 2} follows the trailer`);
    if (this.#header === undefined) return this.#takeHeader(text);
    const trailer = readTrailer(text);
    if (trailer !== undefined) return this.#takeTrailer(trailer);
    if (!ended) throw unfinished(`it ends within line ${this.lines + 1}`);
    const record = readRecord(text);
    if (record === undefined) throw damaged(`line ${this.lines + 1} is not as a relay writes it`);
    await this.#takeRecord(record, text);
  }

  async finish(): Promise<Transferred> {
    if (this.#header === undefined) throw damaged("it is empty");
    if (!this.#isComplete) throw unfinished(`it ends after line ${this.lines} without a trailer`);
    await this.#target.complete(this.#header);
    return { header: this.#header, ...this.#digest.progress, records: this.#records };
  }

  async #takeHeader(text: string): Promise<void> {
    const header = readHeader(text);
    if (header === undefined) throw damaged("its first line is not the header of an export");
    this.#header = header;
    this.#digest.add(text);
    if (this.#earlier !== undefined) return this.#compareWithEarlier(this.#earlier);
    await this.#target.begin(header, this.#digest.progress).catch(unwritable(1, 1));
  }

  async #takeRecord(record: TransferRecord, text: string): Promise<void> {
    this.#digest.add(text);
    this.#records[record.kind] = (this.#records[record.kind] ?? 0) + 1;
    if (this.#earlier !== undefined && this.lines <= this.#earlier.lines) {
      return this.#compareWithEarlier(this.#earlier);
    }
    this.#batch.push(record);
    this.#batchChars += text.length;
    if (this.#batch.length >= BATCH_LINES || this.#batchChars >= BATCH_CHARS) await this.#writeBatch();
  }

  async #takeTrailer(trailer: TransferProgress): Promise<void> {
    const { lines, digest } = this.#digest.progress;
    if (lines < (this.#earlier?.lines ?? 0)) throw otherFile();
    if (trailer.lines !== lines) {
      throw damaged(`it has ${lines} lines before the trailer, which counts ${trailer.lines}`);
    }
    if (trailer.digest !== digest) throw damaged("its lines are not those that the trailer digests");
    await this.#writeBatch();
    this.#isComplete = true;
  }

  #compareWithEarlier({ lines, digest }: TransferProgress): void {
    if (this.lines === lines && this.#digest.progress.digest !== digest) throw otherFile();
  }

  async #writeBatch(): Promise<void> {
    const records = this.#batch;
    if (records.length === 0) return;
    this.#batch = [];
    this.#batchChars = 0;
    const failed = unwritable(this.lines - records.length + 1, this.lines);
    await this.#target.write(records, this.#digest.progress).catch(failed);
  }
}

function damaged(what: string): RelayError {
  return new RelayError(
    "invalid_argument",
    `the file cannot be imported: ${what}; it was changed or damaged`,
  );
}

function unfinished(what: string): RelayError {
  const how = "repeat the export with the same file, which continues it, and then this import";
  return new RelayError("invalid_argument", `the file is not complete: ${what}; ${how}`);
}

function otherFile(): RelayError {
  const how = "import that file, or remove the database and begin anew";
  return new RelayError("conflict", `the database holds a part of another file; ${how}`);
}

/** A full disk, a lost connection or another import says enough by itself. */
function unwritable(first: number, last: number): (error: unknown) => never {
  return (error) => {
    const { code } = RelayError.from(error);
    if (code !== "internal" && code !== "invalid_argument") throw error;
    const { message } =
      error instanceof RelayError && error.cause instanceof Error ? error.cause : (error as Error);
    throw damaged(`of lines ${first} to ${last} one is refused (${message})`);
  };
}
