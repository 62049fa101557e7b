import { LIMITS } from "./limits.ts";
import { RelayError } from "./relay-error.ts";

/**
 * Refuses what some store or wire cannot carry: lone surrogates, U+0000 (PostgreSQL has no such character), and nesting
 * that is too deep for a recursive reader. `where` names the value in the error.
 */
export function assertCleanJson(value: unknown, where: string, depth = 0): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) {
      throw new RelayError("invalid_argument", `${where}: has a lone surrogate; send valid Unicode`);
    }
    if (value.includes("\0")) {
      throw new RelayError("invalid_argument", `${where}: has the character U+0000; leave it out`);
    }
    return;
  }
  if (typeof value !== "object" || value === null) return;
  if (depth >= LIMITS.jsonDepthMax) {
    throw new RelayError("invalid_argument", `${where}: is nested deeper than ${LIMITS.jsonDepthMax} levels`);
  }
  if (Array.isArray(value)) {
    for (const item of value) assertCleanJson(item, where, depth + 1);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    assertCleanJson(key, where, depth + 1);
    assertCleanJson(member, depth === 0 ? key : where, depth + 1);
  }
}

const ISO_INSTANT = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** An ISO 8601 instant with a time zone, from 1970 on, as epoch milliseconds. */
export function parseInstant(input: unknown, field: string): number {
  if (typeof input === "string") {
    const fields = ISO_INSTANT.exec(input);
    const atMs = fields === null ? Number.NaN : Date.parse(input);
    if (fields !== null && atMs >= 0 && isRealDay(fields)) return atMs;
  }
  throw new RelayError(
    "invalid_argument",
    `${field}: expected an ISO 8601 time with a zone, from 1970 on, such as 2026-05-08T08:30:00Z; got ${quote(input)}`,
  );
}

/** Epoch milliseconds as ISO 8601 in UTC. */
export function formatInstant(atMs: number): string {
  return new Date(atMs).toISOString();
}

const QUOTE_CHARS_MAX = 80;

/** A value for an error text: short, on one line. Reads only the beginning of a large value. */
export function quote(value: unknown): string {
  const text = beginningOfJson(value, QUOTE_CHARS_MAX);
  if (text.length <= QUOTE_CHARS_MAX) return text;
  return `${text.slice(0, QUOTE_CHARS_MAX - 3).toWellFormed()}...`;
}

/** The value as JSON, or more than `chars` characters of its beginning. */
function beginningOfJson(value: unknown, chars: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, chars + 1));
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof URL) return beginningOfJson(value.href, chars);
  let text = Array.isArray(value) ? "[" : "{";
  const separate = (): void => {
    if (text.length > 1) text += ",";
  };
  if (Array.isArray(value)) {
    for (const item of value) {
      separate();
      if (text.length > chars) return text;
      text += beginningOfJson(item, chars - text.length);
    }
    return `${text}]`;
  }
  for (const key in value) {
    separate();
    if (text.length > chars) return text;
    text += `${beginningOfJson(key, chars - text.length)}:`;
    text += beginningOfJson((value as Record<string, unknown>)[key], Math.max(0, chars - text.length));
  }
  return `${text}}`;
}

/** Date.parse turns 30 February into 2 March. */
function isRealDay(fields: RegExpExecArray): boolean {
  const [year, month, day] = [Number(fields[1]), Number(fields[2]), Number(fields[3])];
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}

/**
 * JSON with sorted keys: the same content gives the same text. Keys are sorted by their UTF-16 code units at every
 * level, without blanks and without undefined members. Signatures and digests cover this text, so it is part of the
 * wire.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const record = value as Record<string, unknown>;
  const members = Object.keys(record)
    .filter((key) => record[key] !== undefined)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(record[key])}`);
  return `{${members.join(",")}}`;
}
