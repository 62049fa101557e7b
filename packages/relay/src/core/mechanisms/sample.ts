/** Members that a sample keeps of an object, and items of a list that has no limit of its own. */
const KEPT_MIN = 100;

/** Deeper than any schema reaches; what lies below is kept unchanged. */
const LEVELS_MAX = 16;

/**
 * Checking input is fast, but explaining what is wrong is not: a list of 200,000 wrong ids would block the event loop.
 * A sample fails for the same reason and is small. It keeps every member that the schema names, and one item more than
 * the longest list may have.
 */
export function samplerOf(schema: unknown): (input: unknown) => unknown {
  const names = new Set<string>();
  const kept = 1 + learn(schema, names);
  return (input) => sample(input, names, kept, 0);
}

/** Collects the names of all members and gives the length of the longest list. */
function learn(schema: unknown, names: Set<string>): number {
  if (typeof schema !== "object" || schema === null) return KEPT_MIN;
  let longest = KEPT_MIN;
  for (const [keyword, value] of Object.entries(schema) as [string, unknown][]) {
    if (keyword === "maxItems" && typeof value === "number") longest = Math.max(longest, value);
    if (keyword === "properties") for (const name of Object.keys(value as object)) names.add(name);
    longest = Math.max(longest, learn(value, names));
  }
  return longest;
}

function sample(value: unknown, names: ReadonlySet<string>, kept: number, level: number): unknown {
  if (typeof value !== "object" || value === null || level >= LEVELS_MAX) return value;
  const below = (member: unknown): unknown => sample(member, names, kept, level + 1);
  if (Array.isArray(value)) return value.slice(0, kept).map(below);
  const keys = Object.keys(value);
  const sampled = keys.length <= kept ? keys : keys.filter((key, index) => index < kept || names.has(key));
  // Not by assignment: a member may be called __proto__.
  return Object.fromEntries(sampled.map((key) => [key, below((value as Record<string, unknown>)[key])]));
}
