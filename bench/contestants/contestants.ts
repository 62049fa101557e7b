import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../measure/bench.ts";
import { registerAgents, relayArgs } from "./relay.ts";
import { ServerProcess } from "./server-process.ts";

export function startBareHttp(bench: Bench): Promise<ServerProcess> {
  const directory = freshDirectory(bench);
  const args = [join(import.meta.dirname, "bare-http.ts")];
  return ServerProcess.start("bare node:http echo", args, { directory, cores: bench.cores });
}

export function startReference(bench: Bench): Promise<ServerProcess> {
  const directory = freshDirectory(bench);
  const args = [join(import.meta.dirname, "fastify-sqlite.ts"), directory];
  return ServerProcess.start("Fastify + SQLite", args, { directory, cores: bench.cores });
}

/** A relay with the agents of the load; on `directory` if its mail is already there. */
export async function startRelay(bench: Bench, directory = freshDirectory(bench)): Promise<ServerProcess> {
  const relay = await ServerProcess.start("relay", relayArgs(directory), { directory, cores: bench.cores });
  await registerAgents(relay);
  return relay;
}

export function freshDirectory(bench: Bench): string {
  return mkdtempSync(join(bench.directory, "server-"));
}
