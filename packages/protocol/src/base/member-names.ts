import type { TSchema } from "typebox";

/** What a schema says of the members of a value. */
interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly $defs?: Readonly<Record<string, Shape>>;
  readonly $ref?: string;
}

type Definitions = Readonly<Record<string, Shape>>;

/**
 * A value of the wire with its declared members in camelCase. Undeclared members stay: parts, cards and metadata pass
 * untouched. The one exception is an undeclared member with the camelCase name of a declared one: it takes the other's
 * snake_case name, so that `snakeFrom` gives the same value back.
 */
export function camelFrom(schema: TSchema, value: unknown): unknown {
  return new Renaming("camel").of([schema], value, {});
}

/** The value of the wire for one that has its declared members in camelCase. */
export function snakeFrom(schema: TSchema, value: unknown): unknown {
  return new Renaming("snake").of([schema], value, {});
}

class Renaming {
  readonly #to: "camel" | "snake";

  constructor(to: "camel" | "snake") {
    this.#to = to;
  }

  /** The shapes are the alternatives that the value may have. */
  of(shapes: readonly Shape[], value: unknown, definitions: Definitions): unknown {
    if (typeof value !== "object" || value === null) return value;
    const known = Object.assign({}, definitions, ...shapes.map(({ $defs }) => $defs)) as Definitions;
    const plain = shapes.flatMap((shape) => alternatives(shape, known));
    if (Array.isArray(value)) {
      const items = plain.flatMap((shape) => shape.items ?? []);
      return items.length === 0 ? value : value.map((item) => this.of(items, item, known));
    }
    const declared = plain.flatMap(({ properties }) => (properties === undefined ? [] : [properties]));
    return declared.length === 0 ? value : this.#members(declared, value, known);
  }

  #members(
    declared: readonly Readonly<Record<string, Shape>>[],
    value: object,
    definitions: Definitions,
  ): unknown {
    const camelNames = camelNamesOf(new Set(declared.flatMap((properties) => Object.keys(properties))));
    const snakeNames = new Map([...camelNames].map(([snake, camel]) => [camel, snake]));
    const members = Object.entries(value).map(([key, member]) => {
      const name = camelNames.get(key) ?? snakeNames.get(key) ?? key;
      // The name in the schema, which has none for an undeclared member.
      const ownName = this.#to === "camel" ? key : name;
      const shapes = declared.flatMap((properties) => ownProperty(properties, ownName) ?? []);
      return [name, this.of(shapes, member, definitions)];
    });
    return Object.fromEntries(members) as unknown;
  }
}

/** From the snake_case names to their camelCase. A name whose camelCase is declared too stays. */
function camelNamesOf(declared: ReadonlySet<string>): ReadonlyMap<string, string> {
  const pairs = [...declared].map((name) => [name, toCamel(name)] as const);
  return new Map(pairs.filter(([, camel]) => !declared.has(camel)));
}

function toCamel(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function alternatives(shape: Shape, definitions: Definitions): readonly Shape[] {
  if (shape.$ref !== undefined) {
    const found = ownProperty(definitions, shape.$ref);
    return found === undefined ? [] : alternatives(found, definitions);
  }
  return shape.anyOf?.flatMap((each) => alternatives(each, definitions)) ?? [shape];
}

function ownProperty<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
