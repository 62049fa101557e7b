import { join } from "node:path";
import { assertOk, jsonOf, openConnections } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { agentId, AGENTS } from "../load/messages.ts";
import type { ServerProcess } from "./server-process.ts";

const LAUNCHER = join(import.meta.dirname, "../../packages/relay/bin/a2a-relay.js");

/** The relay as its users start it, with its default settings; on any free port unless it is to come back. */
export function relayArgs(directory: string, port = 0): readonly string[] {
  return [LAUNCHER, "serve", "--port", String(port), "--data", directory];
}

/** Answers with the key of each agent, in their order. */
export async function registerAgents(
  relay: ServerProcess,
  options: { readonly ids?: readonly string[]; readonly operatorKey?: string } = {},
): Promise<readonly string[]> {
  const ids = options.ids ?? Array.from({ length: AGENTS }, (_, index) => agentId(index));
  const keys: string[] = [];
  using connections = await openConnections(relay.port, 1);
  for (const connection of connections) {
    for (const agent_id of ids) {
      const answer = await connection.request(
        postRequest("/agents/register", { agent_id }, options.operatorKey),
      );
      assertOk(answer);
      keys.push((jsonOf(answer) as { readonly api_key?: string }).api_key ?? "");
    }
  }
  return keys;
}

/** Permits every sender and every recipient of the load. */
export async function grantAll(relay: ServerProcess, operatorKey: string): Promise<void> {
  using connections = await openConnections(relay.port, 1);
  for (const connection of connections) {
    for (let index = 0; index < AGENTS; index += 1) {
      const [recipient, sender] = [agentId(index), agentId(index + 1)];
      for (const grant of [
        { subject: sender, action: `a2a.send.${recipient}` },
        { subject: recipient, action: `a2a.recv.${sender}` },
      ]) {
        assertOk(await connection.request(postRequest("/capabilities/grant", grant, operatorKey)));
      }
    }
  }
}
