export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined for a text that is no JSON object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Old names and new names. A map, because a member may be called `constructor`. */
export type MemberNames = ReadonlyMap<string, string>;

export function memberNames(names: Readonly<Record<string, string>>): MemberNames {
  return new Map(Object.entries(names));
}

/** Renames members in their order; where an object has the new name already, the old name stays. */
export function renameMembers(object: JsonObject, names: MemberNames): JsonObject {
  const taken = new Set(Object.keys(object));
  const entries = Object.entries(object).map(([name, value]): [string, unknown] => {
    const wanted = names.get(name);
    if (wanted === undefined || taken.has(wanted)) return [name, value];
    taken.add(wanted);
    return [wanted, value];
  });
  return Object.fromEntries(entries);
}

/** Changes members that are present and not null. */
export function mapMembers(
  object: JsonObject,
  changes: Readonly<Record<string, (value: unknown) => unknown>>,
): JsonObject {
  const changed: Record<string, unknown> = { ...object };
  for (const [name, change] of Object.entries(changes)) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value != null) changed[name] = change(value);
  }
  return changed;
}

export function withoutMembers(object: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** In ProtoJSON null means absent. Only these members: null may have a meaning in others. */
export function withoutNulls(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([name, value]) => value !== null || !names.has(name)),
  );
}

export function definedMembers(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** The kind of a JSON value, for an error text. */
export function nameOfJson(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
