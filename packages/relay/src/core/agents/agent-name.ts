import { type AgentId, parseAgentId, POSTMASTER, quote, RelayError } from "@a2a-relay/protocol";

/** Names that the journal and the notices use for others than agents. */
const RESERVED: ReadonlySet<string> = new Set([POSTMASTER, "operator", "anonymous"]);
const RESERVED_BEGINNING = /^(operator:|skill:|https?:)/i;

/** An id that an agent may have. */
export function readAgentId(input: string, field = "agent_id"): AgentId {
  const id = parseAgentId(input, field);
  if (!RESERVED.has(id) && !RESERVED_BEGINNING.test(id)) return id;
  throw new RelayError("invalid_argument", `${field}: ${quote(id)} is reserved; choose another one`);
}
