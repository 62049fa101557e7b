import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../measure/bench.ts";
import { grantAll, registerAgents, relayArgs } from "./relay.ts";
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

/** The official SDK's own A2A server. */
export function startSdkExpress(bench: Bench): Promise<ServerProcess> {
  const directory = freshDirectory(bench);
  const args = [join(import.meta.dirname, "sdk-express.ts")];
  return ServerProcess.start("@a2a-js/sdk on Express", args, { directory, cores: bench.cores });
}

/** A relay with the agents of the load; on `directory` when that holds a database. */
export async function startRelay(bench: Bench, directory = freshDirectory(bench)): Promise<ServerProcess> {
  const relay = await ServerProcess.start("relay", relayArgs(directory), { directory, cores: bench.cores });
  await registerAgents(relay);
  return relay;
}

/** A relay that asks for keys, and for capabilities too where it is told so; with the key of each agent. */
export async function startKeyedRelay(
  bench: Bench,
  { capabilities }: { readonly capabilities: boolean },
): Promise<{ readonly relay: ServerProcess; readonly keys: readonly string[] }> {
  const directory = freshDirectory(bench);
  const args = [...relayArgs(directory), "--capabilities", capabilities ? "on" : "off"];
  const env = { A2A_RELAY_API_KEY: OPERATOR_KEY };
  const relay = await ServerProcess.start("relay", args, { directory, cores: bench.cores, env });
  const keys = await registerAgents(relay, { operatorKey: OPERATOR_KEY });
  if (capabilities) await grantAll(relay, OPERATOR_KEY);
  return { relay, keys };
}

const OPERATOR_KEY = "bench-operator-key-0123456789abcdef";

export function freshDirectory(bench: Bench): string {
  return mkdtempSync(join(bench.directory, "server-"));
}
