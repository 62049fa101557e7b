import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { openPostgresStore } from "../src/stores/postgres/postgres-relay-store.ts";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-relay-store.ts";
import { ExportFile } from "../src/stores/transfer/export-file.ts";
import { LineDigest, trailerLine } from "../src/stores/transfer/export-format.ts";
import { PostgresTarget, readPostgres } from "../src/stores/transfer/postgres-transfer.ts";
import type { TransferSource, TransferTarget } from "../src/stores/transfer/records.ts";
import { readSqlite, SqliteTarget } from "../src/stores/transfer/sqlite-transfer.ts";
import { exportAll, importAll, type TransferOptions } from "../src/stores/transfer/transfer.ts";
import { populate } from "./populated-store.ts";

export const QUIETLY: TransferOptions = {
  signal: new AbortController().signal,
  report: async () => undefined,
};

/** Where data is; empty at first. */
export interface DataLocation {
  openStore(): Promise<RelayStore>;
  openTarget(): Promise<TransferTarget>;
  read<T>(act: (source: TransferSource) => Promise<T>): Promise<T>;
}

/** A directory for databases and exports. */
export class TransferFolder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), "transfer-"));
  #lastPath = 0;

  newPath(name: string): string {
    this.#lastPath += 1;
    return join(this.path, `${this.#lastPath}-${name}`);
  }

  newSqlite(path: string = this.newPath("relay.sqlite")): DataLocation {
    return {
      openStore: () => openSqliteStore({ path, checkpointPages: 1_000, onFatal: () => assert.fail() }),
      openTarget: async () => new SqliteTarget(path),
      read: (act) => readSqlite(path, act),
    };
  }

  /** With records of every kind. */
  async populated(location: DataLocation = this.newSqlite()): Promise<DataLocation> {
    await using store = await location.openStore();
    await populate(store);
    return location;
  }

  /** The path of an export of all that the location has. */
  async exported(from: DataLocation, path: string = this.newPath("export.ndjson")): Promise<string> {
    await from.read(async (source) => {
      await using file = await ExportFile.open(path);
      await exportAll(source, file, QUIETLY);
    });
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

export function postgresLocation(url: string, schema: string): DataLocation {
  return {
    openStore: () => openPostgresStore({ url, schema, poolMax: 2 }),
    openTarget: () => PostgresTarget.open({ url, schema }),
    read: (act) => readPostgres({ url, schema }, act),
  };
}

/** Imports a text without verifying it. With `end` it breaks off there, with an error. */
export async function importInto(location: DataLocation, text: string, end?: number): Promise<void> {
  await using target = await location.openTarget();
  await importAll(target, chunksOf(text, end), QUIETLY);
  await target.end();
}

/** The lines of a file without its header, whose time differs, and without its trailer, which digests that too. */
export function recordsIn(path: string): readonly string[] {
  return linesIn(path).slice(1, -1);
}

export function linesIn(path: string): readonly string[] {
  return readFileSync(path, "utf8").split("\n").slice(0, -1);
}

/** The text of a file with other lines, and with a trailer that fits them. */
export function sealed(lines: readonly string[]): string {
  const digest = new LineDigest();
  for (const line of lines) digest.add(line);
  return `${[...lines, trailerLine(digest.progress)].join("\n")}\n`;
}

/** A text as a file comes in. With `end` it breaks off there, with an error. */
export async function* chunksOf(text: string, end?: number): AsyncGenerator<Uint8Array, void, void> {
  const whole = text.slice(0, end);
  for (let start = 0; start < whole.length; start += 1_000) {
    yield Buffer.from(whole.slice(start, start + 1_000));
  }
  if (end !== undefined) throw new Error("the line was cut");
}
