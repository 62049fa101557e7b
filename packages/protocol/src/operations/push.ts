import {
  PushEndpointViewSchema,
  PushQuerySchema,
  PushReplayedSchema,
  PushReplayRequestSchema,
  PushRotatedSchema,
  PushRotateRequestSchema,
} from "../model/push.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { AGENT_ERRORS } from "./shared.ts";

const tag = "Agents";
const params = { id: EXAMPLE_IDS.pushed };
const errors = [...AGENT_ERRORS, "not_found", "wrong_state"] as const;

export const push = {
  get: {
    method: "GET",
    path: "/agents/{id}/push",
    tag,
    summary: "The agent's push endpoint, its state, and the latest pushes with their attempts",
    verbs: ["push.read"],
    query: PushQuerySchema,
    answers: { 200: { description: "The endpoint, without its secret", schema: PushEndpointViewSchema } },
    errors,
    repeat: "always",
    example: { params, query: { limit: 10 } },
  },
  rotate: {
    method: "POST",
    path: "/agents/{id}/push/rotate",
    tag,
    summary: "Make a new secret for pushes; the old one signs beside it for a while",
    verbs: ["push.write"],
    body: PushRotateRequestSchema,
    answers: {
      201: {
        description: "The new secret, which is returned only here, and when the old one ends",
        schema: PushRotatedSchema,
      },
    },
    errors,
    repeat: "if_not_done",
    example: { params, body: { overlap_ms: 3_600_000 } },
  },
  replay: {
    method: "POST",
    path: "/agents/{id}/push/replay",
    tag,
    summary: "Push again all open messages that were accepted since a time",
    verbs: ["push.write"],
    body: PushReplayRequestSchema,
    answers: { 200: { description: "How many messages are pushed again", schema: PushReplayedSchema } },
    errors,
    // A second replay would push the messages once more.
    repeat: "if_not_done",
    example: { params, body: { since: "2026-05-08T08:30:00Z" } },
  },
} as const satisfies OperationEntries;
