import { assertCleanJson, quote, RelayError } from "@a2a-relay/protocol";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { samplerOf } from "./sample.ts";

/** A failed keyword of the schema. */
interface Failure {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Turns `unknown` into the schema's type, or throws one sentence that says what is wrong with which value. */
export function parserOf<Schema extends TSchema>(
  schema: Schema,
  what: string,
): (input: unknown) => Static<Schema> {
  const parseShape = shapeParserOf(schema, what);
  return (input) => {
    const parsed = parseShape(input);
    assertCleanJson(parsed, what);
    return parsed;
  };
}

/** The same for an envelope whose items are parsed one by one later. */
export function shapeParserOf<Schema extends TSchema>(
  schema: Schema,
  what: string,
): (input: unknown) => Static<Schema> {
  const compiled = Compile(schema);
  const sampleOf = samplerOf(schema);
  return (input) => {
    if (compiled.Check(input)) return input;
    const sample = sampleOf(input);
    throw describeFailure(compiled.Errors(sample), { schema, input: sample, what });
  };
}

interface Checked {
  readonly schema: TSchema;
  readonly input: unknown;
  readonly what: string;
}

function describeFailure(failures: readonly Failure[], { schema, input, what }: Checked): RelayError {
  const failure = mostTelling(failures);
  if (failure === undefined) {
    return new RelayError("invalid_argument", `${what}: a member far behind the first ones is not valid`);
  }
  const path = failure.instancePath.split("/").slice(1).map(unescapePointer);
  const field = fieldName(path, what);
  if (failure.keyword === "required") {
    const missing = (failure.params["requiredProperties"] as string[] | undefined)?.join(", ");
    return new RelayError("invalid_argument", `${field}: ${missing ?? "a field"} is missing`);
  }
  if (failure.keyword === "additionalProperties" || failure.keyword === "~guard") {
    const extra = (failure.params["additionalProperties"] as string[] | undefined)?.map(shorten).join(", ");
    const named = `${field}: unknown field ${extra ?? ""}`.trimEnd();
    return new RelayError("invalid_argument", `${named}${knownFields(schema, failure)}`);
  }
  if (failure.keyword === "boolean") {
    const [owner, extra] = [path.slice(0, -1), path.slice(-1)];
    const named = `${fieldName(owner, what)}: unknown field ${fieldName(extra, what)}`;
    return new RelayError("invalid_argument", `${named}, and more of them${knownFields(schema, failure)}`);
  }
  const got = `got ${quote(valueAt(input, path))}`;
  const tooLarge = failure.keyword === "maxLength" || failure.keyword === "maxItems";
  return new RelayError(
    tooLarge ? "too_large" : "invalid_argument",
    `${field}: ${expectation(failure)}, ${got}`,
    { details: { field } },
  );
}

const NAME_CHARS_MAX = 80;

function fieldName(path: readonly string[], what: string): string {
  return path.length === 0 ? what : path.map(shorten).join(".");
}

/** A name that the caller chose, short enough for an error. */
function shorten(name: string): string {
  return name.length <= NAME_CHARS_MAX ? name : `${name.slice(0, NAME_CHARS_MAX - 3).toWellFormed()}...`;
}

const KNOWN_CHARS_MAX = 400;

/** Lists the fields of the object that contains an unknown, perhaps misspelt field. */
function knownFields(schema: TSchema, { schemaPath }: Failure): string {
  const path = schemaPath.replace(/\/additionalProperties$/, "").split("/");
  const owner = valueAt(schema, path.slice(1).map(unescapePointer));
  const names = Object.keys((owner as Readonly<Record<string, object>> | undefined)?.["properties"] ?? {});
  if (names.length === 0) return "";
  const list = names.join(", ");
  const shown = list.length <= KNOWN_CHARS_MAX ? list : cutAtName(list);
  return `; the known ones are ${shown}`;
}

function cutAtName(list: string): string {
  return `${list.slice(0, list.lastIndexOf(", ", KNOWN_CHARS_MAX))}, …`;
}

/** Keywords that explain nothing beside the other failures. */
const TELLS_NOTHING: ReadonlySet<string> = new Set(["anyOf", "boolean"]);

/**
 * Of a failed union, only branches whose constants fit were meant, and the one that came furthest tells most;
 * "must match anyOf" tells nothing. The schema `false` behind an unknown field is told only where there are so
 * many that their list was cut off.
 */
function mostTelling(failures: readonly Failure[]): Failure | undefined {
  const mistaken = failures.filter(({ keyword }) => keyword === "const").map((failure) => branchOf(failure));
  const meant = failures.filter(
    (failure) => !mistaken.includes(branchOf(failure)) || branchOf(failure) === "",
  );
  const concrete = (meant.some(isConcrete) ? meant : failures).filter(isConcrete);
  const telling = concrete.toSorted((a, b) => weight(b) - weight(a))[0] ?? failures[0];
  return telling?.keyword === "const" ? oneOf(telling, failures) : telling;
}

/** Where each branch wanted another constant, any of them would have done. */
function oneOf(failure: Failure, failures: readonly Failure[]): Failure {
  const alike = failures.filter(
    ({ keyword, instancePath }) => keyword === "const" && instancePath === failure.instancePath,
  );
  if (alike.length === 1) return failure;
  const allowedValues = alike.map(({ params }) => params["allowedValue"]);
  return { ...failure, keyword: "enum", params: { allowedValues } };
}

function isConcrete({ keyword }: Failure): boolean {
  return !TELLS_NOTHING.has(keyword);
}

/** The branch of a union in which it failed, or nothing. */
function branchOf({ schemaPath }: Failure): string {
  return /^.*\/anyOf\/\d+/.exec(schemaPath)?.[0] ?? "";
}

function weight(failure: Failure): number {
  const depth = failure.instancePath.split("/").length;
  return depth * 2 + (failure.params["type"] === "null" ? -1 : 0);
}

function expectation(failure: Failure): string {
  const { keyword, params } = failure;
  if (keyword === "enum") return `must be one of ${(params["allowedValues"] as unknown[]).join(", ")}`;
  if (keyword === "const") return `must be ${quote(params["allowedValue"])}`;
  if (keyword === "maxLength") return `must have at most ${String(params["limit"])} characters`;
  if (keyword === "maxItems") return `must have at most ${String(params["limit"])} items`;
  if (keyword === "minLength" || keyword === "pattern") return "must not be blank";
  if (keyword === "minItems") return `must have at least ${String(params["limit"])} item`;
  return failure.message;
}

function valueAt(input: unknown, path: readonly string[]): unknown {
  let value = input;
  for (const key of path) value = (value as Record<string, unknown> | undefined)?.[key];
  return value;
}

function unescapePointer(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~");
}
