import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Of the times in /proc, on every platform of Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
/** The fields of /proc/…/stat after the name of the program: CPU time of ended children, in user and in kernel mode. */
const ENDED_CHILDREN = [13, 14];

/** CPU time that a process and its children have used so far; undefined where the system does not tell. */
export function cpuMicrosOf(pid: number): number | undefined {
  try {
    return endedChildrenMicros(pid) + liveMicros(pid);
  } catch {
    return undefined;
  }
}

function liveMicros(pid: number): number {
  let micros = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const directory = `/proc/${pid}/task/${thread}`;
    micros += Number.parseInt(readFileSync(`${directory}/schedstat`, "utf8"), 10) / 1_000;
    const children = readFileSync(`${directory}/children`, "utf8").trim();
    // One that ends meanwhile is missing; its time is among those of the ended ones at the next call.
    for (const child of children === "" ? [] : children.split(" ")) micros += cpuMicrosOf(Number(child)) ?? 0;
  }
  return micros;
}

function endedChildrenMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = ENDED_CHILDREN.reduce((sum, index) => sum + Number(fields[index]), 0);
  return (ticks / TICKS_PER_SECOND) * 1_000_000;
}

export function residentKibOf(pid: number): number {
  const { stdout } = spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" });
  return Number.parseInt(stdout, 10);
}
