export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Old names and the ones they get. A map and no object, as a member may be called `constructor`. */
export type MemberNames = ReadonlyMap<string, string>;

export function memberNames(names: Readonly<Record<string, string>>): MemberNames {
  return new Map(Object.entries(names));
}

/** Members get other names and keep their place; where the new name is taken already, the old one stays. */
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

/** Members that are there and not null go through their function; all others are left alone. */
export function mapMembers(
  object: JsonObject,
  changes: Readonly<Record<string, (value: unknown) => unknown>>,
): JsonObject {
  const changed = Object.entries(changes)
    .filter(([name]) => Object.hasOwn(object, name) && object[name] != null)
    .map(([name, change]): [string, unknown] => [name, change(object[name])]);
  return { ...object, ...Object.fromEntries(changed) };
}

export function withoutMembers(object: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** Without what is undefined, which JSON cannot say. */
export function definedMembers(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** A word for an error message: what was found in the place of something else. */
export function nameOfJson(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
