import { type AgentId, GUEST, parseAgentId, POSTMASTER, quote, RelayError } from "@a2a-relay/protocol";

/** The relay as an agent: what it is called where an agent is named. */
export const RELAY_AGENT = "relay";

/** Names that the journal and the notices use for others than agents. */
const RESERVED: ReadonlySet<string> = new Set([POSTMASTER, GUEST, RELAY_AGENT, "operator", "anonymous"]);
const RESERVED_BEGINNING = /^(operator:|skill:|https?:)/i;

/** An id that an agent may have. */
export function readAgentId(input: string, field = "agent_id"): AgentId {
  const id = parseAgentId(input, field);
  if (!RESERVED.has(id) && !RESERVED_BEGINNING.test(id)) return id;
  throw new RelayError("invalid_argument", `${field}: ${quote(id)} is reserved; choose another one`);
}
