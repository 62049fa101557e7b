import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError, type VerifyResponse } from "@a2a-relay/protocol";
import type { StoreConfig } from "../config/relay-config.ts";
import { verifyChain } from "../core/journal/verify-chain.ts";
import { GENESIS } from "../core/rules/event.ts";
import type { ExportTarget } from "../stores/transfer/export-file.ts";
import type { TransferChain, TransferSource, TransferTarget } from "../stores/transfer/records.ts";
import { backUpSqlite } from "../stores/transfer/sqlite-backup.ts";
import { readSqlite, SqliteTarget } from "../stores/transfer/sqlite-transfer.ts";
import {
  exportAll,
  type Exported,
  importAll,
  type Transferred,
  type TransferOptions,
} from "../stores/transfer/transfer.ts";
import { anchorsOf, openDirectory, openStore, sqlitePath } from "./open-store.ts";

// The command line may import stores only through the server.
export { ExportFile, type ExportTarget } from "../stores/transfer/export-file.ts";
export type { Exported, Transferred } from "../stores/transfer/transfer.ts";

/** Of the store that is opened only to verify what was imported. */
const VERIFYING = { databasePoolMax: 2, databaseRls: false, migrate: false, checkpointPages: 2_000 };

/** Writes all data of a store as it is at one moment. Relays on it may go on. The store is opened before the target. */
export async function exportData(
  config: StoreConfig,
  openTarget: () => Promise<ExportTarget>,
  options: TransferOptions,
): Promise<Exported> {
  const act = async (source: TransferSource): Promise<Exported> => {
    await using target = await openTarget();
    return await exportAll(source, target, options);
  };
  if (config.database?.kind !== "postgres") return readSqlite(sqlitePath(config), act);
  const { connectionOptions } = await import("./migrate-database.ts");
  const { readPostgres } = await import("../stores/transfer/postgres-transfer.ts");
  return readPostgres(connectionOptions(config.database.url, config), act);
}

export interface ImportReport extends Transferred {
  /** The journal of each tenant, as it was verified in the store. */
  readonly chains: readonly (VerifyResponse & { readonly tenant: string })[];
  /** Absent if all is well. */
  readonly problem?: string;
}

/** Imports a file into an empty store, or goes on with it, and verifies the journals. */
export async function importData(
  config: StoreConfig,
  chunks: AsyncIterable<Uint8Array>,
  options: TransferOptions,
): Promise<ImportReport> {
  const imported = await withTarget(config, (target) => importAll(target, chunks, options));
  const chains = await verifyAll(config, imported.header.chains);
  const broken = chains.find(({ ok }) => !ok);
  if (broken !== undefined) {
    return { ...imported, chains, problem: `tenant ${broken.tenant}: ${broken.problem}` };
  }
  await withTarget(config, (target) => target.end());
  return { ...imported, chains };
}

async function withTarget<T>(config: StoreConfig, act: (target: TransferTarget) => Promise<T>): Promise<T> {
  await using target = await targetOf(config);
  return await act(target);
}

async function targetOf(config: StoreConfig): Promise<TransferTarget> {
  if (config.database?.kind === "postgres") {
    const { connectionOptions } = await import("./migrate-database.ts");
    const { PostgresTarget } = await import("../stores/transfer/postgres-transfer.ts");
    return PostgresTarget.open(connectionOptions(config.database.url, config));
  }
  openDirectory("data directory", config.dataDirectory, "--data");
  return new SqliteTarget(sqlitePath(config));
}

/** Also tenants without a journal in the file: the anchors may know one. */
async function verifyAll(
  config: StoreConfig,
  chains: readonly TransferChain[],
): Promise<ImportReport["chains"]> {
  const onFatal = (reason: unknown): never => {
    throw reason;
  };
  await using store = await openStore({ ...config, ...VERIFYING }, { onFatal, isImport: true });
  const clock = { nowMs: () => Date.now(), nextTurn: () => nextTurn() };
  const anchors = anchorsOf(config);
  const heads = new Map(chains.map(({ tenant, head }) => [tenant, head]));
  const listed = (await store.tenants.list()).map(({ id }) => id);
  const tenants = new Set([...heads.keys(), ...listed, ...(await anchors.latest()).keys()]);
  const reports: (VerifyResponse & { readonly tenant: string })[] = [];
  for (const tenant of tenants) {
    const report = await verifyChain({ store, clock, anchors }, tenant);
    const head = heads.get(tenant) ?? GENESIS;
    const isSame = report.last_seq === head.seq && report.head === head.hash;
    const problem = report.problem ?? (isSame ? undefined : "the journal does not end as the header says");
    reports.push({ tenant, ...report, ...(problem === undefined ? {} : { ok: false, problem }) });
  }
  return reports;
}

/** Copies an SQLite database. */
export async function backUp(config: StoreConfig, copy: string, signal: AbortSignal): Promise<void> {
  if (config.database?.kind === "postgres") {
    const how = "pg_dump --format=custom --schema=a2a_relay --file=FILE URL";
    throw new RelayError("invalid_argument", `backup is for SQLite; back PostgreSQL up with: ${how}`);
  }
  await backUpSqlite(sqlitePath(config), copy, signal);
}
