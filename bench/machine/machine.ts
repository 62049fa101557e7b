import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { median, percentile } from "../statistics.ts";
import type { Cores } from "./cores.ts";

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly system: string;
  readonly node: string;
  readonly sqlite: string;
  /** Where the servers kept their data while they were measured. */
  readonly directory: string;
  readonly inMemoryDisk: boolean;
  /** One appended page of 4 KiB made durable. */
  readonly fsyncMs: { readonly p50: number; readonly p99: number };
  readonly loadAverage: number;
  readonly pinning: string;
}

const FSYNCS = 300;
const PAGE_BYTES = 4096;
/** The type that statfs reports for tmpfs on Linux. */
const TMPFS = 0x01021994;

export function describeMachine(directory: string, cores: Cores): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    sqlite: process.versions["sqlite"] ?? "unknown",
    directory,
    inMemoryDisk: statfsSync(directory).type === TMPFS,
    fsyncMs: measureFsync(directory),
    loadAverage: loadavg()[0] ?? Number.NaN,
    pinning:
      cores === undefined
        ? "servers and load share all cores: taskset or a second core is missing, so read the ratios with care"
        : `servers on core ${cores.server}, load on core ${cores.load}`,
  };
}

function measureFsync(directory: string): Machine["fsyncMs"] {
  const file = openSync(join(directory, "fsync-probe"), "a");
  const page = Buffer.alloc(PAGE_BYTES, "x");
  const timesMs: number[] = [];
  for (let index = 0; index < FSYNCS; index += 1) {
    const start = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    timesMs.push(performance.now() - start);
  }
  closeSync(file);
  return { p50: median(timesMs), p99: percentile(timesMs, 0.99) };
}
