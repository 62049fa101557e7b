import { hash } from "node:crypto";

/** JSON with sorted keys: the same content gives the same text, however a client ordered it. */
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

export function digestOf(value: unknown): string {
  return hash("sha256", canonicalJson(value), "hex");
}

/** The digest of a text exactly as it is stored. */
export function digestOfText(text: string): string {
  return hash("sha256", text, "hex");
}
