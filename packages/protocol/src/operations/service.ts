import { Type } from "typebox";
import { membersSchema } from "../base/schema.ts";
import { HealthResponseSchema, ReadyResponseSchema } from "../wire/answers.ts";
import type { OperationEntries } from "./operation.ts";
import { TextSchema } from "./shared.ts";

const tag = "Service";

const page = {
  method: "GET",
  tag,
  summary: "This API for people",
  open: true,
  verbs: [],
  answers: { 200: { description: "A page", schema: TextSchema, mediaType: "text/html" } },
  errors: [],
  repeat: "always",
  example: {},
} as const;

export const service = {
  health: {
    method: "GET",
    path: "/health",
    tag,
    summary: "The process is alive",
    open: true,
    verbs: [],
    answers: { 200: { description: "Alive", schema: HealthResponseSchema } },
    errors: [],
    repeat: "never",
    example: {},
  },
  ready: {
    method: "GET",
    path: "/ready",
    tag,
    summary: "A write reaches the disk",
    open: true,
    verbs: [],
    answers: { 200: { description: "Ready", schema: ReadyResponseSchema } },
    errors: ["storage_full"],
    repeat: "never",
    example: {},
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    tag,
    summary: "Prometheus metrics: of the whole relay for its operator, of a tenant for its operators",
    verbs: ["metrics.read"],
    answers: {
      200: {
        description: "Metrics in Prometheus text format",
        schema: TextSchema,
        mediaType: "text/plain",
      },
    },
    errors: [],
    repeat: "always",
    example: {},
  },
  openapi: {
    method: "GET",
    path: "/openapi.json",
    tag,
    summary: "This API as OpenAPI 3.1",
    open: true,
    verbs: [],
    answers: {
      200: {
        description: "The document",
        schema: Type.Object(
          { openapi: Type.String(), info: membersSchema, paths: membersSchema },
          { additionalProperties: true },
        ),
      },
    },
    errors: [],
    repeat: "always",
    example: {},
  },
  docs: { ...page, path: "/docs" },
  home: { ...page, path: "/" },
} as const satisfies OperationEntries;
