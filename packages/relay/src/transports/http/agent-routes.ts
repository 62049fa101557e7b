import { operations, type RegisterResponse } from "@a2a-relay/protocol";
import type { PushService } from "../../core/outbound/push-service.ts";
import type { AgentService } from "../../core/registration/agent-service.ts";
import { type Answer, type Call, route, type Route } from "./route.ts";

/** Agents over HTTP. */
export function agentRoutes(agents: AgentService): readonly Route[] {
  const register = async ({ principal, body }: Call): Promise<Answer<RegisterResponse>> => {
    const answer = await agents.register(principal, body);
    return { status: answer.created ? 201 : 200, body: answer };
  };
  return [
    route(operations.agents.register, register),
    route(operations.agents.registerAtApi, register),
    route(operations.agents.list, async ({ principal, query }) => ({
      body: await agents.list(principal, query),
    })),
    route(operations.agents.get, async ({ principal, params }) => ({
      body: await agents.get(principal, params.id),
    })),
    route(operations.agents.remove, async ({ principal, params }) => ({
      body: await agents.remove(principal, params.id),
    })),
    route(operations.agents.heartbeat, async ({ principal, params }) => ({
      body: await agents.heartbeat(principal, params.id),
    })),
  ];
}

/** Push endpoints of agents over HTTP. */
export function pushRoutes(pushes: PushService): readonly Route[] {
  return [
    route(operations.push.get, async ({ principal, params, query }) => ({
      body: await pushes.endpoint(principal, params.id, query),
    })),
    route(operations.push.rotate, async ({ principal, params, body }) => ({
      status: 201,
      body: await pushes.rotate(principal, params.id, body),
    })),
    route(operations.push.replay, async ({ principal, params, body }) => ({
      body: await pushes.replay(principal, params.id, body),
    })),
  ];
}
