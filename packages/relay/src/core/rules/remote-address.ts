import { type AgentId, LIMITS, quote, RelayError } from "@a2a-relay/protocol";

const EXTERNAL = /^https?:\/\//;

/** Whether this is a remote agent, whose id is its URL. No agent can register such an id. */
export function isRemote(agentId: string): boolean {
  return EXTERNAL.test(agentId);
}

/** The id of the agent at a URL: the URL itself, always written in the same way. */
export function remoteIdOf(text: string, field: string): AgentId {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || text.includes("#")) {
    throw new RelayError(
      "invalid_argument",
      `${field}: ${quote(text)} is not the address of an agent; it is an http or https URL without a user and a fragment`,
    );
  }
  if (text.includes("?")) {
    // Not quoted: keys are often in there, and errors are logged.
    throw new RelayError(
      "invalid_argument",
      `${field}: the address of an external agent is its id, which others may see, so it has no query; ` +
        'register an agent with this callback_url and push: "a2a" instead',
    );
  }
  if (url.href.length <= LIMITS.idCharsMax) return url.href as AgentId;
  throw new RelayError(
    "too_large",
    `${field}: the address of an external agent is its id and has at most ${LIMITS.idCharsMax} characters, ` +
      `this has ${url.href.length}; register an agent with this callback_url and push: "a2a" instead`,
    { details: { limit: LIMITS.idCharsMax } },
  );
}
