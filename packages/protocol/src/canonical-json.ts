/**
 * JSON with sorted keys: the same content gives the same text, however a client ordered it. Keys are sorted by their
 * UTF-16 code units at every level, there are no blanks, and what is undefined is left out. Signatures and digests are
 * made over this text, so it is part of the wire.
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
