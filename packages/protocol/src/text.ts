import { LIMITS } from "./limits.ts";
import { RelayError } from "./relay-error.ts";

/**
 * Refuses what no store and no wire can carry faithfully: lone surrogates anywhere, and nesting so deep
 * that a recursive reader would fall over. `where` names the value in the error.
 */
export function assertCleanJson(value: unknown, where: string, depth = 0): void {
  if (typeof value === "string") {
    if (value.isWellFormed()) return;
    throw new RelayError("invalid_argument", `${where}: has a lone surrogate; send valid Unicode`);
  }
  if (typeof value !== "object" || value === null) return;
  if (depth >= LIMITS.jsonDepthMax) {
    throw new RelayError("invalid_argument", `${where}: is nested deeper than ${LIMITS.jsonDepthMax} levels`);
  }
  if (Array.isArray(value)) {
    for (const item of value) assertCleanJson(item, where, depth + 1);
    return;
  }
  for (const key in value) {
    const path = depth === 0 ? key : where;
    assertCleanJson(key, where, depth + 1);
    assertCleanJson((value as Record<string, unknown>)[key], path, depth + 1);
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

let lastInstant = { atMs: Number.NaN, text: "" };
let lastSecond = { second: Number.NaN, text: "" };

/** Remembers the last one, and its second: under load, many messages are of the same millisecond. */
export function formatInstant(atMs: number): string {
  if (lastInstant.atMs !== atMs) {
    const second = Math.floor(atMs / 1_000);
    if (lastSecond.second !== second) {
      lastSecond = { second, text: new Date(second * 1_000).toISOString().slice(0, -"000Z".length) };
    }
    const ms = String(Math.floor(atMs - second * 1_000)).padStart(3, "0");
    lastInstant = { atMs, text: `${lastSecond.text}${ms}Z` };
  }
  return lastInstant.text;
}

const QUOTE_CHARS_MAX = 80;

/** A value as it is shown in an error: short, on one line. However large it is, only its beginning is read. */
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

/** Date.parse turns 30 February into 2 March; a message's date should mean what it says. */
function isRealDay(fields: RegExpExecArray): boolean {
  const [year, month, day] = [Number(fields[1]), Number(fields[2]), Number(fields[3])];
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}
