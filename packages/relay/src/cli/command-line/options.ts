import { InvalidArgumentError, Option } from "commander";
import { parseDurationMs } from "../terminal/duration.ts";

/** For `--limit` and the like; the relay checks the upper bounds. */
export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Expected a whole number.");
}

/** For options that may be given more than once. */
export function collect(text: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), text];
}

/** The help prints the default as it is written here. */
export function durationOption(flags: string, description: string, fallback?: string): Option {
  const option = new Option(flags, description).argParser(parseDurationMs);
  return fallback === undefined ? option : option.default(parseDurationMs(fallback), fallback);
}

export type Given<Values> = { -readonly [Name in keyof Values]?: Exclude<Values[Name], undefined> };

/** Without the undefined members: an option that was not set is not sent at all. */
export function given<Values extends object>(values: Values): Given<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Given<Values>;
}
