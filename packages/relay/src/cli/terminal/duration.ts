import { parseInstant } from "@a2a-relay/protocol";
import { InvalidArgumentError } from "commander";

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const DURATION_MS_MAX = 36_500 * 86_400_000;

/** `500ms`, `30s`, `1.5h`, `7d`; a bare number is seconds. */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim());
  const durationMs =
    match === null ? Number.NaN : Math.round(Number(match[1]) * (UNITS_MS[match[2] ?? "s"] ?? 0));
  if (durationMs <= DURATION_MS_MAX) return durationMs;
  throw new InvalidArgumentError("Expected a duration such as 500ms, 30s, 5m, 2h or 7d.");
}

/** A moment: a duration from now, or an ISO 8601 time with a zone. */
export function parseMomentMs(text: string, nowMs: number = Date.now()): number {
  if (/^\d+(\.\d+)?[a-z]*$/.test(text)) return nowMs + parseDurationMs(text);
  try {
    return parseInstant(text, "time");
  } catch {
    throw new InvalidArgumentError(
      "Expected a duration from now such as 2h, or a time such as 2026-05-08T08:30:00Z.",
    );
  }
}

/** A moment in the past: a duration before now, or an ISO 8601 time with a zone. */
export function parsePastMs(text: string, nowMs: number = Date.now()): number {
  const isDuration = /^\d+(\.\d+)?[a-z]*$/.test(text);
  return isDuration ? Math.max(0, nowMs - parseDurationMs(text)) : parseMomentMs(text, nowMs);
}

/** Short and rounded, for tables: `850ms`, `12s`, `5m`, `3h`, `4d`. */
export function formatDuration(durationMs: number): string {
  if (durationMs < 1_000) return `${Math.max(0, Math.round(durationMs))}ms`;
  for (const [unit, nextMs] of [
    ["s", 60_000],
    ["m", 3_600_000],
    ["h", 86_400_000],
  ] as const) {
    if (durationMs < nextMs) return `${Math.floor(durationMs / (UNITS_MS[unit] ?? 1))}${unit}`;
  }
  return `${Math.floor(durationMs / 86_400_000)}d`;
}

/** A time of the API without its milliseconds. */
export function formatTime(instant: string): string {
  return instant.replace(/\.\d+Z$/, "Z");
}
