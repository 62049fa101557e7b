import { PushQuerySchema, PushReplayRequestSchema, PushRotateRequestSchema } from "@a2a-relay/protocol";
import type { PushService } from "../../core/outbound/push-service.ts";
import { param, type Route } from "./route.ts";

const tag = "Agents";

/** Where agents are called, over HTTP. */
export function pushRoutes(pushes: PushService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/agents/{id}/push",
      tag,
      summary:
        "Where the agent's mail is pushed to, how that goes, and the latest pushes with their attempts",
      query: PushQuerySchema,
      answers: { 200: "The endpoint, without its secret" },
      handle: async (call) => ({
        body: await pushes.endpoint(call.principal, param(call, "id"), call.query),
      }),
    },
    {
      method: "POST",
      path: "/agents/{id}/push/rotate",
      tag,
      summary: "Make a new secret for pushes; the old one signs beside it for a while",
      body: PushRotateRequestSchema,
      answers: { 201: "The new secret, which is shown this once, and when the old one ends" },
      handle: async (call) => ({
        status: 201,
        body: await pushes.rotate(call.principal, param(call, "id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/agents/{id}/push/replay",
      tag,
      summary: "Push again all mail that waits and was accepted since a time",
      body: PushReplayRequestSchema,
      answers: { 200: "How many messages are pushed again" },
      handle: async (call) => ({
        body: await pushes.replay(call.principal, param(call, "id"), call.body),
      }),
    },
  ];
}
