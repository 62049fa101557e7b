import type { TSchema } from "typebox";
import { fieldsOf, type Property } from "./route.ts";

/**
 * A query string carries everything as text; this reads numbers and truth values where the schema has them.
 * What does not read as one stays text, and the core says what is wrong with it.
 */
export function readQuery(schema: TSchema | undefined, raw: unknown): unknown {
  const { properties } = fieldsOf(schema);
  const query: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(raw as Record<string, unknown>)) {
    query[name] = readValue(properties[name], value);
  }
  return query;
}

function readValue({ type, maximum }: Property = {}, value: unknown): unknown {
  if (typeof value !== "string") return value;
  // Where nothing bounds it, somebody may send the largest number that 64 bits hold.
  const number = maximum === undefined ? /^-?\d{1,20}$/ : /^-?\d{1,16}$/;
  if (type === "integer" && number.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "1")) return true;
  if (type === "boolean" && (value === "false" || value === "0")) return false;
  return value;
}
