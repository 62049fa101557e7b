import { RELAY_ERROR_CODES } from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import { fieldsOf, type Route } from "./route.ts";

type Json = Readonly<Record<string, unknown>>;

const ERROR_SCHEMA: Json = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: {
        code: { type: "string", enum: RELAY_ERROR_CODES },
        message: { type: "string", description: "What was wrong, with which value, and what to do." },
        details: { type: "object", additionalProperties: true },
      },
    },
  },
};

/** TypeBox schemas are JSON Schema, and OpenAPI 3.1 takes them as they are: no second description. */
export function openApiDocument(routes: readonly Route[], version: string, publicUrl: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
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
      schemas: { Error: ERROR_SCHEMA, ...familySchemas(routes) },
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
    },
  };
}

function familySchemas(routes: readonly Route[]): Json {
  const families = routes.flatMap(({ family }) => family ?? []);
  return Object.fromEntries(families.map(({ errorName, errorSchema }) => [errorName, errorSchema]));
}

function operationOf(route: Route): Json {
  const shape = route.family?.errorName ?? "Error";
  const failure = {
    description: "An error",
    content: { "application/json": { schema: { $ref: `#/components/schemas/${shape}` } } },
  };
  const answers = Object.entries(route.answers).map(([status, description]) => [
    status,
    { description, ...(status === "200" ? streamContent(route) : {}) },
  ]);
  return {
    tags: [route.tag],
    summary: route.summary,
    operationId: operationId(route),
    parameters: [
      ...pathParameters(route.path),
      ...queryParameters(route.query),
      ...(route.streams === undefined ? [] : [LAST_EVENT_ID]),
    ],
    ...(route.body === undefined
      ? {}
      : { requestBody: { content: { "application/json": { schema: route.body } } } }),
    responses: { ...Object.fromEntries(answers), default: failure },
    security: route.open === true ? [{}] : [{}, { apiKey: [] }],
  };
}

/** Browsers send it by themselves when they reconnect to a stream. */
const LAST_EVENT_ID: Json = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  schema: { type: "string", maxLength: 40 },
  description: "For a stream: the id of the last event that was received. Wins over `since`.",
};

function streamContent({ streams }: Route): Json {
  if (streams === undefined) return {};
  const events = { "text/event-stream": { schema: { type: "string" } } };
  return { content: streams === "always" ? events : { "application/json": {}, ...events } };
}

function operationId(route: Route): string {
  const words = route.path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return [route.method.toLowerCase(), ...words].join("_");
}

function pathParameters(path: string): readonly Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(schema: TSchema | undefined): readonly Json[] {
  return Object.entries(fieldsOf(schema).properties).map(([name, property]) => ({
    name,
    in: "query",
    required: false,
    schema: property,
    ...(property.description === undefined ? {} : { description: property.description }),
  }));
}
