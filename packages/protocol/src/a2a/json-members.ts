export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Old names and the ones they get. A map and no object, as a member may be called `constructor`. */
export type MemberNames = ReadonlyMap<string, string>;

export function memberNames(names: Readonly<Record<string, string>>): MemberNames {
  return new Map(Object.entries(names));
}

/**
 * Members get other names and keep their place; where the new name is taken already, the old one stays. What has
 * nothing to rename is given back itself, as nearly everything is that is written in 1.0.
 */
export function renameMembers(object: JsonObject, names: MemberNames): JsonObject {
  if (!hasMember(object, (name) => names.has(name))) return object;
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
  let changed: Record<string, unknown> | undefined;
  for (const name in changes) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value == null) continue;
    const after = changes[name]?.(value);
    if (after === value) continue;
    changed ??= { ...object };
    changed[name] = after;
  }
  return changed ?? object;
}

/** The list itself where nothing in it changes. */
export function mapItems<Item>(items: readonly Item[], change: (item: Item) => Item): readonly Item[] {
  const changed = items.map(change);
  return changed.every((item, index) => item === items[index]) ? items : changed;
}

export function withoutMembers(object: JsonObject, ...names: readonly string[]): JsonObject {
  if (!hasMember(object, (name) => names.includes(name))) return object;
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** In ProtoJSON a member that is null is not there. Only of these members, as null may mean something to others. */
export function withoutNulls(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const isNull = (name: string): boolean => object[name] === null && names.has(name);
  if (!hasMember(object, isNull)) return object;
  return Object.fromEntries(Object.entries(object).filter(([name]) => !isNull(name)));
}

function hasMember(object: JsonObject, isMeant: (name: string) => boolean): boolean {
  for (const name in object) if (Object.hasOwn(object, name) && isMeant(name)) return true;
  return false;
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
