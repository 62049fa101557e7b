import { join } from "node:path";
import { assertOk, openConnections } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { agentId, AGENTS } from "../load/letters.ts";
import type { ServerProcess } from "./server-process.ts";

const LAUNCHER = join(import.meta.dirname, "../../packages/relay/bin/a2a-relay.js");

/** The relay as its users start it, with its default settings. */
export function relayArgs(directory: string): readonly string[] {
  return [LAUNCHER, "serve", "--port", "0", "--data", directory];
}

export async function registerAgents(
  relay: ServerProcess,
  ids: readonly string[] = Array.from({ length: AGENTS }, (_, index) => agentId(index)),
): Promise<void> {
  using connections = await openConnections(relay.port, 1);
  for (const connection of connections) {
    for (const agent_id of ids)
      assertOk(await connection.request(postRequest("/agents/register", { agent_id })));
  }
}
