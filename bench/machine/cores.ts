import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Which core the servers get and which one the load; undefined when they cannot be kept apart. */
export type Cores = { readonly server: number; readonly load: number } | undefined;

/** Moves this process, which makes the load, to its own core. */
export function takeCores(): Cores {
  const allowed = allowedCores();
  const server = allowed[0];
  const load = allowed.at(-1);
  if (server === undefined || load === undefined || server === load) return undefined;
  const { status } = spawnSync("taskset", ["-a", "-c", "-p", String(load), String(process.pid)]);
  return status === 0 ? { server, load } : undefined;
}

/** The command that runs `command` on the servers' core. */
export function onServerCore(cores: Cores, command: readonly string[]): readonly string[] {
  return cores === undefined ? command : ["taskset", "-c", String(cores.server), ...command];
}

/** Only Linux tells, in the form "0-3,8". */
function allowedCores(): readonly number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
    return list.split(",").flatMap(readSpan);
  } catch {
    return [];
  }
}

function readSpan(span: string): readonly number[] {
  const [first = Number.NaN, last = first] = span.split("-").map(Number);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
