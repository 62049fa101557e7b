import { assertCleanJson, quote, RelayError } from "@a2a-relay/protocol";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";

/** What a failed keyword says, reduced to what a person needs. */
interface Failure {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Turns `unknown` into the schema's type, or says in one sentence what is wrong with which value. */
export function parserOf<Schema extends TSchema>(
  schema: Schema,
  what: string,
): (input: unknown) => Static<Schema> {
  const compiled = Compile(schema);
  return (input) => {
    if (!compiled.Check(input)) throw describeFailure(compiled.Errors(input), input, what);
    assertCleanJson(input, what);
    return input;
  };
}

function describeFailure(failures: readonly Failure[], input: unknown, what: string): RelayError {
  const failure = mostTelling(failures);
  if (failure === undefined) return new RelayError("invalid_argument", `${what}: is not valid`);
  const path = failure.instancePath.split("/").slice(1).map(unescapePointer);
  const field = path.length === 0 ? what : path.join(".");
  if (failure.keyword === "required") {
    const missing = (failure.params["requiredProperties"] as string[] | undefined)?.join(", ");
    return new RelayError("invalid_argument", `${field}: ${missing ?? "a field"} is missing`);
  }
  if (failure.keyword === "additionalProperties" || failure.keyword === "~guard") {
    const extra = (failure.params["additionalProperties"] as string[] | undefined)?.join(", ");
    return new RelayError("invalid_argument", `${field}: unknown field ${extra ?? ""}`.trimEnd());
  }
  const got = `got ${quote(valueAt(input, path))}`;
  const tooLarge = failure.keyword === "maxLength" || failure.keyword === "maxItems";
  return new RelayError(
    tooLarge ? "too_large" : "invalid_argument",
    `${field}: ${expectation(failure)}, ${got}`,
    { details: { field } },
  );
}

/** Of a failed union the branch that came furthest tells most; "must match anyOf" tells nothing. */
function mostTelling(failures: readonly Failure[]): Failure | undefined {
  const concrete = failures.filter((failure) => failure.keyword !== "anyOf");
  return concrete.toSorted((a, b) => weight(b) - weight(a))[0] ?? failures[0];
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
