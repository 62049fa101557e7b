import { LIMITS } from "../base/limits.ts";
import { RelayError } from "../base/relay-error.ts";
import { quote } from "../base/text.ts";

/** The stable id of an agent: `name@host`, a URN, a `did:…`, a peer id. */
export type AgentId = string & { readonly brand: "AgentId" };

/** The sender of notices. No agent can register this id or write to it. */
export const POSTMASTER = "postmaster@relay" as AgentId;

/** The sender for A2A callers that are no agents. No agent can register this id; only answers to its tasks reach it. */
export const GUEST = "guest@relay" as AgentId;

/** The id of a message, thread or task. The grammar keeps ids from climbing out of a path. */
export type RecordId = string & { readonly brand: "RecordId" };

// No slash, no backslash, no white space, no control or format character, nothing that hides in a log line.
const FORBIDDEN = /[\s/\\?#%"'`<>{}|^\p{C}]/u;

/** The only maker of an AgentId from outside; code past this point may trust the type. */
export function parseAgentId(input: unknown, field = "agent_id"): AgentId {
  return parseName(input, field) as AgentId;
}

export function parseRecordId(input: unknown, field: string): RecordId {
  return parseName(input, field) as RecordId;
}

/** What `to` may hold; every wire uses this parser. */
export type Address =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "skill"; readonly skill: string }
  | { readonly kind: "url"; readonly url: string };

export function parseAddress(input: unknown, field = "to"): Address {
  if (typeof input === "string" && /^https?:\/\//i.test(input)) {
    if (input.length <= LIMITS.urlCharsMax && URL.canParse(input)) return { kind: "url", url: input };
    throw new RelayError("invalid_argument", `${field}: ${quote(input)} is not a usable URL`);
  }
  const name = parseDisplayName(input) ?? parseName(input, field);
  if (name.startsWith("skill:")) return { kind: "skill", skill: name.slice("skill:".length) };
  return { kind: "name", name };
}

/** A display name, which may hold blanks. */
function parseDisplayName(input: unknown): string | undefined {
  if (typeof input !== "string" || !input.includes(" ") || input !== input.trim()) return undefined;
  const isName = input.length <= LIMITS.displayNameCharsMax && !FORBIDDEN.test(input.replaceAll(" ", ""));
  return isName && input.isWellFormed() ? input : undefined;
}

function parseName(input: unknown, field: string): string {
  if (typeof input !== "string" || input.length === 0) {
    throw new RelayError("invalid_argument", `${field}: expected a non-empty string, got ${quote(input)}`);
  }
  if (input.length > LIMITS.idCharsMax && Array.from(input).length > LIMITS.idCharsMax) {
    throw new RelayError(
      "too_large",
      `${field}: at most ${LIMITS.idCharsMax} characters, got ${input.length}`,
    );
  }
  if (!input.isWellFormed() || FORBIDDEN.test(input) || input === "." || input.includes("..")) {
    throw new RelayError(
      "invalid_argument",
      `${field}: ${quote(input)} is not a valid id; characters of any script, digits and . _ - : @ + = ~ are, "..", "/" and blanks are not`,
    );
  }
  return input;
}
