import { createHash } from "node:crypto";
import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { ChainHead } from "../../core/ports/journal.ts";
import {
  RECORD_KINDS,
  type RecordKindName,
  type TransferChain,
  type TransferHeader,
  type TransferProgress,
  type TransferRecord,
} from "./records.ts";

/** The lines of an export: a header, records, a trailer. `docs/reference/export-format.md` describes them. */

const FORMAT = "a2a-relay-export";
const VERSION = 1;

/** More than the longest record: all steps of a task are at most 16 MiB of JSON, which is quoted once more. */
export const EXPORT_LINE_CHARS_MAX = 64 * 1024 * 1024;
/** More than the bytes of a trailer. */
export const TRAILER_BYTES_MAX = 256;

export interface ExportHeader extends TransferHeader {
  readonly exportedAtMs: number;
}

export function headerLine({ exportedAtMs, position, chains }: ExportHeader): string {
  const header = {
    format: FORMAT,
    version: VERSION,
    exported_at: formatInstant(exportedAtMs),
    position,
    chains: chains.map(({ tenant, head, start }) => ({
      tenant,
      seq: head.seq,
      hash: head.hash,
      start_seq: start.seq,
      start_hash: start.hash,
    })),
  };
  return JSON.stringify({ header });
}

export function recordLine({ kind, row }: TransferRecord): string {
  return JSON.stringify({ [kind]: row });
}

/** `before` is the progress up to the last record. */
export function trailerLine({ lines, digest }: TransferProgress): string {
  return JSON.stringify({ trailer: { lines, sha256: digest } });
}

/** Counts and digests lines. */
export class LineDigest {
  readonly #hash = createHash("sha256");
  #lines = 0;

  add(line: string): void {
    this.#hash.update(`${line}\n`);
    this.#lines += 1;
  }

  get lines(): number {
    return this.#lines;
  }

  get progress(): TransferProgress {
    return { lines: this.#lines, digest: this.#hash.copy().digest("hex") };
  }
}

/** Undefined if the line is not the first one of an export. */
export function readHeader(line: string): ExportHeader | undefined {
  const header = membersIn(membersIn(valueIn(line))?.["header"]);
  if (header?.["format"] !== FORMAT) return undefined;
  const { version, exported_at: exportedAt, position, chains } = header;
  if (version !== VERSION) {
    const what = `the export has format version ${String(version)}, this relay knows ${VERSION}`;
    throw new RelayError("invalid_argument", `${what}; use the version of a2a-relay that wrote it`);
  }
  const exportedAtMs = typeof exportedAt === "string" ? Date.parse(exportedAt) : Number.NaN;
  if (Number.isNaN(exportedAtMs) || !isCount(position) || !Array.isArray(chains)) return undefined;
  const read = chains.flatMap((chain) => chainFrom(chain) ?? []);
  return read.length === chains.length ? { exportedAtMs, position, chains: read } : undefined;
}

function chainFrom(value: unknown): TransferChain | undefined {
  const { tenant, seq, hash, start_seq: startSeq, start_hash: startHash } = membersIn(value) ?? {};
  const head = chainHeadFrom(seq, hash);
  const start = chainHeadFrom(startSeq, startHash);
  if (typeof tenant !== "string" || head === undefined || start === undefined) return undefined;
  return { tenant, head, start };
}

function chainHeadFrom(seq: unknown, hash: unknown): ChainHead | undefined {
  return isCount(seq) && typeof hash === "string" ? { seq, hash } : undefined;
}

/** Undefined if the line is not the last one of an export. */
export function readTrailer(line: string): TransferProgress | undefined {
  const { lines, sha256 } = membersIn(membersIn(valueIn(line))?.["trailer"]) ?? {};
  return isCount(lines) && typeof sha256 === "string" ? { lines, digest: sha256 } : undefined;
}

/** Undefined unless the line is a record with exactly the columns of its kind. */
export function readRecord(line: string): TransferRecord | undefined {
  const [[kind, value] = [], second] = Object.entries(membersIn(valueIn(line)) ?? {});
  const row = membersIn(value);
  if (kind === undefined || second !== undefined || !isKind(kind) || row === undefined) return undefined;
  const { columns } = RECORD_KINDS[kind];
  const isWhole =
    Object.keys(row).length === columns.length && columns.every((column) => isRecordValue(row[column]));
  return isWhole ? { kind, row: row as TransferRecord["row"] } : undefined;
}

function isKind(name: string): name is RecordKindName {
  return Object.hasOwn(RECORD_KINDS, name);
}

function isRecordValue(value: unknown): boolean {
  return value === null || typeof value === "string" || Number.isSafeInteger(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function membersIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
}

function valueIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
