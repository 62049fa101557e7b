import { existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { backup } from "node:sqlite";
import { RelayError } from "@a2a-relay/protocol";
import { openForReading } from "../sqlite/database.ts";

/** Copies a database as it is at one moment, also while a relay uses it. The copy has its name once it is whole. */
export async function backUpSqlite(path: string, copy: string, signal: AbortSignal): Promise<void> {
  if (existsSync(copy)) throw new RelayError("conflict", `${copy} exists already; choose another name`);
  const database = openForReading(path);
  const draft = `${copy}.partial`;
  try {
    await rm(draft, { force: true });
    await using file = await open(draft, "wx", 0o600);
    // Within a transaction the copy shows one moment, and does not begin again when the relay writes.
    database.exec("begin; select 1 from schema_version");
    await backup(database, draft, { progress: () => signal.throwIfAborted() });
    signal.throwIfAborted();
    await file.sync();
    await rename(draft, copy);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    database.close();
  }
}
