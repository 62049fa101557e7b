import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** CPU time that all threads of a process have used so far; undefined where the system does not tell. */
export function cpuMicrosOf(pid: number): number | undefined {
  try {
    const nanos = readdirSync(`/proc/${pid}/task`).map((thread) =>
      Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8"), 10),
    );
    return nanos.reduce((sum, value) => sum + value, 0) / 1_000;
  } catch {
    return undefined;
  }
}

export function residentKibOf(pid: number): number {
  const { stdout } = spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" });
  return Number.parseInt(stdout, 10);
}
