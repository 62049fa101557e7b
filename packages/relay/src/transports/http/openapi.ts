import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import {
  type AnswerOf,
  ErrorBodySchema,
  errorsOf,
  type OperationAnswer,
  type operations,
} from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import { HTTP_STATUS } from "./http-error.ts";
import { fieldsOf, type Route } from "./route.ts";

type Json = Readonly<Record<string, unknown>>;
type OpenApiDocument = AnswerOf<typeof operations.service.openapi>;

/** TypeBox schemas are JSON Schema, and OpenAPI 3.1 takes them as they are: no second description. */
export function openApiDocument(
  routes: readonly Route[],
  version: string,
  publicUrl: string,
): OpenApiDocument & Json {
  const schemas = new SharedSchemas();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const operation = operationOf(route, schemas);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "a2a-relay",
      version,
      description:
        "A durable message relay for AI agents. Errors have one shape and a closed list of codes. Every path also exists under /t/{tenant}, for callers that act in that tenant.",
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.all(),
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
    },
  };
}

/** Schemas with a title are written once and referred to by it. */
class SharedSchemas {
  readonly #byTitle = new Map<string, Json>();

  all(): Json {
    return Object.fromEntries([...this.#byTitle].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The schema, or a reference to it. */
  of(schema: TSchema): Json {
    const { $defs, ...rest } = schema as Json & { readonly $defs?: Readonly<Record<string, TSchema>> };
    for (const [name, definition] of Object.entries($defs ?? {})) this.#share(name, definition);
    const { title } = rest;
    return typeof title === "string" ? this.#share(title, rest) : this.#members(rest);
  }

  #share(title: string, schema: TSchema): Json {
    const shared = this.#members(schema as Json);
    const before = this.#byTitle.get(title);
    assert(before === undefined || isDeepStrictEqual(before, shared), `two schemas have the title ${title}`);
    this.#byTitle.set(title, shared);
    return { $ref: `#/components/schemas/${title}` };
  }

  #members(schema: Json): Json {
    // An own id would become the base of the references inside.
    const members = Object.entries(schema).filter(([key]) => key !== "$id");
    return Object.fromEntries(members.map(([key, value]) => [key, this.#value(key, value)]));
  }

  #value(key: string, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#value("", item));
    if (typeof value === "object" && value !== null) return this.of(value);
    return key === "$ref" ? `#/components/schemas/${String(value)}` : value;
  }
}

function operationOf(route: Route, schemas: SharedSchemas): Json {
  const { example } = route;
  return {
    tags: [route.tag],
    summary: route.summary,
    operationId: route.name,
    parameters: [
      ...pathParameters(route),
      ...queryParameters(route, schemas),
      ...(route.streams === undefined ? [] : [LAST_EVENT_ID]),
    ],
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            content: { "application/json": { schema: schemas.of(route.body), example: example.body } },
          },
        }),
    responses: { ...answersOf(route, schemas), ...failuresOf(route, schemas) },
    security: route.open === true ? [{}] : [{}, { apiKey: [] }],
  };
}

function answersOf(route: Route, schemas: SharedSchemas): Json {
  return Object.fromEntries(
    Object.entries(route.answers).map(
      ([status, answer]) =>
        [status, { description: answer.description, ...contentOf(route, answer, schemas) }] as const,
    ),
  );
}

function contentOf(route: Route, { schema, mediaType }: OperationAnswer, schemas: SharedSchemas): Json {
  if (schema === undefined) return {};
  const { streams, event } = route;
  const value = { [mediaType ?? "application/json"]: { schema: schemas.of(schema) } };
  if (streams === undefined || event === undefined) return { content: value };
  const stream = { "text/event-stream": { schema: { type: "string" }, "x-event-data": schemas.of(event) } };
  return { content: streams === "always" ? stream : { ...value, ...stream } };
}

/** The errors by status, each with its codes. A2A maps codes to statuses in its own ways. */
function failuresOf(route: Route, schemas: SharedSchemas): Json {
  const schema = schemas.of(route.family?.errorSchema ?? ErrorBodySchema);
  const content = { "application/json": { schema } };
  const codes =
    route.family?.statusOf === undefined
      ? Map.groupBy(errorsOf(route), (code) => String(HTTP_STATUS[code]))
      : new Map<string, readonly string[]>();
  const failures = [...codes].map(
    ([status, own]) => [status, { description: own.join(", "), content }] as const,
  );
  return { ...Object.fromEntries(failures), default: { description: "An error", content } };
}

/** Browsers send it by themselves when they reconnect to a stream. */
const LAST_EVENT_ID: Json = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  schema: { type: "string", maxLength: 40 },
  description: "For a stream: the id of the last event that was received. Wins over `since`.",
};

function pathParameters({ path, example }: Route): readonly Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    example: example.params?.[name],
  }));
}

function queryParameters({ query, example }: Route, schemas: SharedSchemas): readonly Json[] {
  return Object.entries(fieldsOf(query).properties).map(([name, property]) => ({
    name,
    in: "query",
    required: false,
    schema: schemas.of(property),
    ...(property.description === undefined ? {} : { description: property.description }),
    ...(example.query?.[name] === undefined ? {} : { example: example.query[name] }),
  }));
}
