import { join } from "node:path";
import {
  type EmbeddedServer,
  startEmbeddedPostgres,
} from "../../../packages/relay/testing/postgres-server.ts";
import type { LoopResult } from "../../load/closed-loop.ts";
import { Connection, jsonOf } from "../../load/connection.ts";
import { postRequest } from "../../load/http-request.ts";
import { onServerCore } from "../../machine/cores.ts";
import type { Bench } from "../../measure/bench.ts";
import { freshDirectory } from "../contestants.ts";
import { registerAgents, relayArgs } from "../relay.ts";
import { ServerProcess } from "../server-process.ts";
import type { CallOrder, QueueName } from "./postgres-queue.ts";
import { SEALING } from "./sealing.ts";

/** What the guide for several relays advises, with less memory, because a database of the bench is small. */
const SETTINGS = ["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB", "autovacuum_naptime=5s"];

export function startPostgres({ cores }: Bench): Promise<EmbeddedServer> {
  return startEmbeddedPostgres({ settings: SETTINGS, wrap: (command) => onServerCore(cores, command) });
}

/** A relay with the agents of the load, on that database. */
export async function startRelayOn(bench: Bench, database: string): Promise<ServerProcess> {
  const directory = freshDirectory(bench);
  const flags = Object.entries({ ...SEALING, database }).flatMap(([flag, value]) => [`--${flag}`, value]);
  const args = [...relayArgs(directory), ...flags];
  const relay = await ServerProcess.start("relay", args, { directory, cores: bench.cores });
  await registerAgents(relay);
  return relay;
}

/** A program that calls the queue in its own process. */
export function startQueue(bench: Bench, queue: QueueName, database: string): Promise<ServerProcess> {
  const directory = freshDirectory(bench);
  const program = join(import.meta.dirname, "queue-process.ts");
  // graphile-worker would print a line for each job.
  const env = { NO_LOG_SUCCESS: "1" };
  const args = ["--conditions=source", program, queue, database, directory];
  return ServerProcess.start(queue, args, { directory, cores: bench.cores, env });
}

export async function runCalls(queue: ServerProcess, order: CallOrder): Promise<LoopResult> {
  using connection = await Connection.open(queue.port);
  return jsonOf(await connection.request(postRequest("/", order))) as LoopResult;
}
