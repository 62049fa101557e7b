import { type AgentId, LIMITS, quote, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";

const EXTERNAL = /^https?:\/\//;

/** Whether this is an agent elsewhere, known by nothing but where it is. Nobody can register such an id. */
export function isRemote(agentId: string): boolean {
  return EXTERNAL.test(agentId);
}

/**
 * Whether somebody is shown that the agent is there who did not name it: the address of an agent elsewhere may be known
 * to few, and here it is known because one of them wrote to it. `viewer` is undefined for whoever showed no key.
 */
export function isListedFor(viewer: Principal | undefined, agentId: string): boolean {
  return viewer?.kind === "operator" || !isRemote(agentId);
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
