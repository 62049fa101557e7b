import type { A2aOperation } from "@a2a-relay/protocol";
import { RemoteFailure } from "./remote-failure.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";

/** What the relay asks of agents elsewhere. */
export type RemoteOperation = Extract<A2aOperation, "send" | "get" | "cancel">;

export interface RestRoute {
  readonly method: "GET" | "POST";
  readonly url: string;
}

type Params = Readonly<Record<string, unknown>>;

/** Where an operation is with HTTP+JSON. Cards of 0.3 name the address with its `/v1` or without. */
export function restRoute(at: RemoteInterface, operation: RemoteOperation, params: Params): RestRoute {
  const url = new URL(at.url);
  const base = url.pathname.replace(/\/+$/, "");
  const older = base.endsWith("/v1") ? "" : "/v1";
  url.pathname = base + (at.dialect === "1.0" ? tenantPath(at) : older) + pathOf(operation, params);
  if (operation !== "get") return { method: "POST", url: url.href };
  const { historyLength } = params;
  if (typeof historyLength === "number") url.searchParams.set("historyLength", String(historyLength));
  return { method: "GET", url: url.href };
}

function pathOf(operation: RemoteOperation, { id }: Params): string {
  if (operation === "send") return "/message:send";
  return operation === "get" ? `/tasks/${encodeId(id)}` : `/tasks/${encodeId(id)}:cancel`;
}

function tenantPath({ a2aTenant }: RemoteInterface): string {
  return a2aTenant === null ? "" : `/${encodeId(a2aTenant)}`;
}

/** The URL parser resolves dots even when they are encoded, and would call another route. */
function encodeId(id: unknown): string {
  if (typeof id === "string" && id.isWellFormed() && !["", ".", ".."].includes(id))
    return encodeURIComponent(id);
  throw new RemoteFailure("refused", "the agent gave a name that no address can hold");
}
