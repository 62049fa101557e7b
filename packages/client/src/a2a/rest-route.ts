import { type A2aOperation, quote, RelayError } from "@a2a-relay/protocol";
import type { A2aHttpRequest } from "./a2a-http.ts";
import type { A2aParams } from "./agent-binding.ts";
import type { AgentInterface } from "./agent-interface.ts";

interface RestRoute {
  readonly method: A2aHttpRequest["method"];
  /** Without the `/v1` of 0.3. Identifiers come from the parameters, and are encoded. */
  readonly path: (id: (name: string) => string) => string;
  readonly hasBody: boolean;
}

const PUSH = (id: (name: string) => string): string => `/tasks/${id("taskId")}/pushNotificationConfigs`;

export const REST_ROUTES: Readonly<Record<A2aOperation, RestRoute>> = {
  send: { method: "POST", path: () => "/message:send", hasBody: true },
  stream: { method: "POST", path: () => "/message:stream", hasBody: true },
  get: { method: "GET", path: (id) => `/tasks/${id("id")}`, hasBody: false },
  list: { method: "GET", path: () => "/tasks", hasBody: false },
  cancel: { method: "POST", path: (id) => `/tasks/${id("id")}:cancel`, hasBody: true },
  subscribe: { method: "GET", path: (id) => `/tasks/${id("id")}:subscribe`, hasBody: false },
  "push-create": { method: "POST", path: PUSH, hasBody: true },
  "push-get": { method: "GET", path: (id) => `${PUSH(id)}/${id("id")}`, hasBody: false },
  "push-list": { method: "GET", path: PUSH, hasBody: false },
  "push-delete": { method: "DELETE", path: (id) => `${PUSH(id)}/${id("id")}`, hasBody: false },
  "extended-card": { method: "GET", path: () => "/extendedAgentCard", hasBody: false },
};

/** What is in the path is not in the query too. */
const IN_PATH = ["id", "taskId", "tenant"];

export function restUrl(
  { url, version, tenant }: AgentInterface,
  operation: A2aOperation,
  params: A2aParams,
): string {
  const route = REST_ROUTES[operation];
  const address = new URL(url);
  const base = address.pathname.replace(/\/+$/, "");
  const id = (name: string): string => encodeId(params[name]);
  if (version === "1.0") {
    address.pathname = base + (tenant === undefined ? "" : `/${encodeId(tenant)}`) + route.path(id);
  } else {
    // Some cards of 0.3 name the address with its /v1, some without.
    const path = operation === "extended-card" ? "/card" : route.path(id);
    address.pathname = (base.endsWith("/v1") ? base : `${base}/v1`) + path;
  }
  if (route.hasBody) return address.href;
  for (const [name, value] of Object.entries(params)) {
    if (IN_PATH.includes(name) || value === undefined) continue;
    address.searchParams.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return address.href;
}

function encodeId(id: unknown): string {
  // The URL parser resolves dots even after encoding, so they would silently call another route.
  if (typeof id === "string" && id.isWellFormed() && !["", ".", ".."].includes(id))
    return encodeURIComponent(id);
  throw new RelayError("invalid_argument", `${quote(id)} is not a usable id`);
}
