import { LIMITS, REST_ROUTES, type RestMethod } from "@a2a-relay/protocol";
import { Type } from "typebox";
import type { RelayCore } from "../../core/relay-core.ts";
import { param, type Route } from "../http/route.ts";
import { A2aHandler } from "./a2a-handler.ts";
import { JSON_RPC_FAMILY, JsonRpcBinding } from "./json-rpc.ts";
import { REST_FAMILY, RestBinding } from "./rest.ts";

const tag = "A2A";

const JsonRpcRequestSchema = Type.Object(
  {
    jsonrpc: Type.Literal("2.0"),
    id: Type.Union([Type.String(), Type.Number()]),
    method: Type.String({
      description:
        "SendMessage, GetTask, … of A2A 1.0; message/send, tasks/get, … of 0.3 and 0.2; tasks/send of 0.1.",
    }),
    params: Type.Object({}, { additionalProperties: true }),
  },
  { title: "JsonRpcRequest" },
);

/** The A2A endpoints of every agent and of the relay. */
export function a2aRoutes(core: RelayCore): readonly Route[] {
  const handler = new A2aHandler(core);
  const rpc = new JsonRpcBinding(handler);
  const rest = new RestBinding(handler);
  const rpcRoute = (path: string, summary: string): Route => ({
    method: "POST",
    path,
    tag,
    summary,
    body: JsonRpcRequestSchema,
    family: JSON_RPC_FAMILY,
    waits: true,
    streams: "on request",
    bodyBytesMax: LIMITS.bodyBytesMax,
    answers: { 200: "The JSON-RPC response, or a stream of them" },
    handle: (call) => rpc.answer(call, call.params["agent_id"]),
  });
  const restRoute = (method: RestMethod): Route => ({
    method,
    path: "/agents/{agent_id}/a2a/{operation}",
    isOpenEnded: true,
    tag,
    summary: `A2A over HTTP+JSON: ${restPaths(method)}`,
    family: REST_FAMILY,
    ...(method === "POST" ? { body: Type.Object({}, { additionalProperties: true }) } : {}),
    waits: true,
    streams: "on request",
    answers: { 200: "The A2A answer, or a stream of it" },
    handle: (call) => {
      const path = call.params["*"] ?? "";
      if (path === "" && method === "POST") return rpc.answer(call, param(call, "agent_id"));
      return rest.answer(call, method, param(call, "agent_id"), path);
    },
  });
  return [
    rpcRoute(
      "/a2a",
      "The relay's A2A endpoint: for the agent that the message names, or for the relay itself",
    ),
    rpcRoute("/agents/{agent_id}/a2a", "The agent's own A2A endpoint, over JSON-RPC, in every dialect"),
    restRoute("GET"),
    restRoute("POST"),
    restRoute("DELETE"),
  ];
}

function restPaths(method: RestMethod): string {
  const paths = Object.values(REST_ROUTES)
    .filter(({ methods }) => methods.includes(method))
    .map(({ path }) => path);
  return paths.join(", ");
}
