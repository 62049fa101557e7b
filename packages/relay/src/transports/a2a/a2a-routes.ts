import { a2aEndpoints } from "@a2a-relay/protocol";
import type { RelayCore } from "../../core/relay-core.ts";
import { route, type Route } from "../http/route.ts";
import { A2aHandler } from "./a2a-handler.ts";
import { JSON_RPC_FAMILY, JsonRpcBinding } from "./json-rpc.ts";
import { REST_FAMILY, RestBinding } from "./rest.ts";

/** The A2A endpoints of every agent and of the relay. */
export function a2aRoutes(core: RelayCore): readonly Route[] {
  const handler = new A2aHandler(core);
  const rpc = new JsonRpcBinding(handler);
  const rest = new RestBinding(handler);
  const { relay, agent, restGet, restPost, restDelete } = a2aEndpoints.a2a;
  return [
    route(relay, (call) => rpc.answer(call, undefined), JSON_RPC_FAMILY),
    route(agent, (call) => rpc.answer(call, call.params.agent_id), JSON_RPC_FAMILY),
    ...[restGet, restPost, restDelete].map((operation) =>
      route(
        operation,
        (call) => {
          const path = call.params["*"] ?? "";
          if (path === "" && operation.method === "POST") return rpc.answer(call, call.params.agent_id);
          return rest.answer(call, operation.method, call.params.agent_id, path);
        },
        REST_FAMILY,
      ),
    ),
  ];
}
