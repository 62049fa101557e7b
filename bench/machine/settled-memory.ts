import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { residentKibOf } from "./process-usage.ts";

/** For a Node that runs a server whose memory is asked for. */
export const COLLECTING_ARGS: readonly string[] = [
  "--import",
  pathToFileURL(join(import.meta.dirname, "collect-on-signal.ts")).href,
];

const SAMPLE_MS = 500;
/** It counts as settled when so many samples in a row differ by no more than this share. */
const SAMPLES = 6;
const SHARE_MAX = 0.01;
const SETTLE_MS_MAX = 30_000;

/** The memory of a server that is left alone, without garbage, once it neither grows nor shrinks. */
export async function settledKibOf(pid: number): Promise<number> {
  process.kill(pid, "SIGUSR2");
  const seen = [residentKibOf(pid)];
  const lastMs = performance.now() + SETTLE_MS_MAX;
  while (!isSettled(seen)) {
    if (performance.now() > lastMs) throw new Error(`the memory of process ${pid} does not settle`);
    await sleep(SAMPLE_MS);
    seen.push(residentKibOf(pid));
  }
  return seen.at(-1) ?? Number.NaN;
}

export function isSettled(seen: readonly number[]): boolean {
  const last = seen.slice(-SAMPLES);
  return last.length === SAMPLES && Math.max(...last) - Math.min(...last) <= Math.max(...last) * SHARE_MAX;
}
