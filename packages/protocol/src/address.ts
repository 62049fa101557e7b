import { LIMITS } from "./limits.ts";
import { RelayError } from "./relay-error.ts";
import { quote } from "./text.ts";

/** The stable id of an agent: `name@host`, a URN, a `did:…`, a peer id. */
export type AgentId = string & { readonly brand: "AgentId" };

/** Where notices come from. Nobody can register it, nobody can write to it. */
export const POSTMASTER = "postmaster@relay" as AgentId;

/** Who asks over A2A without being an agent. Nobody can register it, and only answers to its tasks reach it. */
export const GUEST = "guest@relay" as AgentId;

/** Ids of messages, threads and tasks share one grammar, so that none can climb out of a path. */
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

/** What `to` may hold. One parser for every wire; kinds that no part serves yet are told so by name. */
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

/** People are also written to by the name they show, and that may have blanks in it. */
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
      `${field}: ${quote(input)} is not a valid id; messages of any script, digits and . _ - : @ + = ~ are, "..", "/" and blanks are not`,
    );
  }
  return input;
}
