import {
  AgentsQuerySchema,
  PushQuerySchema,
  PushReplayRequestSchema,
  PushRotateRequestSchema,
  RegisterRequestSchema,
} from "@a2a-relay/protocol";
import type { PushService } from "../../core/outbound/push-service.ts";
import type { AgentService } from "../../core/registration/agent-service.ts";
import { type Answer, type Call, param, type Route } from "./route.ts";

const tag = "Agents";

/** Agents over HTTP. */
export function agentRoutes(agents: AgentService): readonly Route[] {
  const register = async ({ principal, body }: Call): Promise<Answer> => {
    const answer = await agents.register(principal, body);
    return { status: answer.created ? 201 : 200, body: answer };
  };
  const registration = {
    method: "POST",
    tag,
    body: RegisterRequestSchema,
    answers: { 201: "Registered", 200: "Updated; omitted fields keep their values" },
    handle: register,
  } as const;
  return [
    { ...registration, path: "/agents/register", summary: "Register an agent, or update it" },
    { ...registration, path: "/api/agents", summary: "The same as POST /agents/register" },
    {
      method: "GET",
      path: "/agents",
      tag,
      summary: "List agents by id",
      query: AgentsQuerySchema,
      answers: { 200: "Agents, and a pageToken when there are more" },
      handle: async ({ principal, query }) => ({ body: await agents.list(principal, query) }),
    },
    {
      method: "GET",
      path: "/agents/{id}",
      tag,
      summary: "One agent, by id or alias",
      answers: { 200: "The agent" },
      handle: async (call) => ({ body: await agents.get(call.principal, param(call, "id")) }),
    },
    {
      method: "DELETE",
      path: "/agents/{id}",
      tag,
      summary: "Deregister: open messages are withdrawn, their senders are told",
      answers: { 200: "Which agent was removed" },
      handle: async (call) => ({ body: await agents.remove(call.principal, param(call, "id")) }),
    },
    {
      method: "POST",
      path: "/agents/{id}/heartbeat",
      tag,
      summary: "Report that the agent is online",
      answers: { 200: "The agent with its presence" },
      handle: async (call) => ({ body: await agents.heartbeat(call.principal, param(call, "id")) }),
    },
  ];
}

/** Push endpoints of agents over HTTP. */
export function pushRoutes(pushes: PushService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/agents/{id}/push",
      tag,
      summary: "The agent's push endpoint, its state, and the latest pushes with their attempts",
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
      answers: { 201: "The new secret, which is returned only here, and when the old one ends" },
      handle: async (call) => ({
        status: 201,
        body: await pushes.rotate(call.principal, param(call, "id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/agents/{id}/push/replay",
      tag,
      summary: "Push again all open messages that were accepted since a time",
      body: PushReplayRequestSchema,
      answers: { 200: "How many messages are pushed again" },
      handle: async (call) => ({
        body: await pushes.replay(call.principal, param(call, "id"), call.body),
      }),
    },
  ];
}
