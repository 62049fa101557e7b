import { A2AClient } from "./a2a-client.ts";
import type { FilledClientOptions } from "../relay-client-options.ts";

/** A client for an agent of a relay: where that is and what it speaks is known without asking for its card. */
export function createAgentClient(relay: FilledClientOptions, agentId: string): A2AClient {
  const { apiKey, fetch, retries, retryDelayMs, retryDelayMsMax } = relay;
  const url = `${relay.url}/agents/${encodeURIComponent(agentId)}/a2a`;
  const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  const card = { name: agentId, supportedInterfaces, capabilities: { streaming: true } };
  return new A2AClient({ card, apiKey, fetch, retries, retryDelayMs, retryDelayMsMax });
}
