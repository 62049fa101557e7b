import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Which cores the servers get and which one the load, as `taskset` lists them; undefined without two cores. */
export type Cores = { readonly server: string; readonly load: string } | undefined;

/** Moves this process, which makes the load, to its own core. */
export function takeCores(): Cores {
  const allowed = allowedCores();
  const server = allowed[0];
  const load = allowed.at(-1);
  if (server === undefined || load === undefined || server === load) return undefined;
  const { status } = spawnSync("taskset", ["-a", "-c", "-p", String(load), String(process.pid)]);
  return status === 0 ? { server: String(server), load: String(load) } : undefined;
}

/** For servers of several processes: they share both cores with the load. */
export function bothCores(cores: Cores): Cores {
  return cores === undefined ? undefined : { ...cores, server: `${cores.server},${cores.load}` };
}

/** The command that runs `command` where servers run. */
export function onServerCore(cores: Cores, command: readonly string[]): readonly string[] {
  return cores === undefined ? command : ["taskset", "-c", cores.server, ...command];
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
