import { quote } from "../../base/text.ts";
import type { A2aOperation } from "../a2a-dialect.ts";
import { A2aError } from "../a2a-error.ts";
import { isJsonObject, type JsonObject } from "../json-members.ts";
import { encodeRestId, REST_ROUTES, type RestMethod, restPathOf } from "../rest-routes.ts";
import { type AgentInterface, dialectOf } from "./agent-interface.ts";

/** A call of an agent. */
export interface A2aCall {
  readonly operation: A2aOperation;
  /** In 1.0. */
  readonly params: JsonObject;
  /** Of the JSON-RPC request. */
  readonly id: string;
  /** The same for every attempt: makes a repeated send harmless if the agent supports it. */
  readonly idempotencyKey?: string | undefined;
  /** Resume after this event, if the agent numbers its events. */
  readonly lastEventId?: string | undefined;
}

export interface A2aRequest {
  readonly method: RestMethod;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** To be sent as JSON. */
  readonly body?: JsonObject;
}

/** Throws `UnsupportedOperation` for what the dialect does not have, and `invalid_argument` for unusable ids. */
export function a2aRequest(at: AgentInterface, call: A2aCall): A2aRequest {
  const request = at.binding === "JSONRPC" ? rpcRequest(at, call) : restRequest(at, call);
  const isStream = call.operation === "stream" || call.operation === "subscribe";
  const json = at.binding === "JSONRPC" ? "application/json" : "application/a2a+json, application/json";
  const { idempotencyKey, lastEventId } = call;
  return {
    ...request,
    headers: {
      accept: isStream ? `text/event-stream, ${json}` : json,
      ...(request.body === undefined ? {} : { "content-type": "application/json" }),
      // Versions before 1.0 have no version header, and browsers would send a preflight for it.
      ...(at.dialect === "1.0" ? { "a2a-version": at.dialect } : {}),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
  };
}

type Addressed = Omit<A2aRequest, "headers">;

function rpcRequest(at: AgentInterface, { operation, params, id }: A2aCall): Addressed {
  const dialect = dialectOf(at);
  const method = dialect.methods[operation];
  if (method === undefined) throw unsupported(at, operation);
  const asked = at.a2aTenant === null ? params : { ...params, tenant: at.a2aTenant };
  const body = { jsonrpc: "2.0", id, method, params: dialect.writeParams(operation, asked) };
  return { method: "POST", url: at.url, body };
}

function restRequest(at: AgentInterface, { operation, params }: A2aCall): Addressed {
  if (operation === "list" && at.dialect !== "1.0") throw unsupported(at, operation);
  const [method] = REST_ROUTES[operation].methods;
  const url = restUrl(at, operation, params);
  if (method === "POST") {
    const body = dialectOf(at).writeParams(operation, params);
    return { method, url: url.href, body: isJsonObject(body) ? body : {} };
  }
  for (const [name, value] of Object.entries(params)) {
    if (IN_PATH.includes(name) || value === undefined) continue;
    url.searchParams.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return { method, url: url.href };
}

/** Parameters of the path, which the query must not repeat. */
const IN_PATH = ["id", "taskId", "tenant"];

function restUrl(at: AgentInterface, operation: A2aOperation, params: JsonObject): URL {
  const url = new URL(at.url);
  const isOlder = at.dialect !== "1.0";
  // Some cards of 0.3 have an address with /v1, some without.
  const base = url.pathname.replace(isOlder ? /(\/v1)?\/*$/ : /\/+$/, "");
  const tenant = isOlder || at.a2aTenant === null ? "" : `/${encodeRestId(at.a2aTenant)}`;
  url.pathname = `${base}${tenant}/${restPathOf(operation, params, { isOlder })}`;
  return url;
}

function unsupported({ url, binding, dialect }: AgentInterface, operation: A2aOperation): A2aError {
  const name = binding === "JSONRPC" ? "JSON-RPC" : binding;
  const message = `A2A ${dialect} over ${name} has no ${quote(operation)}, and ${url} speaks nothing newer`;
  return new A2aError("UnsupportedOperation", message);
}
